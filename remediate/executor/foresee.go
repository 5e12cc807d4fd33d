package executor

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// Rails are the guard-rails of a namespace as they were read, with the plans that they go
// by, to tell what they would say of fixes that nobody has asked for yet.
type Rails struct {
	set       settings
	plans     []v1alpha1.Remediation
	namespace string
	led       bool   // an executor goes by all of them; else only what stops every plan holds
	unclear   string // why nobody can tell what they are: nothing is begun then
}

// ReadRails reads them; nil without an error where unpend carries nothing out: there are
// none. What may not be read is an error.
func ReadRails(ctx context.Context, d Deps, namespace string) (*Rails, error) {
	g := railsOf(d, namespace)
	set, err := g.read(ctx)
	if u, is := errors.AsType[*unclear](err); is {
		return &Rails{unclear: u.Error()}, nil
	}
	if apierrors.IsForbidden(err) && !Installed(d) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	led, err := leads(ctx, g)
	if err != nil {
		return nil, err
	}
	r := &Rails{set: set, namespace: namespace, led: led}
	if !led {
		return r, nil
	}
	if r.plans, err = (plan.Store{Dynamic: d.Dynamic}).List(ctx); err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list plans: %w", err)
	}
	return r, nil
}

// leads says whether an executor carries plans out, or did and has not said that it ends:
// whether its lease is renewed nobody waits for here.
func leads(ctx context.Context, g rails) (bool, error) {
	lease, err := g.Client.CoordinationV1().Leases(g.namespace).Get(ctx, LeaderLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && ptr.Deref(lease.Spec.HolderIdentity, "") != "", err
}

// Guard says what these guard-rails would say of fixes found in a state.
func (r *Rails) Guard(st *cluster.State) diagnosis.Guard {
	if r.unclear != "" {
		return func(incident.Incident, diagnosis.Fix) diagnosis.Held { return diagnosis.Held{Why: r.unclear} }
	}
	v := guard.View{Now: st.Now, Paused: r.set.paused, Breaker: r.set.breaker, Namespace: r.namespace, Nodes: st.Nodes, Plans: r.plans}
	if !r.led {
		why := r.set.limits.Stopped(guard.View{Now: v.Now, Paused: v.Paused, Breaker: v.Breaker, Namespace: v.Namespace})
		return func(incident.Incident, diagnosis.Fix) diagnosis.Held { return diagnosis.Held{Why: why} }
	}
	foresight, waiting := r.set.limits.Foresee(v), wanted(st)
	return func(i incident.Incident, f diagnosis.Fix) diagnosis.Held {
		verdict := foresight.Judge(&v1alpha1.Remediation{Spec: v1alpha1.RemediationSpec{Incident: i.ID, Kind: f.Kind, Kinds: f.Kinds, Nodes: f.Cost.Nodes,
			Expires: metav1.NewTime(st.Now.Add(plan.Lifetime)), Actions: f.Actions}}, waiting)
		return diagnosis.Held{Why: verdict.Reason, Refused: verdict.Decision == guard.Refuse}
	}
}

// wanted are, by incident, the GPU resources that pods without a node wait for.
func wanted(st *cluster.State) map[string][]corev1.ResourceName {
	out := map[string][]corev1.ResourceName{}
	for _, p := range st.Pods {
		if p.Spec.NodeName != "" || p.Status.Phase != corev1.PodPending {
			continue
		}
		names := gpuResources(p)
		if len(names) == 0 {
			continue
		}
		if id := incident.ID(incident.Topmost(p, st.Owner), incident.Requests(p)); out[id] == nil {
			out[id] = names
		}
	}
	return out
}
