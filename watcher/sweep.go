package watcher

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/watcher/incident"
)

// sweep is what the API server said when it was asked without any signal.
type sweep struct {
	at      string                    // the resourceVersion the answer stands for
	waiting map[types.UID]*corev1.Pod // all that waited then, or may wait by an event
}

// sweepPage bounds one answer: pods that failed may lie around by the thousands.
const sweepPage = 500

// sweep asks again what is true and what was published of it.
func (w *Watcher) sweep(ctx context.Context) {
	for _, ask := range []func(context.Context) error{w.look, w.recall} {
		if err := ask(ctx); err != nil && ctx.Err() == nil {
			w.opts.Logger.WarnContext(ctx, "a sweep fails and is done again at its time", "error", err)
		}
	}
}

// look asks the API server for the pods that wait. Those are pending without a
// node, failed because the kubelet refused them, or still starting there; no other pods
// travel.
func (w *Watcher) look(ctx context.Context) error {
	w.turn()
	next := sweep{waiting: map[types.UID]*corev1.Pod{}}
	for _, selector := range []string{"spec.nodeName=,status.phase=" + string(corev1.PodPending), "status.phase=" + string(corev1.PodFailed), "spec.nodeName!=,status.phase=" + string(corev1.PodPending)} {
		at, err := w.ask(ctx, selector, next.waiting)
		if err != nil {
			return err
		}
		if next.at == "" { // the first answer is the older one
			next.at = at
		}
	}
	w.swept = next
	return nil
}

// ask adds the waiting pods of one selector, a page at a time.
func (w *Watcher) ask(ctx context.Context, selector string, into map[types.UID]*corev1.Pod) (at string, err error) {
	opts := metav1.ListOptions{FieldSelector: selector, Limit: sweepPage}
	for {
		list, err := w.opts.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, opts)
		if err != nil {
			return "", fmt.Errorf("list pods with %s: %w", selector, err)
		}
		for i := range list.Items {
			if p := &list.Items[i]; mayWait(p) {
				trim(p) //nolint:errcheck // it has no errors
				into[p.UID] = p
			}
		}
		if opts.Continue = list.Continue; opts.Continue == "" {
			return list.ResourceVersion, nil
		}
	}
}

// mayWait says whether a pod waits, or would if an event said so.
func mayWait(p *corev1.Pod) bool {
	_, _, ok := incident.Waiting(p)
	return ok || incident.Starting(p)
}

func (w *Watcher) waits(p *corev1.Pod) bool {
	_, _, ok := incident.Waiting(p)
	if !ok && incident.Starting(p) {
		_, _, ok = incident.Waiting(w.completed([]*corev1.Pod{p})[0])
	}
	return ok
}

// completed is pods with what the kubelets' events say of them.
func (w *Watcher) completed(pods []*corev1.Pod) []*corev1.Pod {
	return incident.WithKubelet(pods, listed[*corev1.Event](w.refusing[kindEvent]), w.opts.Now())
}

// view is every pod as far as it is known: what the watch told, corrected by the
// last sweep where that one knew better.
func (w *Watcher) view() []*corev1.Pod {
	objs := w.pods.GetStore().List()
	out := make([]*corev1.Pod, 0, len(objs))
	told := make(map[types.UID]bool, len(w.swept.waiting))
	for _, o := range objs {
		p := o.(*corev1.Pod)
		q := w.swept.waiting[p.UID]
		switch {
		case q != nil && incident.Newer(q.ResourceVersion, p.ResourceVersion):
			p = q
		case q == nil && w.swept.at != "" && p.Status.Phase != corev1.PodRunning && mayWait(p) && !incident.Newer(p.ResourceVersion, w.swept.at):
			continue // it had stopped to wait by then, and the watch does not know; the Running were not asked for
		}
		told[p.UID] = true
		out = append(out, p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for uid, p := range w.swept.waiting {
		if !told[uid] && !w.gone[uid] {
			out = append(out, p)
		}
	}
	return w.completed(out)
}
