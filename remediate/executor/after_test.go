package executor

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// A pod that nobody named and that stops while a plan goes on is told when it has ended; one
// that ends by itself is not.
func TestWhoStoppedUnnamedIsTold(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(*testing.T, *cell)
		says string
	}{
		{"deleted", func(t *testing.T, c *cell) {
			now := int64(0)
			if err := c.Client().CoreV1().Pods(c.ns).Delete(t.Context(), "notebook", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
				t.Error(err)
			}
		}, " runs, but 1 pod that was not named stopped: NS/notebook"},
		{"it ends by itself", func(t *testing.T, c *cell) { c.complete(t, "notebook") }, " runs"},
		{"nothing", func(*testing.T, *cell) {}, " runs"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCell(t)
			node := c.gpuNode(t, 1, func(n *sim.Node) { n.Cordoned = true })
			for _, name := range []string{"notebook", "other"} {
				s := spec("", "1")
				s.NodeName = node
				c.pod(t, name, s)
				c.running(t, name, 1)
			}
			c.job(t, on(node, spec("1g.5gb", "")))
			d, f := c.finds(t, diagnosis.UncordonNode)
			c.on["wait until the pod runs"] = func() { tc.do(t, c) }
			rem := c.recorded(t, d, f)
			c.decide(t, rem, "alice", v1alpha1.Approve)
			rem = c.carriedOut(t, rem.Name, c.executor)
			says := strings.ReplaceAll(tc.says, "NS", c.ns)
			if st := rem.Status; st.Phase != v1alpha1.Succeeded || !strings.HasSuffix(st.Message, says) || !strings.HasPrefix(st.Message, c.ns+"/training-") {
				t.Errorf("%s: %s, want %s", st.Phase, st.Message, says)
			}
			if st := rem.Status; st.Before == nil || st.After == nil || st.Before.Waiting != 1 || st.After.Waiting != 0 || len(st.Before.Running) != 2 {
				t.Errorf("%+v, %+v", st.Before, st.After)
			}
		})
	}
}

// complete has a pod end well.
func (c *cell) complete(t *testing.T, name string) {
	t.Helper()
	controlplane.Eventually(t, 10*time.Second, "pod "+name+" has ended", func() (bool, string) {
		p, err := c.Client().CoreV1().Pods(c.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		p.Status.Phase = corev1.PodSucceeded
		_, err = c.Client().CoreV1().Pods(c.ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
		return err == nil, ""
	})
}

// A plan by which a pod runs, and as many wait as before, says so: by the executor and at a
// terminal.
func TestAsManyWaitAsBefore(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		t.Run(map[bool]string{false: "executor", true: "terminal"}[terminal], func(t *testing.T) {
			c := newCell(t)
			c.deps.Deadlines.Calm = 2 * time.Second
			_, d, f := c.half(t, "Job")
			c.on["make job/training again"] = func() { // somebody takes the other node's GPU
				s := spec("", "")
				s.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
				c.pod(t, "thief", on(c.name(2), s))
				c.running(t, "thief", 1)
			}
			var message string
			if terminal {
				out, err := c.apply(t, d, f)
				if err != nil {
					t.Fatal(err)
				}
				message = out.Says
				if out.Restarted != 1 || out.After == nil || out.After.Waiting != 1 || len(out.After.Stopped) != 0 {
					t.Errorf("%+v", out)
				}
			} else {
				rem := c.recorded(t, d, f)
				c.decide(t, rem, "alice", v1alpha1.Approve)
				rem = c.carriedOut(t, rem.Name, c.executor)
				message = rem.Status.Message
				if rem.Status.Phase != v1alpha1.Succeeded {
					t.Error(rem.Status.Phase)
				}
			}
			if !strings.HasPrefix(message, c.ns+"/training-") || !strings.HasSuffix(message, " runs, but as many wait as before (1)") {
				t.Error(message)
			}
		})
	}
}
