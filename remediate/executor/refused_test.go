package executor

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// A bare pod that a kubelet has refused is made again without its node: the scheduler binds
// the new one, nobody else stops, and nothing of the copy is left.
func TestARefusedPodIsMadeAgain(t *testing.T) {
	c := newCell(t)
	node := c.gpuNode(t, 1)
	c.pod(t, "neighbour", spec("1g.5gb", ""))
	c.pod(t, "notebook", spec("1g.5gb", ""))
	neighbour := c.running(t, "neighbour", 1)[0]
	was := c.running(t, "notebook", 1)[0]
	const words = "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/mig-1g.5gb. Requested: 1, Available: 0, which is unexpected"
	controlplane.Eventually(t, 10*time.Second, "the kubelet's refusal is written", func() (bool, string) {
		p, err := c.Client().CoreV1().Pods(c.ns).Get(t.Context(), "notebook", metav1.GetOptions{})
		if err == nil {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", Message: words}
			_, err = c.Client().CoreV1().Pods(c.ns).UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
	d, f := c.finds(t, diagnosis.RecreatePod)
	if f.Proof.Node != node || !f.Automatic || f.Risk != diagnosis.LowRisk || len(f.Cost.Evictions)+len(f.Cost.Restarts) > 0 {
		t.Errorf("%+v", f)
	}
	if out, err := c.apply(t, d, f); err != nil || out.Evicted != 0 || out.Pod != c.ns+"/notebook" {
		t.Fatalf("%+v, %v", out, err)
	}
	is := c.running(t, "notebook", 1)[0]
	if is.UID == was.UID || is.Spec.NodeName != node {
		t.Errorf("uid %s, it was %s; on %q, want %q", is.UID, was.UID, is.Spec.NodeName, node)
	}
	if still := c.running(t, "neighbour", 1)[0]; still.UID != neighbour.UID {
		t.Error("the neighbour was stopped")
	}
	if jobs, err := c.Client().BatchV1().Jobs(c.ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(jobs.Items) > 0 {
		t.Errorf("%d jobs, %v", len(jobs.Items), err)
	}
}
