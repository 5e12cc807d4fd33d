package stack

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// maker is one of GPUs other than NVIDIA's: how its device plugin is told, what says that a
// node has a GPU of its, and what brings the plugin. Nothing of NVIDIA's has a part in it.
type maker struct {
	whose  string // "AMD's"
	prefix string // begins the resources that its device plugin announces
	plugin role
	is     func(corev1.Container) bool
	// labels say by their value "true" that a node has one; keys that begin as written are its
	// labeller's, of the properties of the card.
	labels, written []string
	behind          string   // completes "announces none, as where …"
	image           string   // is in the image of its plugin
	driver          string   // what has to be loaded on the machine
	shows           string   // where the machine shows that it serves a card
	steps           []string // how the plugin is installed
	install         func(node string) []string
}

// makers are those whose device plugins are known.
var makers = []*maker{amd, intel}

// Maker is whose GPUs a resource is, where it is another maker's than NVIDIA; empty for any
// other resource.
func Maker(resource corev1.ResourceName) string {
	if m := makerOf(resource); m != nil {
		return m.whose
	}
	return ""
}

func makerOf(resource corev1.ResourceName) *maker {
	for _, m := range makers {
		if strings.HasPrefix(string(resource), m.prefix) {
			return m
		}
	}
	return nil
}

// makerPlugin is the role of another maker's device plugin; empty where none of the containers
// is one.
func makerPlugin(containers []corev1.Container) role {
	for _, m := range makers {
		if slices.ContainsFunc(containers, m.is) {
			return m.plugin
		}
	}
	return ""
}

// sign is the label by which a node is known to have a GPU of the maker's; empty for none.
func (m *maker) sign(n *view.Node) string {
	for _, key := range m.labels {
		if n.Labels[key] == "true" {
			return key
		}
	}
	var written []string
	for key := range n.Labels {
		if slices.ContainsFunc(m.written, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			written = append(written, key)
		}
	}
	if len(written) == 0 {
		return ""
	}
	return slices.Min(written)
}

// OfMaker is why a node that has GPUs of another maker's offers none of a resource; nil where it
// offers some, and where nothing says that it has one.
func (s *Stack) OfMaker(n *view.Node, resource corev1.ResourceName) *Finding {
	m := makerOf(resource)
	offered, had := n.Status.Allocatable[resource], false
	if m == nil || !offered.IsZero() {
		return nil
	}
	sign := m.sign(n)
	if _, had = n.Status.Capacity[resource]; sign == "" && !had {
		return nil
	}
	f := s.ofMaker(m, n, resource, had)
	seen := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "allocatable "+string(resource)+"=0", diagnosis.That(diagnosis.Allocatable, string(resource), diagnosis.Is, "0"))}
	if sign != "" {
		seen = append(seen, diagnosis.Fact(n.Ref(), "label "+sign+"="+n.Labels[sign], n.Labelled(sign)...))
	}
	f.Evidence = append(seen, f.Evidence...)
	return f
}

func (s *Stack) ofMaker(mk *maker, n *view.Node, resource corev1.ResourceName, had bool) *Finding {
	if unread := s.notSeen(); unread != "" {
		f := s.finding(Installed, Unseen, diagnosis.DevicePluginDown, "has GPUs of "+mk.whose+" and offers no "+string(resource), n.Ref(), "which device plugin there is was not seen: "+unread, s.notSeenClaims()...)
		f.Certainty, f.Mends = diagnosis.Possible, []Mend{s.mendMaker(mk, n, nil)}
		return f
	}
	pod := s.podOf(n, mk.plugin)
	sets := s.sets[mk.plugin]
	switch {
	case pod != nil:
		l := s.look(pod)
		if left := podTime - s.since(pod.CreationTimestamp.Time); left > 0 && l.state != Failed && !l.loops {
			f := s.finding(Plugin, Starting, diagnosis.DevicePluginDown, "is starting: the pod of "+mk.whose+" device plugin is "+view.Age(podTime-left)+" old", podRef(pod), orReady(l), l.claims...)
			f.Mends = []Mend{waitFor(n, "device plugin", left)}
			return s.finishMaker(n, f)
		}
		says := mk.whose + " device plugin runs there and announces none, as where " + mk.behind
		if l.state != "" {
			says = mk.whose + " device plugin fails at " + orReady(l)
		}
		f := s.finding(Registration, Failed, diagnosis.DevicePluginDown, "has GPUs of "+mk.whose+" and offers no "+string(resource)+": "+says, podRef(pod), orReady(l), l.claims...)
		f.Certainty, f.Mends = diagnosis.Likely, []Mend{s.mendMaker(mk, n, pod)}
		return f
	case len(sets) > 0:
		d := sets[0]
		m := d.misses(n)
		if m.none() {
			return s.finishMaker(n, s.refusedPod(n, d, PluginOnNode))
		}
		f := s.finding(PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("has GPUs of %s and offers no %s: %s/%s does not run there: %s", mk.whose, resource, d.Namespace, d.Name, d.text(n, m)), d.ref(), d.text(n, m), d.claims(n, m)...)
		f.Mends = []Mend{s.letOn(n, d, m, "")}
		return s.finishMaker(n, f)
	}
	f := s.finding(Installed, Missing, diagnosis.GPUStackMissing, fmt.Sprintf("has GPUs of %s, and no device plugin of %s is installed that announces %s", mk.whose, mk.whose, resource), n.Ref(), "no DaemonSet of the cluster is "+mk.whose+" device plugin",
		diagnosis.That("spec.template.spec.containers", "", diagnosis.ContainsNot, mk.image).Of("DaemonSet/*"))
	if had { // it was announced once, by whatever does
		f.Cause, f.Certainty = diagnosis.DevicePluginDown, diagnosis.Likely
	}
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "install " + mk.whose + " device plugin, which announces the GPUs of " + n.Name, Risk: diagnosis.LowRisk, Minutes: 10,
		Steps:    mk.steps,
		Commands: append(mk.install(n.Name), "kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'")}}
	return s.finishMaker(n, f)
}

// finishMaker says of each mend that what it brings is not known.
func (s *Stack) finishMaker(n *view.Node, f *Finding) *Finding {
	for i := range f.Mends {
		f.Mends[i].Until, f.Mends[i].Unproven = "", "nothing says how many GPUs "+n.Name+" has"
	}
	return f
}

// mendMaker is where to look when the plugin runs, or may run, and nothing came of it.
func (s *Stack) mendMaker(mk *maker, n *view.Node, pod *corev1.Pod) Mend {
	look := "kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + "  # " + mk.whose + " device plugin has to run here"
	if pod != nil {
		look = fmt.Sprintf("kubectl -n %s logs %s --tail=50", pod.Namespace, pod.Name)
	}
	return Mend{Kind: diagnosis.RepairDeviceStack, Title: "see why " + mk.whose + " device plugin announces nothing on " + n.Name, Risk: diagnosis.LowRisk, Minutes: 15, Unproven: "only its log and the machine tell why it announces nothing",
		Steps:    []string{"see what the plugin says", "see on the machine that the driver (" + mk.driver + ") is loaded and serves the card"},
		Commands: []string{look, "kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host ls " + mk.shows}}
}
