package changes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// A port of the host is given up by who can: the Service that a pod of ServiceLB stands for, else the workload; one of
// a DaemonSet has no other node.
func TestWhoGivesAPortUp(t *testing.T) {
	ports := func(p *corev1.Pod, numbers ...int32) {
		for _, n := range numbers {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: n})
		}
	}
	service := func(p *corev1.Pod, name string) {
		p.Labels = map[string]string{"svccontroller.k3s.cattle.io/svcname": name, "svccontroller.k3s.cattle.io/svcnamespace": "web"}
	}
	for name, tc := range map[string]struct {
		edit func(w *world, holder *corev1.Pod)
		want string
	}{
		"a Deployment's": {func(*world, *corev1.Pod) {}, "give deployment/w another host port than 80 and 443, or a node where nobody has it"},
		"a DaemonSet's": {func(w *world, _ *corev1.Pod) {
			yes := true
			w.Wait.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "w", Controller: &yes}}
		}, "give deployment/w another host port than 80 and 443"},
		"of the same workload": {func(_ *world, holder *corev1.Pod) {
			yes := true
			holder.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: "w", Controller: &yes}}
		}, "have no host port 80 and 443 in deployment/w, or a node for each of its pods: no two of them can be on one"},
		"of one that leaves": {func(_ *world, holder *corev1.Pod) { holder.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon} }, "wait until a/h is gone"},
		"of one that should have left": {func(_ *world, holder *corev1.Pod) {
			holder.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon.Add(-time.Hour)}
		}, "see why a/h does not end on n, whose time was over at 11:00:00 UTC"},
		"two Services'": {func(w *world, holder *corev1.Pod) {
			service(w.Wait, "mine")
			service(holder, "theirs")
		}, "give Service web/mine other ports than 80 and 443, or do without Service web/theirs, which has them"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
			holder := w.AddHolder("h", "n", "cpu", 0)
			ports(w.Wait, 80, 8080, 443)
			ports(holder, 443, 80)
			tc.edit(w, holder)
			c := w.bench(t, "Deployment")
			if got := c.freePort(c.Node("n")); len(got) != 1 || got[0].Title != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

// Huge pages that no kernel has set aside are asked of whom makes the nodes.
func TestHugePagesAreSetAside(t *testing.T) {
	w := newWorld()
	w.Asking(rcatest.List("hugepages-2Mi", "1Gi"))
	w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
	w.AddNode(sim.Node{Name: "m", MIGOff: []int{0}})
	w.Nodes[1].Status.Allocatable["hugepages-2Mi"] = resource.MustParse("1Gi")
	c := w.bench(t, "Deployment")
	got := c.setPagesAside(c.Node("n"))
	if len(got) != 1 || got[0].Title != "have a node set 1Gi of hugepages-2Mi aside, or deployment/w ask for none" || !strings.Contains(got[0].Commands[1], "512 pages") {
		t.Errorf("%+v", got)
	}
	if got := c.setPagesAside(c.Node("m")); got != nil {
		t.Errorf("they are there: %+v", got)
	}
}

// What was preempted and does not end is looked at, and is not waited for.
func TestOverdueVictims(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "h", DeletionTimestamp: &metav1.Time{Time: rcatest.Noon.Add(-time.Hour)}}, Spec: corev1.PodSpec{NodeName: "n"}}
	ch := endOverdue(diagnosis.PreemptionBlocked, p)
	if ch.Title != "see why a/h does not end on n, whose time was over at 11:00:00 UTC" || ch.Risk != "medium" || len(ch.Commands) != 5 {
		t.Errorf("%+v", ch)
	}
}
