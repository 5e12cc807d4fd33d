package acceptance

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/testdata/controlplane"
)

// Kubernetes' own gang scheduling, with the real scheduler: the gang waits whole, is
// diagnosed as in the dump, and after the approved evictions all of it runs.
func TestAGangOfKubernetesRuns(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{Gates: []string{"GenericWorkload=true"}, APIs: []string{"scheduling.k8s.io/v1beta1"}})
	const scenario = "GangIncomplete-kubernetes"
	st, err := dump.Read([]string{filepath.Join(scenarios, scenario)}, nil)
	must(t, err)
	r := &replay{c: c, st: st, shift: time.Since(st.Now)}
	r.make(t)
	w := readWant(t, scenario)
	d := why(t, "-A", "--kubeconfig", c.Kubeconfig())
	w.check(t, d)
	if t.Failed() {
		return
	}
	r.apply(t, d)
	controlplane.Eventually(t, 30*time.Second, "all members run", func() (bool, string) {
		pods, err := c.Client().CoreV1().Pods("demo").List(t.Context(), metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=train"})
		if err != nil {
			return false, err.Error()
		}
		runs := 0
		for _, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning {
				runs++
			}
		}
		return runs == 4 && len(pods.Items) == 4, fmt.Sprintf("%d of %d", runs, len(pods.Items))
	})
}
