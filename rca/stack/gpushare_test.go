package stack

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// The device plugin of gpushare is looked for where a node is labelled for it, and nowhere else.
func TestGPUsThatGpushareIsToShare(t *testing.T) {
	const memory = corev1.ResourceName("aliyun.com/gpu-mem")
	plugin := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "share"}}
	plugin.Spec.Template.Spec.NodeSelector = map[string]string{"gpushare": "true"}
	plugin.Spec.Template.Spec.Containers = []corev1.Container{{Name: "gpushare", Image: "registry.example/acs/k8s-gpushare-plugin:v2"}}
	for name, tc := range map[string]struct {
		label, taint string
		installed    bool
		cause        diagnosis.CauseID
		says         string
	}{
		"a taint keeps it off":  {"gpushare", "team", true, diagnosis.GPUStackNotOnNode, "kube-system/share does not run there: it does not tolerate taint team:NoSchedule"},
		"it is not there":       {"gpushare", "", false, diagnosis.GPUStackMissing, "is installed that announces aliyun.com/gpu-mem"},
		"the node has no label": {"other", "team", true, "", ""},
		"no pod of it is made":  {"gpushare", "", true, diagnosis.GPUStackNotOnNode, "which selects it"},
	} {
		l := newLab()
		n := l.gpuNode("n")
		n.Labels = map[string]string{tc.label: "true"}
		if tc.taint != "" {
			n.Spec.Taints = []corev1.Taint{{Key: tc.taint, Effect: corev1.TaintEffectNoSchedule}}
		}
		if tc.installed {
			l.DaemonSets = append(l.DaemonSets, plugin)
		}
		w := view.New(l.State)
		var cause diagnosis.CauseID
		says := ""
		if f := Of(w).OfMaker(w.Nodes["n"], memory); f != nil {
			cause, says = f.Cause, f.Says
		}
		if cause != tc.cause || !strings.Contains(says, tc.says) {
			t.Errorf("%s: %s, %s", name, cause, says)
		}
	}
}
