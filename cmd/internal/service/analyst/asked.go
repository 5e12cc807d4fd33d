package analyst

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/remediate/kubectl"
	"github.com/unpend/unpend/watcher/incident"
)

// Asked are the questions that people have written on objects, and that wait.
type Asked struct {
	mu    sync.Mutex
	wait  map[types.UID]Question
	last  string // namespace that was answered last
	Woken chan struct{}
}

// Question is one of them.
type Question struct {
	kubectl.Question
	Made  time.Time // the object
	Tries int
}

// NewAsked has none.
func NewAsked() *Asked { return &Asked{wait: map[types.UID]Question{}, Woken: make(chan struct{}, 1)} }

// See notes a question, or that an object has none any more.
func (a *Asked) See(kind schema.GroupVersionKind, o cluster.Object) {
	q, asks := kubectl.Asked(kind, o)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !asks {
		delete(a.wait, o.GetUID())
		return
	}
	if before, known := a.wait[q.About.UID]; known && before.Value == q.Value {
		return
	}
	a.wait[q.About.UID] = Question{Question: q, Made: o.GetCreationTimestamp().Time}
	select {
	case a.Woken <- struct{}{}:
	default:
	}
}

// Next takes a question: namespaces have turns, so that one with many holds up no other.
func (a *Asked) Next() (Question, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.SortedFunc(maps.Values(a.wait), func(x, y Question) int {
		return cmp.Or(cmp.Compare(x.About.Namespace, y.About.Namespace), cmp.Compare(x.Tries, y.Tries), cmp.Compare(x.About.UID, y.About.UID))
	})
	if len(all) == 0 {
		return Question{}, false
	}
	at := max(0, slices.IndexFunc(all, func(q Question) bool { return q.About.Namespace > a.last }))
	q := all[at]
	a.last = q.About.Namespace
	delete(a.wait, q.About.UID)
	return q, true
}

// Again puts a question back, unless there is a newer one of the same object.
func (a *Asked) Again(q Question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, newer := a.wait[q.About.UID]; !newer {
		a.wait[q.About.UID] = q
	}
}

// Answer is the answer from a state; false where nothing of it waits.
func Answer(ctx context.Context, st *cluster.State, opts rca.Options, q kubectl.Question) (a kubectl.Answer, waits bool, err error) {
	ids, phases := askedFor(st, q)
	opts.Only, opts.Logger = func(i incident.Incident) bool { return ids[i.ID] }, nil
	found, err := rca.Diagnose(ctx, st, opts)
	if err != nil {
		return a, false, err
	}
	if len(found) == 0 {
		return kubectl.Waitless(q, waitless(st, q, phases)), false, nil
	}
	first, err := found[0].Travelled()
	if err != nil {
		return a, true, err
	}
	var others []string
	for _, d := range found[1:] {
		others = append(others, d.Incident)
	}
	return kubectl.Explained(first, others), true, nil
}

// askedFor are the incidents that pods of an object belong to, and how many of those pods are
// in which phase.
func askedFor(st *cluster.State, q kubectl.Question) (ids map[string]bool, phases map[corev1.PodPhase]int) {
	ids, phases = map[string]bool{}, map[corev1.PodPhase]int{}
	mine := func(p *corev1.Pod) bool {
		return p.Namespace == q.About.Namespace && slices.Contains(incident.Owners(p, st.Owner), incident.Ref{Kind: q.About.Kind, Namespace: q.About.Namespace, Name: q.About.Name})
	}
	note := func(p *corev1.Pod) {
		ids[incident.ID(incident.Topmost(p, st.Owner), incident.Requests(p))] = true
	}
	for _, p := range st.Pods {
		if mine(p) {
			phases[p.Status.Phase]++
			note(p)
		}
	}
	for _, r := range admission.Refusals(st) {
		if mine(r.Pod) {
			note(r.Pod)
		}
	}
	return ids, phases
}

// waitless says why nothing of an object waits, or that nobody can know.
func waitless(st *cluster.State, q kubectl.Question, phases map[corev1.PodPhase]int) string {
	if why := st.Unread["Pod"]; why != "" {
		return "waits or not, which is not known: pods are unread (" + why + ")"
	}
	return "does not wait: " + instead(st, q, phases)
}

// instead is what an object does that does not wait.
func instead(st *cluster.State, q kubectl.Question, phases map[corev1.PodPhase]int) string {
	if q.About.Kind == "Pod" {
		if p := st.Pod(q.About.Namespace, q.About.Name); p != nil {
			if p.Spec.NodeName != "" {
				return "it is " + incident.Standing(p)
			}
			return fmt.Sprintf("it is %s, and no scheduler has refused it", p.Status.Phase)
		}
		return "it is gone"
	}
	var parts []string
	for _, phase := range slices.Sorted(maps.Keys(phases)) {
		parts = append(parts, fmt.Sprintf("%d %s", phases[phase], phase))
	}
	if len(parts) == 0 {
		return "it has no pods"
	}
	return "of its pods are " + strings.Join(parts, ", ")
}
