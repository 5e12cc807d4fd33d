package terms

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/view"
)

// domain is a value of a topology key: the nodes with that label.
type domain struct{ key, value string }

// placedPod is a pod and the node it is on.
type placedPod struct {
	*corev1.Pod
	on *view.Node
}

// Company is what the (anti-)affinity of pods comes to for the pod that waits: whom it has to be
// near, and apart from. It is worked out once, in one pass over all pods, for every node asks.
type Company struct {
	view.Subject
	by    *evict.Asker
	read  bool
	keys  []string               // topology keys of apart
	apart map[domain][]placedPod // pods that this pod may not be beside, by its terms or theirs
	near  []map[string]bool      // by term of TogetherWith: the domains that have such a pod
	far   []map[string]bool      // by term of ApartFrom
}

// CompanyOf takes the pod, and on whose behalf others would leave.
func CompanyOf(s view.Subject, by *evict.Asker) *Company { return &Company{Subject: s, by: by} }

func (a *Company) look() {
	if a.read {
		return
	}
	a.read, a.apart = true, map[domain][]placedPod{}
	near, far := a.termsOf(TogetherWith(a.Pod)), a.termsOf(ApartFrom(a.Pod))
	a.near, a.far = domainsOf(near), domainsOf(far)
	for _, n := range a.Cluster.SortedNodes() {
		for _, p := range n.Pods {
			if p == a.Pod {
				continue
			}
			for i, t := range near {
				if value, ok := n.Labels[t.key]; ok && t.about(a.Pod, p) {
					a.near[i][value] = true
				}
			}
			for i, t := range far {
				if value, ok := n.Labels[t.key]; ok && t.about(a.Pod, p) {
					a.far[i][value] = true
					a.add(domain{t.key, value}, placedPod{p, n})
				}
			}
			for _, t := range a.termsOf(ApartFrom(p)) {
				if value, ok := n.Labels[t.key]; ok && t.about(p, a.Pod) {
					a.add(domain{t.key, value}, placedPod{p, n})
				}
			}
		}
	}
}

func (a *Company) add(d domain, p placedPod) {
	list := a.apart[d]
	if len(list) > 0 && list[len(list)-1].Pod == p.Pod {
		return
	}
	a.apart[d] = append(list, p)
	if slices.Contains(a.keys, d.key) {
		return
	}
	a.keys = append(a.keys, d.key)
}

func domainsOf(terms []podTerm) []map[string]bool {
	out := make([]map[string]bool, len(terms))
	for i := range out {
		out[i] = map[string]bool{}
	}
	return out
}

// podTerm is a term of an affinity, read.
type podTerm struct {
	key        string
	pods       labels.Selector
	namespaces map[string]bool // nil: all
	own        bool            // only the namespace of the pod whose term it is
}

// about says whether a term of one pod is about another (scheduler framework,
// AffinityTerm.Matches). matchLabelKeys are in the selector: the API server puts them there.
func (t *podTerm) about(of, other *corev1.Pod) bool {
	if t.own {
		return of.Namespace == other.Namespace && t.pods.Matches(labels.Set(other.Labels))
	}
	return (t.namespaces == nil || t.namespaces[other.Namespace]) && t.pods.Matches(labels.Set(other.Labels))
}

// termsOf reads terms; one that makes no sense is about nobody.
func (a *Company) termsOf(terms []corev1.PodAffinityTerm) []podTerm {
	var out []podTerm
	for _, t := range terms {
		read := podTerm{key: t.TopologyKey, own: len(t.Namespaces) == 0 && t.NamespaceSelector == nil}
		pods, err := metav1.LabelSelectorAsSelector(t.LabelSelector)
		spaces, nerr := metav1.LabelSelectorAsSelector(t.NamespaceSelector)
		if err != nil || nerr != nil {
			pods, spaces = labels.Nothing(), labels.Nothing()
		}
		if read.pods = pods; !read.own && (t.NamespaceSelector == nil || !spaces.Empty()) {
			read.namespaces = map[string]bool{}
			for _, name := range t.Namespaces {
				read.namespaces[name] = true
			}
			for _, ns := range a.Cluster.State.Namespaces {
				if spaces.Matches(labels.Set(ns.Labels)) {
					read.namespaces[ns.Name] = true
				}
			}
		}
		out = append(out, read)
	}
	return out
}

// StandsApart are the pods of the node itself that the pod's anti-affinity, or their own,
// keeps it apart from; false when one of them may not leave, or stands in the way from
// another node: to empty a whole zone is nothing to offer.
func (a *Company) StandsApart(n *view.Node) ([]*corev1.Pod, bool) {
	a.look()
	var out []*corev1.Pod
	for _, key := range a.keys {
		value, ok := n.Labels[key]
		if !ok {
			continue
		}
		for _, p := range a.apart[domain{key, value}] {
			if p.on != n || !a.by.MayLeave(p.Pod) {
				return nil, false
			}
			if !slices.Contains(out, p.Pod) {
				out = append(out, p.Pod)
			}
		}
	}
	return out, true
}

// InTheWay are all pods that the pod's anti-affinity, or their own, keeps it from the node for.
func (a *Company) InTheWay(n *view.Node) []*corev1.Pod {
	a.look()
	var out []*corev1.Pod
	for _, key := range a.keys {
		value, ok := n.Labels[key]
		if !ok {
			continue // in no domain, and not in that of an empty value
		}
		for _, p := range a.apart[domain{key, value}] {
			out = append(out, p.Pod)
		}
	}
	return out
}

// UnmetTerms are those of the pod's own terms that the node does not meet: of being near,
// and of being apart, in words.
func (a *Company) UnmetTerms(n *view.Node) (unmet, broken []int, texts []string) {
	a.look()
	first := a.first()
	for i, t := range TogetherWith(a.Pod) {
		if _, there := n.Labels[t.TopologyKey]; first && there {
			continue
		}
		if !in(a.near[i], t.TopologyKey, n) {
			unmet = append(unmet, i)
			texts = append(texts, "near "+aboutText(t))
		}
	}
	for i, t := range ApartFrom(a.Pod) {
		if in(a.far[i], t.TopologyKey, n) {
			broken = append(broken, i)
			texts = append(texts, "apart from "+aboutText(t))
		}
	}
	return unmet, broken, texts
}

// HasToBeNear says whether a term of the pod's own wants it near another.
func (a *Company) HasToBeNear(other *corev1.Pod) bool {
	return slices.ContainsFunc(a.termsOf(TogetherWith(a.Pod)), func(t podTerm) bool { return t.about(a.Pod, other) })
}

// first says whether the pod wants to be near such as itself alone, and none of them is placed: the
// first is let onto any node that has the labels (interpodaffinity/filtering.go,
// satisfyPodAffinity).
func (a *Company) first() bool {
	for _, domains := range a.near {
		if len(domains) > 0 {
			return false
		}
	}
	for _, t := range a.termsOf(TogetherWith(a.Pod)) {
		if !t.about(a.Pod, a.Pod) {
			return false
		}
	}
	return true
}

// ApartFrom are the pod's required anti-affinity terms.
func ApartFrom(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// TogetherWith are the pod's required affinity terms.
func TogetherWith(p *corev1.Pod) []corev1.PodAffinityTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// in says whether one of the domains of a term's topology key is the node's.
func in(domains map[string]bool, key string, n *view.Node) bool {
	value, ok := n.Labels[key]
	return ok && domains[value]
}

// aboutText names the pods that a term is about, and how near.
func aboutText(t corev1.PodAffinityTerm) string {
	who := metav1.FormatLabelSelector(t.LabelSelector)
	if t.LabelSelector != nil && len(t.LabelSelector.MatchLabels)+len(t.LabelSelector.MatchExpressions) == 0 {
		who = "all pods"
	}
	return fmt.Sprintf("%s (%s)", who, t.TopologyKey)
}
