package causes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/gangs"
	"github.com/unpend/unpend/rca/kubelet"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Open is the case of an incident before anything is asked about it.
func Open(l *evict.Ledger, i incident.Incident) (*Case, error) {
	w := l.Cluster
	refused := admission.RefusedOf(w, i)
	pod, unstarted := representative(w, i)
	unborn := pod == nil && len(refused.All) > 0
	if unborn {
		pod = refused.All[0].Pod
	}
	if pod == nil {
		return nil, fmt.Errorf("pod of incident %s is gone", i.ID)
	}
	on := ""
	if pod.Status.Phase == corev1.PodFailed {
		on = pod.Spec.NodeName
	}
	asked := asWhole(w, pod)
	c := &Case{Asker: l.ForPod(asked), Incident: i, Pod: unbound(asked), Refusal: pod.Status, Asks: view.AsksOf(asked), Wants: view.PodRequests(asked), Everywhere: map[diagnosis.CauseID]bool{}, entitled: map[diagnosis.CauseID]string{},
		Refused: refused, Unborn: unborn, Unstarted: unstarted, bound: slices.Contains(unstarted, pod)}
	c.Queue = c.queueCase()
	c.Labels, c.Company, c.volumes = terms.LabelsOf(c.Subject()), terms.CompanyOf(c.Subject(), c.Asker), terms.VolumesOf(c.Subject())
	c.Spread = terms.SpreadOf(c.Subject(), c.Labels)
	c.Kubelet = &kubelet.Case{Subject: c.Subject(), Workload: i.Workload, Refusal: c.Refusal, On: on, Asks: c.Asks, Wants: c.Wants, Scheduler: c.Queue.SchedulerName()}
	return c, nil
}

// Look asks the scheduler's filters, and reads the claims, the use of GPUs and the gang:
// all that the rules tell causes from.
func (c *Case) Look(ctx context.Context, inventory func() *devices.Inventory, ask diagnosis.Measure) error {
	var err error
	if c.Verdict, err = c.Cluster.Snapshot.Explain(ctx, c.Pod); err != nil {
		return fmt.Errorf("run the scheduler's filters: %w", err)
	}
	if err := meet(ctx, c); err != nil {
		return fmt.Errorf("run the scheduler's filters for the other pods: %w", err)
	}
	c.Queue.Fits = len(c.Verdict.Feasible()) > 0
	if c.bound { // the scheduler has chosen, so no node is kept from it
		for k := range c.Verdict.Nodes {
			c.Verdict.Nodes[k].Blockers = nil
		}
	}
	if c.Claims, err = devices.Read(ctx, inventory(), c.Asker, c.Pod, c.Wants, c.Verdict); err != nil {
		return fmt.Errorf("read the claims for devices: %w", err)
	}
	c.measure(ctx, ask)
	if c.Gang, err = gangs.Read(ctx, c.Subject(), c.Asker); err != nil {
		return fmt.Errorf("place the gang: %w", err)
	}
	return nil
}

// representative picks the waiting pod that the others are judged by: they have the
// same owner and the same requests. One of which the scheduler has spoken comes first, then
// the newest that a kubelet refused, for its owner may have made another a moment ago, then
// one that nobody has spoken of, and at last those that have a node and are not begun
// there, which are listed too.
func representative(w *view.Cluster, i incident.Incident) (pod *corev1.Pod, unstarted []*corev1.Pod) {
	rank := func(p *corev1.Pod) int {
		switch {
		case p.Status.Phase == corev1.PodFailed:
			return 1
		case len(p.Status.Conditions) > 0:
			return 0
		}
		return 2
	}
	for _, named := range i.Pods {
		p := w.State.Pod(i.Workload.Namespace, named.Name)
		switch {
		case p == nil:
		case incident.Unstarted(named.Reason):
			unstarted = append(unstarted, incident.WithKubelet([]*corev1.Pod{p}, w.State.Events, w.State.Now)[0])
		case pod == nil, rank(p) < rank(pod), rank(p) == 1 && rank(pod) == 1 && kubelet.RejectedAt(w, p).After(kubelet.RejectedAt(w, pod)):
			pod = p
		}
	}
	if pod == nil && len(unstarted) > 0 {
		pod = unstarted[0]
	}
	return pod, unstarted
}

// unbound is a pod that the kubelet refused as its next one will be: without a
// node. Others are themselves.
func unbound(p *corev1.Pod) *corev1.Pod {
	if p.Spec.NodeName == "" {
		return p
	}
	p = p.DeepCopy()
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{ResourceClaimStatuses: p.Status.ResourceClaimStatuses}
	return p
}
