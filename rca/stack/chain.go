package stack

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// On is the first broken link of a node; nil where nothing says that its machine has GPUs,
// where it offers some, and where every link is whole (its devices are then unhealthy, or it
// has MIG on and no instances). Worked out once for each node.
func (s *Stack) On(n *view.Node) *Finding {
	f, known := s.found[n]
	if !known {
		f = s.find(n)
		s.found[n] = f
	}
	return f
}

func (s *Stack) find(n *view.Node) *Finding {
	signs := n.Hardware()
	if len(signs) == 0 || n.AdvertisesAny() {
		return nil
	}
	f := s.first(n)
	if f == nil {
		return nil
	}
	hardware := []diagnosis.Evidence{signs[0].Evidence, diagnosis.Fact(n.Ref(), "allocatable: "+n.Advertised(), n.Advertises()...)}
	f.Evidence = append(hardware, f.Evidence...)
	if signs[0].Meant && f.Certainty == diagnosis.Proven {
		f.Certainty = diagnosis.Likely
	}
	return f
}

// first goes from the plugin's pod, whose own word it is that it waits for others, back to
// what it needs.
func (s *Stack) first(n *view.Node) *Finding {
	if f := s.onHost(n); f != nil {
		return f
	}
	p := s.pluginOn(n)
	if p == nil && len(s.kit.Sets(parts.Plugin)) == 0 {
		if s.kit.Pod(n, parts.Driver) != nil { // who installs a plugin may wait for it
			if f := s.driver(n); f != nil && f.State == Failed {
				return f
			}
		}
		return s.missing(n)
	}
	if p != nil && p.State == "" {
		return p.registration()
	}
	served := s.serving(n)
	links := needs(s, n)
	if served != nil && served.OfOperator() || p != nil && managed(n) {
		links = []func(*view.Node) *Finding{s.labelled, s.driver, s.toolkit}
	}
	for _, link := range links {
		if f := link(n); f != nil {
			return f
		}
	}
	if p != nil {
		return p.unready()
	}
	return s.keptOff(n, served)
}

// needs are the links that a plugin stands on: the operator's where that has labelled the node, else a driver's pod that is there.
func needs(s *Stack, n *view.Node) []func(*view.Node) *Finding {
	switch {
	case managed(n):
		return []func(*view.Node) *Finding{s.driver, s.toolkit}
	case s.kit.Pod(n, parts.Driver) != nil:
		return []func(*view.Node) *Finding{s.driver}
	}
	return nil
}

// managed says whether the GPU Operator has labelled the node for its operands.
func managed(n *view.Node) bool {
	for key := range n.Labels {
		if strings.HasPrefix(key, parts.Deploys) {
			return true
		}
	}
	return false
}

// serving is the device plugin's DaemonSet that is meant for the node: the one that selects
// it, else the one that least is missing for; nil where there is none.
func (s *Stack) serving(n *view.Node) *parts.Set {
	var best *parts.Set
	least := 0
	for _, d := range s.kit.Sets(parts.Plugin) {
		count := d.Misses(n).Count()
		if d.OfOperator() && managed(n) && count > 0 {
			count = 1 // it is the operator's node
		}
		if best == nil || count < least {
			best, least = d, count
		}
	}
	return best
}

// finding is what is the matter with a link, as one object shows it.
func (s *Stack) finding(link Link, state State, cause diagnosis.CauseID, says, ref, fact string, claims ...diagnosis.Claim) *Finding {
	f := &Finding{Link: link, State: state, Cause: cause, Certainty: diagnosis.Proven, Says: says, Evidence: []diagnosis.Evidence{diagnosis.Fact(ref, fact, claims...)}}
	if state == Starting {
		f.Certainty = s.aged()
	}
	return f
}

func podRef(p *corev1.Pod) string { return "Pod/" + p.Namespace + "/" + p.Name }
