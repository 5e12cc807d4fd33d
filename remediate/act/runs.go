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

// runs waits until a pod of the workload runs that did not run before.
func (r *run) runs(ctx context.Context, _ *journal.Entry) (string, error) {
	if r.DryRun {
		return "", nil
	}
	name, err := r.running(ctx)
	if err != nil || name != "" {
		r.rem.Status.Pod = name
		return "", err
	}
	if n := r.nomination(); n != nil {
		if missing, err := r.nominate(ctx, n.node); err != nil || missing != "" {
			return missing, err
		}
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
	lookup := func(kind, ns, name string) (metav1.Object, bool) {
		if kind != "ReplicaSet" && kind != "Job" {
			return nil, false
		}
		o, err := r.object(ctx, diagnosis.Target{Kind: kind, Namespace: ns, Name: name})
		return o, err == nil
	}
	return incident.Topmost(p, lookup) == r.rem.Spec.Workload
}
