package tally

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// Running names a pod of the workload that runs and that did not before the plan began; empty where
// there is none.
func (t *Tally) Running(ctx context.Context) (string, error) {
	spec, status := t.rem.Spec, t.rem.Status
	pods, err := t.client.CoreV1().Pods(spec.Workload.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list pods of %s: %w", spec.Workload.Namespace, err)
	}
	for _, p := range pods.Items {
		if _, _, waits := incident.Waiting(&p); waits || p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		// Creation times are whole seconds: of the pods of that second it is known
		// which were there.
		made := !p.CreationTimestamp.Time.Before(status.Began.Truncate(time.Second)) && !slices.Contains(status.Present, p.UID)
		waited := slices.ContainsFunc(spec.Waiting, func(w v1alpha1.Pod) bool { return w.UID == p.UID })
		if (made || waited) && t.belongs(ctx, &p) { // owners are read one by one
			return p.Namespace + "/" + p.Name, nil
		}
	}
	return "", nil
}

// belongs says whether the pod is one of the incident's workload.
func (t *Tally) belongs(ctx context.Context, p *corev1.Pod) bool {
	return incident.Topmost(p, t.owners(ctx)) == t.rem.Spec.Workload
}

// owners reads owners from the API server, each once.
func (t *Tally) owners(ctx context.Context) incident.Lookup {
	read := map[incident.Ref]metav1.Object{}
	return func(kind, ns, name string) (metav1.Object, bool) {
		ref := incident.Ref{Kind: kind, Namespace: ns, Name: name}
		o, known := read[ref]
		if !known {
			if found, err := t.owner(ctx, ref); err == nil {
				o = found
			}
			read[ref] = o
		}
		return o, o != nil
	}
}

// owner reads one. owners.ErrUnread: nobody here reads its kind.
func (t *Tally) owner(ctx context.Context, ref incident.Ref) (metav1.Object, error) {
	if incident.OwnKind(ref.Kind) {
		return plan.Object(ctx, t.client, diagnosis.Target{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
	}
	if t.single == nil {
		t.single = t.reader.Single(t.client.Discovery())
	}
	return t.single.Get(ctx, ref.Kind, ref.Namespace, ref.Name)
}

// Calm says what is missing until no more pods wait than were announced, and fewer than
// before, and the controller has made all that it wants, once one runs: a rollout goes on
// meanwhile. Where the pods were refused none waited before, and each of those that the
// controller makes now waits for a moment. It is no failure when that is not so.
func (t *Tally) Calm(ctx context.Context, e *journal.Entry, now time.Time, moment time.Duration) (string, error) {
	b := t.rem.Status.Before
	if b == nil || b.Waiting == 0 && b.Announced == nil || e.Since(now) >= moment || !now.Add(moment).Before(e.Deadline.Time) {
		return "", nil
	}
	own, all, err := t.waiting(ctx)
	if err != nil {
		return "", err
	}
	settled, err := t.settled(ctx)
	if err != nil {
		return "", err
	}
	if settled && (b.Waiting == 0 || own < b.Waiting) && (b.Announced == nil || all <= *b.Announced) {
		return "", nil
	}
	return fmt.Sprintf("%s runs, and %d still %s", t.rem.Status.Pod, all, either(all == 1, "waits", "wait")), nil
}

// Others are the workload's pods that were not there when the plan was made and begun, the
// oldest first.
func (t *Tally) Others(ctx context.Context) ([]*corev1.Pod, error) {
	spec := t.rem.Spec
	pods, err := t.client.CoreV1().Pods(spec.Workload.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods of %s: %w", spec.Workload.Namespace, err)
	}
	var out []*corev1.Pod
	for i := range pods.Items {
		p := &pods.Items[i]
		old := slices.Contains(t.rem.Status.Present, p.UID) || slices.ContainsFunc(spec.Waiting, func(w v1alpha1.Pod) bool { return w.UID == p.UID })
		if !old && p.DeletionTimestamp == nil && t.belongs(ctx, p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	return out, nil
}
