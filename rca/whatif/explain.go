package whatif

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Verdict is what the scheduler's filters say of every node.
type Verdict struct {
	Nodes []NodeVerdict // by name
}

// NodeVerdict lists what keeps the pod from one node; nothing when it fits.
type NodeVerdict struct {
	Node     string
	Blockers []Blocker
}

// Blocker is one reason of one plugin, in the scheduler's own words.
type Blocker struct {
	Plugin, Reason string
	// Unresolvable: no eviction on the node could help.
	Unresolvable bool
}

// Feasible lists the nodes without a blocker.
func (v Verdict) Feasible() []string {
	var out []string
	for _, n := range v.Nodes {
		if len(n.Blockers) == 0 {
			out = append(out, n.Node)
		}
	}
	return out
}

// pass is one pod judged once: the plugins' state and what PreFilter said.
type pass struct {
	state    fwk.CycleState
	filters  []fwk.FilterPlugin // without those that skip
	blockers []Blocker          // on every node
	// only, by plugin, are the nodes PreFilter left; absent: all.
	only map[string]sets.Set[string]
}

// prepare runs PreFilter. With all, it goes on after a refusal.
func (s *Snapshot) prepare(ctx context.Context, pod *corev1.Pod, all bool) pass {
	p := s.prepareBy(ctx, s.plugins, pod, all)
	if shares(pod) {
		p.filters = append(p.filters, sharing{})
	}
	return p
}

func (s *Snapshot) prepareBy(ctx context.Context, by *plugins, pod *corev1.Pod, all bool) pass {
	p := pass{state: framework.NewCycleState(), only: map[string]sets.Set[string]{}}
	nodes := s.lister.all()
	for _, f := range by.filters {
		pre, ok := by.preFilters[f.Name()]
		if !ok || p.runPre(ctx, pre, pod, nodes) {
			p.filters = append(p.filters, f)
		}
		if !all && len(p.blockers) > 0 {
			return p
		}
	}
	for _, pre := range by.preOnly {
		p.runPre(ctx, pre, pod, nodes)
	}
	return p
}

// runPre says whether the plugin's Filter is to be run too.
func (p *pass) runPre(ctx context.Context, pre fwk.PreFilterPlugin, pod *corev1.Pod, nodes []fwk.NodeInfo) bool {
	result, status := pre.PreFilter(ctx, p.state, pod, nodes)
	if status.IsSkip() {
		return false
	}
	if !status.IsSuccess() {
		p.blockers = append(p.blockers, blockersOf(pre.Name(), status)...)
		return false
	}
	if !result.AllNodes() {
		p.only[pre.Name()] = result.NodeNames
	}
	return true
}

func blockersOf(plugin string, status *fwk.Status) []Blocker {
	unresolvable := status.Code() != fwk.Unschedulable
	reasons := status.Reasons()
	if len(reasons) == 0 {
		reasons = []string{status.Message()}
	}
	out := make([]Blocker, len(reasons))
	for i, r := range reasons {
		out[i] = Blocker{plugin, r, unresolvable}
	}
	if len(out) > 1 && plugin == "NodeResourcesFit" {
		sortScalars(out)
	}
	return out
}

// sortScalars puts extended resources and huge pages, which noderesources/fit.go names behind the others
// in the order of a map, in that of their names.
func sortScalars(short []Blocker) {
	if i := slices.IndexFunc(short, func(b Blocker) bool {
		return strings.Contains(b.Reason, "/") || strings.Contains(b.Reason, " hugepages-")
	}); i >= 0 {
		slices.SortFunc(short[i:], func(a, b Blocker) int { return strings.Compare(a.Reason, b.Reason) })
	}
}

// Explain gives every blocker of every node: each plugin is asked, also after
// another has refused, which the scheduler itself does not do.
func (s *Snapshot) Explain(ctx context.Context, pod *corev1.Pod) (Verdict, error) {
	nodes, err := s.explain(ctx, pod, s.lister.all())
	return Verdict{nodes}, err
}

// ExplainOn is Explain of the nodes of these names alone.
func (s *Snapshot) ExplainOn(ctx context.Context, pod *corev1.Pod, names []string) ([]NodeVerdict, error) {
	infos := make([]fwk.NodeInfo, 0, len(names))
	for _, name := range names {
		if info, err := s.lister.Get(name); err == nil {
			infos = append(infos, info)
		}
	}
	return s.explain(ctx, pod, infos)
}

func (s *Snapshot) explain(ctx context.Context, pod *corev1.Pod, on []fwk.NodeInfo) ([]NodeVerdict, error) {
	pod = waiting(pod)
	p := s.prepare(ctx, pod, true)
	var out []NodeVerdict
	for _, info := range on {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("explain pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		n := NodeVerdict{Node: info.Node().Name, Blockers: append([]Blocker(nil), p.blockers...)}
		for _, f := range p.filters {
			if status := f.Filter(ctx, p.state, pod, info); !status.IsSuccess() {
				n.Blockers = append(n.Blockers, blockersOf(f.Name(), status)...)
			} else if only, ok := p.only[f.Name()]; ok && !only.Has(n.Node) {
				n.Blockers = append(n.Blockers, Blocker{f.Name(), fmt.Sprintf("node(s) didn't satisfy plugin(s) [%s]", f.Name()), true})
			}
		}
		out = append(out, n)
	}
	return out, nil
}

// Fits names the nodes that the scheduler's filters accept, by name. It stops at
// a node's first refusal, as the scheduler does.
func (s *Snapshot) Fits(ctx context.Context, pod *corev1.Pod) ([]string, error) {
	_, out, err := s.fits(ctx, waiting(pod))
	return out, err
}

func (s *Snapshot) fits(ctx context.Context, pod *corev1.Pod) (pass, []string, error) {
	p := s.prepare(ctx, pod, false)
	if len(p.blockers) > 0 {
		return p, nil, ctx.Err()
	}
	var out []string
	for _, info := range s.lister.all() {
		if p.accepts(ctx, pod, info) {
			out = append(out, info.Node().Name)
		}
	}
	return p, out, ctx.Err()
}

func (p *pass) accepts(ctx context.Context, pod *corev1.Pod, info fwk.NodeInfo) bool {
	for _, only := range p.only {
		if !only.Has(info.Node().Name) {
			return false
		}
	}
	for _, f := range p.filters {
		if !f.Filter(ctx, p.state, pod, info).IsSuccess() {
			return false
		}
	}
	return true
}

// Place puts the pod on the first node, by name, that the filters accept, with
// the devices it asks for, and returns it; empty when there is none.
func (s *Snapshot) Place(ctx context.Context, pod *corev1.Pod) (string, error) {
	p, fits, err := s.fits(ctx, waiting(pod))
	if err != nil || len(fits) == 0 {
		return "", err
	}
	if err := s.reserve(ctx, p, waiting(pod), fits[0]); err != nil {
		return "", err
	}
	placed := pod.DeepCopy()
	placed.Spec.NodeName = fits[0]
	s.SetPod(placed)
	return fits[0], nil
}

// waiting is the pod as the scheduler would get it: without a node, requests
// filled in from limits (the API server's defaulting).
func waiting(pod *corev1.Pod) *corev1.Pod {
	pod = withoutIgnored(withoutOwnClaims(WithDefaults(pod)))
	if pod.Spec.NodeName == "" && pod.Status.NominatedNodeName == "" {
		return pod
	}
	pod = pod.DeepCopy()
	pod.Spec.NodeName, pod.Status.NominatedNodeName = "", ""
	return pod
}

// withoutOwnClaims leaves generic ephemeral volumes out of a pod that does not exist: their claims are made
// with it, and that they are not there yet keeps it from no node (volumebinding, podHasPVCs).
func withoutOwnClaims(pod *corev1.Pod) *corev1.Pod {
	own := func(v corev1.Volume) bool { return v.Ephemeral != nil }
	if pod.UID != "" || !slices.ContainsFunc(pod.Spec.Volumes, own) {
		return pod
	}
	pod = pod.DeepCopy()
	pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, own)
	return pod
}

// WithDefaults fills requests in from limits where they are missing, as the API
// server does (pkg/apis/core/v1/defaults.go, SetDefaults_Pod); a copy when
// anything was missing.
func WithDefaults(pod *corev1.Pod) *corev1.Pod {
	missing := func(c corev1.Container) bool {
		for name := range c.Resources.Limits {
			if _, ok := c.Resources.Requests[name]; !ok {
				return true
			}
		}
		return false
	}
	if !slices.ContainsFunc(pod.Spec.Containers, missing) && !slices.ContainsFunc(pod.Spec.InitContainers, missing) {
		return pod
	}
	pod = pod.DeepCopy()
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			r := &list[i].Resources
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			for name, q := range r.Limits {
				if _, ok := r.Requests[name]; !ok {
					r.Requests[name] = q
				}
			}
		}
	}
	return pod
}
