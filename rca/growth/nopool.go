package growth

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// noPool tells of a Karpenter that runs and has no NodePool: it makes machines for nobody, and tells no pod so
// (pkg/controllers/provisioning/provisioner.go, ErrNodePoolsNotFound). One of before v0.32 has none by that name.
func noPool(c *Case, g *Growth) {
	st := c.Cluster.State
	if !c.stopped() || st.Unread["NodePool"] != "" || st.Unread["Pod"] != "" {
		return
	}
	for _, p := range st.Pods {
		if !view.Ready(p) || !runsKarpenter(p) {
			continue
		}
		g.Karpenter, g.Bar, g.Suits = true, scaling.NoPool, scaling.AsksKarpenter(c.Pod)
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "Karpenter runs and has no NodePool, so it brings no node, and says so in its log alone",
			diagnosis.Fact(view.PodRef(p), "is Ready and runs "+view.Cut(p.Spec.Containers[0].Image, 80), diagnosis.That("status.conditions[type=Ready].status", "", diagnosis.Is, "True")))
		return
	}
}

// runsKarpenter goes by the image of the providers' controllers, of a version that has NodePools.
func runsKarpenter(p *corev1.Pod) bool {
	if metav1.GetControllerOfNoCopy(p) == nil {
		return false
	}
	_, tag, _ := strings.Cut(path.Base(scaling.KarpenterOf(&p.Spec)), ":")
	return scaling.KarpenterOf(&p.Spec) != "" && !strings.HasPrefix(strings.TrimPrefix(tag, "v"), "0.")
}
