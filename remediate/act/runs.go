package act

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// runs waits until a pod of the workload runs that did not run before, and for a while until
// fewer wait.
func (r *run) runs(ctx context.Context, e *journal.Entry) (string, error) {
	if r.DryRun {
		return "", nil
	}
	name, err := r.running(ctx)
	r.rem.Status.Pod = name
	switch {
	case err != nil:
		return "", err
	case name != "":
		return r.calm(ctx, e)
	}
	if missing, err := r.nominate(ctx, ""); err != nil || missing != "" {
		return missing, err
	}
	w := r.rem.Spec.Workload
	return "no pod of " + w.Kind + "/" + w.Name + " has started to run", nil
}

func (r *run) running(ctx context.Context) (string, error) {
	spec, status := r.rem.Spec, r.rem.Status
	pods, err := r.Client.CoreV1().Pods(spec.Workload.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list pods of %s: %w", spec.Workload.Namespace, err)
	}
	for _, p := range pods.Items {
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		// Creation times are whole seconds: of the pods of that second it is known
		// which were there.
		made := !p.CreationTimestamp.Time.Before(status.Began.Truncate(time.Second)) && !slices.Contains(status.Present, p.UID)
		waited := slices.ContainsFunc(spec.Waiting, func(w v1alpha1.Pod) bool { return w.UID == p.UID })
		if (made || waited) && r.belongs(ctx, &p) { // owners are read one by one
			return p.Namespace + "/" + p.Name, nil
		}
	}
	return "", nil
}

// belongs says whether the pod is one of the incident's workload.
func (r *run) belongs(ctx context.Context, p *corev1.Pod) bool {
	return incident.Topmost(p, r.owners(ctx)) == r.rem.Spec.Workload
}

// owners reads owners from the API server, each once.
func (r *run) owners(ctx context.Context) incident.Lookup {
	read := map[incident.Ref]metav1.Object{}
	return func(kind, ns, name string) (metav1.Object, bool) {
		ref := incident.Ref{Kind: kind, Namespace: ns, Name: name}
		o, known := read[ref]
		if !known {
			if found, err := r.owner(ctx, ref); err == nil {
				o = found
			}
			read[ref] = o
		}
		return o, o != nil
	}
}

// owner reads one. owners.ErrUnread: nobody here reads its kind.
func (r *run) owner(ctx context.Context, ref incident.Ref) (metav1.Object, error) {
	if incident.OwnKind(ref.Kind) {
		return r.object(ctx, diagnosis.Target{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name})
	}
	if r.single == nil {
		r.single = r.Owners.Single(r.Client.Discovery())
	}
	return r.single.Get(ctx, ref.Kind, ref.Namespace, ref.Name)
}

// calm says what is missing until no more pods wait than were announced, and fewer than
// before, and the controller has made all that it wants, once one runs: a rollout goes on
// meanwhile. Where the pods were refused none waited before, and each of those that the
// controller makes now waits for a moment. It is no failure when that is not so.
func (r *run) calm(ctx context.Context, e *journal.Entry) (string, error) {
	b := r.rem.Status.Before
	if b == nil || b.Waiting == 0 && b.Announced == nil || e.Since(r.Now()) >= r.Deadlines.Calm || !r.Now().Add(r.Deadlines.Calm).Before(e.Deadline.Time) {
		return "", nil
	}
	own, all, err := r.waiting(ctx)
	if err != nil {
		return "", err
	}
	settled, err := r.settled(ctx)
	if err != nil {
		return "", err
	}
	if settled && (b.Waiting == 0 || own < b.Waiting) && (b.Announced == nil || all <= *b.Announced) {
		return "", nil
	}
	return fmt.Sprintf("%s runs, and %d still %s", r.rem.Status.Pod, all, either(all == 1, "waits", "wait")), nil
}
