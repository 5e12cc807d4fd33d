package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR21: plan A gives each of ten nodes, in short of four, another layout; plan B, for a Job that
// came afterwards, would take that back. B is refused with the reason, and writes
// nothing. One node gets a plan for a third layout: that may be.
func promiseR21(t *testing.T) {
	needsControlPlane(t)
	nodes := controlplane.Of(4, 10)
	p := newPool(t, nodes)
	p.guards(t, "{nodesInFlight: 10, poolUnavailablePercent: 100, coolDown: 0s}") // what else would hold B back
	for _, node := range p.nodes {
		p.waits(t, node, "2g.10gb", 1)
	}
	forward := p.plans(t, p.nodes...)
	p.approve(t, forward)
	proxy := newFaultProxy(t, p.lane, p.ns, "executor-"+p.ns)
	startExecutor(t, "executor-0", executorConfig(t, p.ns, ""), proxy)
	p.end(t, 3*time.Minute, forward) // that they end is held, not how fast
	phases(t, forward, v1alpha1.Succeeded)
	p.leave(t)
	before := proxy.made()

	for _, node := range p.nodes {
		p.waits(t, node, "1g.5gb", 7)
	}
	back := p.plans(t, p.nodes...)
	p.approve(t, back)
	p.end(t, 3*time.Minute, back)
	refused := 0
	for node, rem := range back {
		reason := fmt.Sprintf("it would take node %s back to %q, which plan %s#%d (%.8s) changed at ", node, "all-1g.5gb", forward[node].Spec.Incident, forward[node].Spec.Fix, forward[node].Name)
		if rem.Status.Phase == v1alpha1.Refused && strings.HasPrefix(rem.Status.Message, reason) && len(rem.Status.Journal) == 0 {
			refused++
		} else {
			t.Errorf("plan B of %s: %s: %s", node, rem.Status.Phase, rem.Status.Message)
		}
	}
	writes := slices.DeleteFunc(proxy.made()[len(before):], func(w string) bool { return strings.HasPrefix(w, "PUT remediations/status ") })
	if len(writes) != 0 {
		t.Errorf("written for refused plans: %v", writes)
	}
	p.third(t)
	report(t, refused, nodes, fmt.Sprintf("\"%s\"; 0 writes for them; a plan for a third layout was carried out", back[p.nodes[0]].Status.Message))
}

// leave deletes the Jobs, and waits until nobody holds or waits for anything.
func (p *pool) leave(t *testing.T) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	must(t, p.Client().BatchV1().Jobs(p.ns).DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{}))
	controlplane.Eventually(t, 30*time.Second, "the Jobs' pods are gone", func() (bool, string) {
		list, err := p.Client().CoreV1().Pods(p.ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		return len(list.Items) == 0, fmt.Sprint(len(list.Items), " pods")
	})
}

// third asks for a layout that the first node has never had.
func (p *pool) third(t *testing.T) {
	t.Helper()
	p.leave(t)
	node := p.nodes[0]
	p.waits(t, node, "7g.40gb", 1)
	plans := p.plans(t, node)
	p.approve(t, plans)
	p.end(t, 3*time.Minute, plans)
	phases(t, plans, v1alpha1.Succeeded)
}
