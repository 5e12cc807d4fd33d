package service

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

const (
	// betweenAnswers is the pause after each: who may annotate a pod may ask, and each
	// question costs a diagnosis.
	betweenAnswers = time.Second
	// tooYoung is how old an object is of which nobody waits before that is said of it: its pods
	// may be on their way.
	tooYoung = 5 * time.Second
	// answerTries is after how many failures a question is given up, until it is asked again.
	answerTries = 5
)

// asked are the questions that people have written on objects, and that wait.
type asked struct {
	mu    sync.Mutex
	wait  map[types.UID]question
	last  string // namespace that was answered last
	woken chan struct{}
}

type question struct {
	kubectl.Question
	made  time.Time // the object
	tries int
}

func newAsked() *asked { return &asked{wait: map[types.UID]question{}, woken: make(chan struct{}, 1)} }

// see notes a question, or that an object has none any more.
func (a *asked) see(kind schema.GroupVersionKind, o cluster.Object) {
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
	a.wait[q.About.UID] = question{Question: q, made: o.GetCreationTimestamp().Time}
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

// next takes a question: namespaces have turns, so that one with many holds up no other.
func (a *asked) next() (question, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.SortedFunc(maps.Values(a.wait), func(x, y question) int {
		return cmp.Or(cmp.Compare(x.About.Namespace, y.About.Namespace), cmp.Compare(x.tries, y.tries), cmp.Compare(x.About.UID, y.About.UID))
	})
	if len(all) == 0 {
		return question{}, false
	}
	at := max(0, slices.IndexFunc(all, func(q question) bool { return q.About.Namespace > a.last }))
	q := all[at]
	a.last = q.About.Namespace
	delete(a.wait, q.About.UID)
	return q, true
}

// again puts a question back, unless there is a newer one of the same object.
func (a *asked) again(q question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, newer := a.wait[q.About.UID]; !newer {
		a.wait[q.About.UID] = q
	}
}

// answerPeople answers who asks by an annotation, for as long as this process leads.
func (s *Service) answerPeople(ctx context.Context, f *cluster.Follower, opts rca.Options) error {
	k, err := s.kubectl("kubectl-asked")
	if err != nil {
		return err
	}
	a := newAsked()
	if err := f.OnAnnotated(kubectl.Why, a.see); err != nil {
		return err
	}
	for {
		term, err := s.lead.wait(ctx)
		if err != nil {
			return nil // it ends
		}
		q, found := a.next()
		var due <-chan time.Time
		if found {
			s.answer(term, k, f, opts, a, q)
			due = time.After(betweenAnswers)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-due:
		case <-wakes(a.woken, found):
		}
	}
}

// wakes is nil while a pause has to pass first.
func wakes(woken <-chan struct{}, pause bool) <-chan struct{} {
	if pause {
		return nil
	}
	return woken
}

func (s *Service) answer(ctx context.Context, k *kubectl.Kubectl, f *cluster.Follower, opts rca.Options, a *asked, q question) {
	says, known, err := explainAsked(ctx, f.State(ctx), opts, q.Question)
	if err == nil && !known && s.now().Sub(q.made) < tooYoung {
		a.again(q)
		return
	}
	if err == nil {
		err = k.Answer(ctx, q.Question, says)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	if q.tries++; q.tries < answerTries {
		a.again(q)
		return
	}
	s.logger.ErrorContext(ctx, "a question is not answered until it is asked again", "kind", q.About.Kind, "namespace", q.About.Namespace, "name", q.About.Name, "error", err)
}

// explainAsked is the answer from a state; false where nothing of it waits.
func explainAsked(ctx context.Context, st *cluster.State, opts rca.Options, q kubectl.Question) (a kubectl.Answer, waits bool, err error) {
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
				return fmt.Sprintf("it is %s on %s", p.Status.Phase, p.Spec.NodeName)
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
