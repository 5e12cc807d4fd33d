package outside_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/rcatest"
)

// Who holds the CPU of nodes with GPUs, and asks for none, is named where Kueue leaves these out of a topology for it.
func TestWhoCrowdsADomain(t *testing.T) {
	const (
		crowded = `topology \"nvlink\" allows to fit only 1 out of 4 pod(s). Total nodes: 16; excluded: resource \"cpu\": 14`
		waits   = "by hand, none risk: wait until its queue admits it"
		named   = "by hand, none risk: wait until who asks for no GPU, a/cpu, lets go of the cpu of 1 node with GPUs, or have them leave one domain of the topology"
	)
	for name, tc := range map[string]struct {
		why  string
		edit func(p *corev1.Pod)
		want string
	}{
		"by CPU":         {crowded, func(*corev1.Pod) {}, named},
		"by GPUs":        {`topology \"nvlink\" allows to fit only 1 out of 4 pod(s). excluded: resource \"nvidia.com/gpu\": 14`, func(*corev1.Pod) {}, waits},
		"in other words": {"is told to wait", func(*corev1.Pod) {}, waits},
		"one asks a GPU": {crowded, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = rcatest.List("nvidia.com/gpu", "1")["nvidia.com/gpu"]
		}, waits},
		"of a DaemonSet": {crowded, func(p *corev1.Pod) {
			yes := true
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
		}, waits},
		"it asks nothing": {crowded, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }, waits},
	} {
		w := edittest.New()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
		cpu := rcatest.Victim("cpu", 0, 0, 0, "cpu")
		cpu.Spec.NodeName, cpu.UID, cpu.OwnerReferences = "n", "c", nil
		cpu.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: rcatest.List("cpu", "8")}}}
		tc.edit(cpu)
		w.Pods = append(w.Pods, cpu)
		w.Asking(rcatest.List("nvidia.com/gpu", "1", "cpu", "12"))
		add(t, &w.QueuedWorkloads, `{metadata: {namespace: a, name: wl}, spec: {queueName: team}, status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: "`+tc.why+`"}]}}`)
		w.Wait.Annotations = map[string]string{"kueue.x-k8s.io/workload": "wl"}
		if got := edittest.ToldAll(outside.LetInByQueue(edit.New(w.Case(t, "Deployment")))); got != tc.want {
			t.Errorf("%s: %s\nwant %s", name, got, tc.want)
		}
	}
}
