package stack

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Why a node with GPUs of AMD's offers none: nothing of NVIDIA's has a part in it, and a node
// that never showed one has nothing broken. What a mend brings nobody knows.
func TestGPUsOfAMDs(t *testing.T) {
	const amdGPU = corev1.ResourceName("amd.com/gpu")
	installed := func(l *lab, selector map[string]string) {
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "amd", UID: "amd", CreationTimestamp: metav1.NewTime(noon.Add(-48 * time.Hour))}}
		ds.Spec.Template.Spec.Containers, ds.Spec.Template.Spec.NodeSelector = []corev1.Container{{Name: "dp", Image: "rocm/k8s-device-plugin"}}, selector
		l.sets[parts.AMDPlugin], l.DaemonSets = ds, append(l.DaemonSets, ds)
	}
	aged := func(age time.Duration, edit func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			if edit != nil {
				edit(p)
			}
			p.CreationTimestamp = metav1.NewTime(noon.Add(-age))
		}
	}
	sign := map[string]string{"feature.node.kubernetes.io/amd-gpu": "true"}
	for name, k := range map[string]struct {
		labels map[string]string
		edit   func(l *lab, n *corev1.Node)
		link   Link
		state  State
		cause  diagnosis.CauseID
		sure   diagnosis.Certainty
		says   string
		label  string // that is shown
	}{
		"it offers some": {sign, func(_ *lab, n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{amdGPU: resource.MustParse("1")}
		}, 0, "", "", "", "", ""},
		"nothing says that it has any": {map[string]string{"feature.node.kubernetes.io/amd-gpu": "false", "amd.com/other": "x"}, func(*lab, *corev1.Node) {}, 0, "", "", "", "", ""},
		"it offered some once": {nil, func(_ *lab, n *corev1.Node) {
			n.Status.Capacity, n.Status.Allocatable = corev1.ResourceList{amdGPU: resource.MustParse("0")}, corev1.ResourceList{amdGPU: resource.MustParse("0")}
		}, Installed, Missing, diagnosis.DevicePluginDown, diagnosis.Likely, "no device plugin of AMD's is installed that announces amd.com/gpu", ""},
		"no plugin":                 {sign, func(*lab, *corev1.Node) {}, Installed, Missing, diagnosis.GPUStackMissing, diagnosis.Proven, "no device plugin of AMD's is installed", "feature.node.kubernetes.io/amd-gpu=true"},
		"by its type of machine":    {map[string]string{"node.kubernetes.io/instance-type": "g4ad.xlarge"}, func(*lab, *corev1.Node) {}, Installed, Missing, diagnosis.GPUStackMissing, diagnosis.Proven, "no device plugin of AMD's is installed", "node.kubernetes.io/instance-type=g4ad.xlarge"},
		"of a type with NVIDIA's":   {map[string]string{"node.kubernetes.io/instance-type": "g4dn.xlarge"}, func(*lab, *corev1.Node) {}, 0, "", "", "", "", ""},
		"by its labeller's word":    {map[string]string{"beta.amd.com/gpu.vram.64G": "1", "amd.com/gpu.family": "AI"}, func(*lab, *corev1.Node) {}, Installed, Missing, diagnosis.GPUStackMissing, diagnosis.Proven, "no device plugin of AMD's is installed", "amd.com/gpu.family=AI"},
		"what is there is not read": {sign, func(l *lab, _ *corev1.Node) { l.Unread["DaemonSet"] = "no right" }, Installed, Unseen, diagnosis.DevicePluginDown, diagnosis.Possible, "has GPUs of AMD's and offers no amd.com/gpu", "feature.node.kubernetes.io/amd-gpu=true"},
		"it is starting": {sign, func(l *lab, _ *corev1.Node) { installed(l, nil); l.pod(parts.AMDPlugin, "n", aged(2*time.Minute, nil)) },
			Plugin, Starting, diagnosis.DevicePluginDown, diagnosis.Proven, "the pod of AMD's device plugin began 2 min ago", "feature.node.kubernetes.io/amd-gpu=true"},
		"it has started": {sign, func(l *lab, _ *corev1.Node) { installed(l, nil); l.pod(parts.AMDPlugin, "n", aged(5*time.Minute, nil)) },
			Registration, Failed, diagnosis.DevicePluginDown, diagnosis.Likely, "AMD's device plugin runs there and announces none", "feature.node.kubernetes.io/amd-gpu=true"},
		"it calls them unhealthy": {nil, func(l *lab, n *corev1.Node) {
			n.Status.Capacity, n.Status.Allocatable = corev1.ResourceList{amdGPU: resource.MustParse("2")}, corev1.ResourceList{amdGPU: resource.MustParse("0")}
			installed(l, nil)
			l.pod(parts.AMDPlugin, "n", aged(time.Hour, nil))
		}, Registration, Failed, diagnosis.DevicePluginDown, diagnosis.Proven, "AMD's device plugin runs there and calls all of them unhealthy, or its kubelet has lost it (capacity 2, allocatable 0)", ""},
		"it crashes at once": {sign, func(l *lab, _ *corev1.Node) {
			installed(l, nil)
			l.pod(parts.AMDPlugin, "n", aged(time.Minute, crashes("no /dev/kfd")))
		}, Registration, Failed, diagnosis.DevicePluginDown, diagnosis.Proven, "AMD's device plugin fails at dp CrashLoopBackOff (9 restarts; last exit 1: no /dev/kfd)", "feature.node.kubernetes.io/amd-gpu=true"},
		"it loops": {sign, func(l *lab, _ *corev1.Node) {
			installed(l, nil)
			l.pod(parts.AMDPlugin, "n", aged(time.Minute, func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].Ready, p.Status.ContainerStatuses[0].RestartCount = false, 3
			}))
		}, Registration, Failed, diagnosis.DevicePluginDown, diagnosis.Likely, "AMD's device plugin fails at dp running and not ready", "feature.node.kubernetes.io/amd-gpu=true"},
		"it is kept off": {sign, func(l *lab, _ *corev1.Node) { installed(l, map[string]string{"amd": "yes"}) }, PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, diagnosis.Proven, "kube-system/amd does not run there: it selects nodes by label amd=yes, which is absent", "feature.node.kubernetes.io/amd-gpu=true"},
		"nobody looks": {nil, func(l *lab, _ *corev1.Node) { installed(l, sign); l.pod(parts.Discovery, "n", crashes("no")) },
			Discovery, Unseen, diagnosis.GPUStackNotOnNode, diagnosis.Possible, "may have GPUs of AMD's that nobody has looked for: node feature discovery, by whose labels kube-system/amd is put on nodes, fails there at nfd-worker CrashLoopBackOff (9 restarts; last exit 1: no)", ""},
		"who looks runs": {nil, func(l *lab, _ *corev1.Node) { installed(l, sign); l.pod(parts.Discovery, "n", nil) }, 0, "", "", "", "", ""},
		"nobody goes by that": {nil, func(l *lab, _ *corev1.Node) {
			installed(l, map[string]string{"amd": "yes"})
			l.pod(parts.Discovery, "n", crashes("no"))
		}, 0, "", "", "", "", ""},
		"it has been looked at": {map[string]string{"feature.node.kubernetes.io/cpu": "x"}, func(l *lab, _ *corev1.Node) { installed(l, sign); l.pod(parts.Discovery, "n", crashes("no")) }, 0, "", "", "", "", ""},
		"a cloud tells":         {map[string]string{"node.kubernetes.io/instance-type": "m5.large"}, func(l *lab, _ *corev1.Node) { installed(l, sign); l.pod(parts.Discovery, "n", crashes("no")) }, 0, "", "", "", "", ""},
		"it makes no pod":       {sign, func(l *lab, _ *corev1.Node) { installed(l, nil) }, PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, diagnosis.Likely, "has no pod of the device plugin of AMD's kube-system/amd, which selects it", "feature.node.kubernetes.io/amd-gpu=true"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			n := l.chartNode(k.labels)
			k.edit(l, n)
			w := view.New(l.State)
			f := Of(w).OfMaker(w.Nodes["n"], amdGPU)
			if k.link == 0 {
				if f != nil {
					t.Errorf("%+v", f)
				}
				return
			}
			if f == nil || f.Link != k.link || f.State != k.state || f.Cause != k.cause || f.Certainty != k.sure || !strings.Contains(f.Says, k.says) {
				t.Fatalf("got %+v", f)
			}
			for _, m := range f.Mends {
				if m.Unproven == "" || m.Until != "" {
					t.Errorf("mend %+v", m)
				}
			}
			shown := ""
			for _, e := range f.Evidence {
				if text, is := strings.CutPrefix(e.Fact, "label "); is && e.Ref == "Node/n" {
					shown += text
				}
			}
			offers := "no allocatable amd.com/gpu"
			if _, announced := n.Status.Allocatable[amdGPU]; announced {
				offers = "allocatable amd.com/gpu=0"
			}
			if f.Evidence[0].Fact != offers || shown != k.label || len(f.Mends) == 0 {
				t.Errorf("shown by %+v, mends %+v", f.Evidence, f.Mends)
			}
		})
	}
}
