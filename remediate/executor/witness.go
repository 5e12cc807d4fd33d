package executor

import (
	"context"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Witness is d for a plan that a terminal carries out where nothing can keep it on record: its
// approval and its end are Events on the pod that waits and on the nodes that it changes.
// That one could not be made stops nothing; untold is told of it.
func Witness(d Deps, who string, untold func(error)) Deps {
	failures := prometheus.NewCounter(prometheus.CounterOpts{Name: "unpend_untold"})
	w := witness{d, who, audit.NewEvents(d.Client, "terminal", d.Now, failures)}
	d.Observe = func(ctx context.Context, rem *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) error {
		if e != nil || d.DryRun {
			return nil
		}
		if err := w.tell(context.WithoutCancel(ctx), rem, result); err != nil {
			untold(err)
		}
		return nil
	}
	return d
}

// witness tells of plans by Events.
type witness struct {
	Deps
	who    string
	events *audit.Events
}

func (w witness) tell(ctx context.Context, rem *v1alpha1.Remediation, result audit.Result) error {
	r := audit.Record{Time: w.Now(), Plan: rem.Name, Incident: rem.Spec.Incident, Step: "plan", Text: rem.Spec.Title, Result: result, Why: rem.Status.Message, Actor: w.who, Approvers: []string{w.who}}
	var failed error
	for _, about := range w.objects(ctx, rem) {
		failed = errors.Join(failed, w.events.Tell(ctx, r, about, nil))
	}
	return failed
}

// objects are the first pod that waits, or that runs now, and the nodes.
func (w witness) objects(ctx context.Context, rem *v1alpha1.Remediation) []corev1.ObjectReference {
	var out []corev1.ObjectReference
	if len(rem.Spec.Waiting) > 0 {
		p := rem.Spec.Waiting[0]
		out = append(out, corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: rem.Spec.Workload.Namespace, Name: p.Name, UID: p.UID})
	}
	nodes := slices.Clone(rem.Spec.Nodes)
	if rem.Spec.Node != "" && !slices.Contains(nodes, rem.Spec.Node) {
		nodes = append(nodes, rem.Spec.Node)
	}
	for _, name := range nodes {
		uid := types.UID(name) // as the kubelet writes it, where the node cannot be read
		if n, err := w.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}); err == nil {
			uid = n.UID
		}
		out = append(out, corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: uid})
	}
	return out
}
