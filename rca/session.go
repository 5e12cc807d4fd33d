package rca

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Session is one reading of the cluster, in which incidents are explained one after the
// other: what they have in common is found once.
type Session struct {
	// Incidents are all that the cluster holds, by id.
	Incidents []incident.Incident

	state *cluster.State
	run   *run // none where nobody waits
	done  func()
	told  map[string]diagnosis.Diagnosis // of those that others are like
	first map[string]string              // of each incident, the one that it is like; itself, if none
	seen  map[string]bool                // namespaces whose incidents were compared
}

// Begin reads what waits in st. Close ends it; until then nobody else may use the snapshot.
func Begin(ctx context.Context, st *cluster.State, opts Options) (*Session, error) {
	refusals := admission.Refusals(st)
	s := &Session{Incidents: incident.Group(incident.WithKubelet(st.Pods, st.Events, st.Now), st.Owner, refusals...), state: st, done: func() {},
		told: map[string]diagnosis.Diagnosis{}, first: map[string]string{}, seen: map[string]bool{}}
	if len(s.Incidents) == 0 {
		return s, nil
	}
	w, done, err := view.Open(ctx, st, opts.Snapshot)
	if err != nil {
		return nil, err
	}
	w.Refusals = refusals
	s.done = done
	s.run = newRun(ctx, w, opts)
	return s, nil
}

func newRun(ctx context.Context, w *view.Cluster, opts Options) *run {
	return &run{ledger: evict.NewLedger(w), inventory: sync.OnceValue(func() *devices.Inventory { return devices.TakeInventory(w.State) }),
		past:  sync.OnceValues(func() ([]knowledge.Outcome, string) { return remember(ctx, opts.Outcomes) }),
		guard: sync.OnceValues(func() (diagnosis.Guard, string) { return guarded(ctx, opts, w.State) }), opts: opts}
}

// guarded is what would hold fixes back in a state, or why that cannot be told.
func guarded(ctx context.Context, opts Options, st *cluster.State) (diagnosis.Guard, string) {
	if opts.Guard == nil {
		return nil, ""
	}
	guard, err := opts.Guard(ctx, st)
	if err != nil {
		return nil, "guard-rails: " + err.Error() + "; which fixes they would refuse now is not known"
	}
	return guard, ""
}

// Close gives the snapshot back.
func (s *Session) Close() { s.done() }

// Explain explains one of the incidents.
func (s *Session) Explain(ctx context.Context, i incident.Incident) (diagnosis.Diagnosis, error) {
	d, err := s.run.diagnose(ctx, i)
	if err != nil {
		return d, fmt.Errorf("diagnose %s %s/%s: %w", i.Workload.Kind, i.Workload.Namespace, i.Workload.Name, err)
	}
	return d, nil
}

// ExplainOnce explains one of the incidents, too, but those that are alike only once:
// where a namespace has several whose pods differ in their names alone, all but the oldest
// are told by its causes, say which it is, and have no fixes.
func (s *Session) ExplainOnce(ctx context.Context, i incident.Incident) (diagnosis.Diagnosis, error) {
	s.compare(i.Workload.Namespace)
	first := s.first[i.ID]
	if first == "" {
		return s.Explain(ctx, i)
	}
	d, told := s.told[first]
	if !told {
		n := slices.IndexFunc(s.Incidents, func(o incident.Incident) bool { return o.ID == first })
		var err error
		if d, err = s.Explain(ctx, s.Incidents[n]); err != nil {
			return d, err
		}
		s.told[first] = d
	}
	if first == i.ID {
		return d, nil
	}
	return s.like(d, i), nil
}

// like is what the diagnosis of an incident tells of another that is like it.
func (s *Session) like(d diagnosis.Diagnosis, i incident.Incident) diagnosis.Diagnosis {
	_, about, _ := strings.Cut(d.Headline, needsWord)
	needs, why, told := strings.Cut(about, whyWord)
	if told {
		why = whyWord + why
	}
	d.Alike, d.Headline = d.Incident, titled(i, s.state.Now, needs, why)
	d.Causes = ofPod(d.Causes, podRef(d.Workload.Namespace, d.Pods.Names[0]), podRef(i.Workload.Namespace, i.Pods[0].Name))
	d.Incident, d.Workload, d.Fixes = i.ID, i.Workload, []diagnosis.Fix{}
	d.Pods = diagnosis.WaitingPods{Waiting: i.Waiting, Names: podNames(i), Since: i.Since, Priority: d.Pods.Priority, Placed: d.Pods.Placed}
	if d.Drawing != nil {
		before := *d.Drawing
		before.After = nil
		d.Drawing = &before
	}
	return d
}

func podRef(namespace, name string) string { return "Pod/" + namespace + "/" + name }

// ofPod has what is evident of one pod told of another.
func ofPod(causes []diagnosis.Cause, from, to string) []diagnosis.Cause {
	causes = slices.Clone(causes)
	for c := range causes {
		causes[c].Evidence = slices.Clone(causes[c].Evidence)
		for e := range causes[c].Evidence {
			fact := &causes[c].Evidence[e]
			if fact.Ref == from {
				fact.Ref = to
			}
			fact.Claims = slices.Clone(fact.Claims)
			for k := range fact.Claims {
				if fact.Claims[k].Ref == from {
					fact.Claims[k].Ref = to
				}
			}
		}
	}
	return causes
}

// compare finds the incidents of a namespace that are alike.
func (s *Session) compare(namespace string) {
	if s.seen[namespace] {
		return
	}
	s.seen[namespace] = true
	pods := map[string]*corev1.Pod{}
	for _, p := range s.state.Pods {
		if p.Namespace == namespace {
			pods[p.Name] = p
		}
	}
	alike := map[[sha256.Size]byte][]incident.Incident{}
	for _, i := range s.Incidents {
		if i.Workload.Namespace != namespace || i.Missing > 0 || i.Waiting != 1 || pods[i.Pods[0].Name] == nil {
			continue // an incident of several pods is told by itself
		}
		key := incident.Alike(pods[i.Pods[0].Name])
		alike[key] = append(alike[key], i)
	}
	for _, some := range alike {
		oldest := slices.MinFunc(some, func(a, b incident.Incident) int { return a.Since.Compare(b.Since) }) // then by id
		for _, i := range some {
			s.first[i.ID] = oldest.ID
		}
	}
}
