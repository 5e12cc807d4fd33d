package full

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/view"
)

// forsaken is how long a group that somebody made by hand may have no pod before it counts as left behind.
const forsaken = 20 * time.Minute

// Podless are groups that Volcano counts as using what the nodes have (phase Inqueue), that nothing owns, and that have had no pod
// for a while: their pods have ended and are gone, and they stay (volcano issue 2633). None where pods were not read.
func Podless(c *queues.Case) []*unstructured.Unstructured {
	st := c.Cluster.State
	if st.Unread["Pod"] != "" {
		return nil
	}
	members := map[types.NamespacedName]bool{}
	for _, p := range st.Pods {
		if _, name := view.Membership(p); name != "" {
			members[types.NamespacedName{Namespace: p.Namespace, Name: name}] = true
		}
	}
	own := c.Group()
	return slices.DeleteFunc(slices.Clone(st.PodGroups.Volcano), func(g *unstructured.Unstructured) bool {
		return g == own || phaseOf(g) != "Inqueue" || metav1.GetControllerOfNoCopy(g) != nil || st.Now.Sub(g.GetCreationTimestamp().Time) < forsaken ||
			members[types.NamespacedName{Namespace: g.GetNamespace(), Name: g.GetName()}]
	})
}

func phaseOf(g *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(g.Object, "status", "phase") //nolint:errcheck // what is no text is no phase
	return phase
}
