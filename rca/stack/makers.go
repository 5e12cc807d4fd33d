package stack

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// maker is one of GPUs that other device plugins announce than NVIDIA's for containers: which its
// plugin is, what says that a node has a GPU of its, and what brings the plugin. Nothing of
// NVIDIA's for containers has a part in it.
type maker struct {
	whose string // "AMD's"
	has   string // "has GPUs of AMD's"
	plug  string // "AMD's device plugin"
	// announces tells the resources that its device plugin announces, and devices those of them
	// that are GPUs or parts of such, and not what stands beside them.
	announces, devices func(corev1.ResourceName) bool
	plugin             parts.Role
	before             parts.Role // what its plugin waits for, and is kept off by labels too; empty for none
	// labels say that a node has one, by "key=value" or by the value "true"; keys that begin as
	// written are its labeller's, of the properties of the card.
	labels, written []string
	machines        *regexp.Regexp // types of machines that have one; nil where no name tells
	signed          bool           // names of its form are others' too: a node has to say that it has one
	// unsigned is why a node that does not say that it has one may still be the one that is asked for.
	unsigned func(*Stack, *view.Node, corev1.ResourceName) *Finding
	parted   string   // the label that says in which parts its GPUs are; whole ones begin with spx
	behind   string   // completes "announces none, as where …"
	image    string   // is in the image of its plugin
	driver   string   // what has to be loaded on the machine
	shows    string   // the command by which the machine shows that it serves a card
	steps    []string // how the plugin is installed
	install  func(node string) []string
}

// makers are those whose device plugins are known.
var makers = []*maker{amd, intel, virtual, gpushare}

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
		if m.announces(resource) {
			return m
		}
	}
	return nil
}

// sign is the label by which a node is known to have a GPU of the maker's; empty for none.
func (m *maker) sign(n *view.Node) string {
	for _, label := range m.labels {
		key, value, _ := strings.Cut(label, "=")
		if n.Labels[key] == cmp.Or(value, "true") {
			return key
		}
	}
	if key := corev1.LabelInstanceTypeStable; m.machines != nil && m.machines.MatchString(n.Labels[key]) {
		return key
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

// PluginSets are the DaemonSets that are the device plugin of a resource's maker; none for a resource of
// NVIDIA's for containers, or of nobody that is known.
func PluginSets(w *view.Cluster, resource corev1.ResourceName) []*parts.Set {
	if m := makerOf(resource); m != nil {
		return parts.Of(w).Sets(m.plugin)
	}
	return nil
}

// AskRuntime says whether pods of NVIDIA's device plugin ask for a RuntimeClass.
func AskRuntime(w *view.Cluster) bool {
	return slices.ContainsFunc(parts.Of(w).Sets(parts.Plugin), func(d *parts.Set) bool { return d.Spec.Template.Spec.RuntimeClassName != nil })
}

// Install is how the device plugin that announces a maker's resource comes into a cluster, on a node for
// one: false for a resource of no maker that is known.
func Install(resource corev1.ResourceName, node string) (what string, commands []string, known bool) {
	m := makerOf(resource)
	if m == nil {
		return "", nil, false
	}
	return m.plug, append([]string{"kubectl debug node/" + node + " -it --image=busybox -- chroot /host " + m.shows + "  # the driver (" + m.driver + ") has to show a card"}, m.install(node)...), true
}

// PluginOf is the pod of another maker's device plugin on the node, where GPUs of that maker are
// asked; nil for none.
func (s *Stack) PluginOf(n *view.Node, wants corev1.ResourceList) *corev1.Pod {
	for _, name := range view.SortedNames(wants) {
		if m := makerOf(name); m != nil {
			return s.kit.Pod(n, m.plugin)
		}
	}
	return nil
}

// OfMaker is why a node that has GPUs of another maker's offers none of a resource; nil where it
// offers some, and where nothing says that it has one.
func (s *Stack) OfMaker(n *view.Node, resource corev1.ResourceName) *Finding {
	m := makerOf(resource)
	offered, had := n.Status.Allocatable[resource], false
	if m == nil || !offered.IsZero() || OtherName(n, resource) != "" {
		return nil
	}
	sign := m.sign(n)
	if _, had = n.Status.Capacity[resource]; sign == "" && (!had || m.signed) {
		if m.unsigned == nil {
			return nil
		}
		return m.unsigned(s, n, resource)
	}
	f := s.ofMaker(m, n, resource, had)
	seen := []diagnosis.Evidence{diagnosis.NoneOf(n.Node, resource)}
	if sign != "" {
		seen = append(seen, diagnosis.Fact(n.Ref(), "label "+sign+"="+n.Labels[sign], n.Labelled(sign)...))
	}
	f.Evidence = append(seen, f.Evidence...)
	return f
}

func (s *Stack) ofMaker(mk *maker, n *view.Node, resource corev1.ResourceName, had bool) *Finding {
	if unread := s.notSeen(); unread != "" {
		f := s.finding(Installed, Unseen, diagnosis.DevicePluginDown, mk.has+" and offers no "+string(resource), n.Ref(), "which device plugin there is was not seen: "+unread, s.notSeenClaims()...)
		f.Certainty, f.Mends = diagnosis.Possible, []Mend{mk.mend(n, nil)}
		return f
	}
	l := s.part(n, mk.plugin)
	sets := s.kit.Sets(mk.plugin)
	switch {
	case l.pod != nil:
		if d := s.part(n, parts.Driver); mk.plugin == parts.MachinePlugin && d.pod != nil && (d.State == parts.Failed || d.Loops) {
			f := d.finding(Driver, Failed, diagnosis.DriverNotReady, fmt.Sprintf("%s and offers no %s: its vGPU manager fails at %s", mk.has, resource, d.Text()))
			f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "see why NVIDIA's vGPU manager fails on " + n.Name, Risk: diagnosis.LowRisk, Minutes: 15, Steps: []string{"see what it says; a driver that the machine has loaded by itself has to be taken off first"},
				Commands: []string{fmt.Sprintf("kubectl -n %s logs %s -c %s --previous --tail=50", d.pod.Namespace, d.pod.Name, d.Where), "kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host " + mk.shows}}}
			return finishMaker(n, f)
		}
		if left := podTime - s.since(s.kit.Begun(l.pod)); left > 0 && l.State != parts.Failed && !l.Loops {
			f := l.finding(Plugin, Starting, diagnosis.DevicePluginDown, "is starting: the pod of "+mk.plug+" began "+view.Age(podTime-left)+" ago")
			f.Mends = []Mend{waitFor(n, "device plugin", left)}
			return finishMaker(n, f)
		}
		if f := l.unheard(); f != nil && l.State == "" {
			return finishMaker(n, f)
		}
		says := mk.plug + " runs there and announces none, as where " + mk.behind
		split := mk.parts(n)
		if split != "" {
			says = mk.plug + " runs there and announces none of the parts that they are in (" + split + ")"
		}
		switch l.State {
		case "":
		case parts.Waiting:
			says = mk.plug + " waits in " + l.Text()
		default:
			says = mk.plug + " fails at " + l.Text()
		}
		f := l.finding(Registration, Failed, diagnosis.DevicePluginDown, mk.has+" and offers no "+string(resource)+": "+says)
		f.Mends = []Mend{mk.mend(n, l.pod)}
		if l.Told { // it has not begun: a log there is none
			m := &f.Mends[0]
			m.Title, m.Unproven = "see why the pod of "+mk.plug+" is not started on "+n.Name, "once it is started, only its log and the machine tell what it announces"
			m.Steps[0], m.Commands[0] = "mend what keeps it from that, by its Events: a volume, or its sandbox", fmt.Sprintf("kubectl -n %s describe pod %s", l.pod.Namespace, l.pod.Name)
		}
		if l.State != parts.Failed || l.Told || mk.sign(n) == "" { // else it says itself that it does not run
			f.Certainty = diagnosis.Likely
		}
		if twin := l.works(resource); twin != nil {
			f.Says += fmt.Sprintf(", while it works on %s", twin.Name)
			f.Evidence = append(f.Evidence, diagnosis.Fact(twin.Ref(), fmt.Sprintf("offers %s, image %s", resource, twin.Status.NodeInfo.OSImage), diagnosis.That(diagnosis.Allocatable, string(resource), diagnosis.IsNot, "0"), diagnosis.That("status.nodeInfo.osImage", "", diagnosis.Is, twin.Status.NodeInfo.OSImage)))
			f.Mends[0].Steps = append(f.Mends[0].Steps, fmt.Sprintf("see in what the machine differs from %s: system, kernel, SELinux, what its kubelet lets plugins do", twin.Name))
		}
		if split != "" {
			f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "label "+split, n.Labelled(mk.parted)...))
			f.Mends[0].Steps = append(f.Mends[0].Steps, "versions of the plugin differ in which parts of GPUs they find: try another, or give the GPUs back whole (spx)")
		}
		return f
	case len(sets) > 0:
		d := sets[0]
		m := d.Misses(n)
		if m.None() {
			return finishMaker(n, s.refusedPod(n, d, PluginOnNode))
		}
		if f := s.moduleUnloaded(mk, n, d, m); f != nil {
			return finishMaker(n, f)
		}
		f := s.finding(PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("%s and offers no %s: %s/%s does not run there: %s", mk.has, resource, d.Namespace, d.Name, d.Text(n, m)), d.Ref(), d.Text(n, m), d.Claims(n, m)...)
		f.Mends = []Mend{s.letBothOn(mk, n, d, m)}
		return finishMaker(n, f)
	}
	f := s.finding(Installed, Missing, diagnosis.GPUStackMissing, fmt.Sprintf("%s, and no %s is installed that announces %s", mk.has, mk.plugin, resource), n.Ref(), "no DaemonSet of the cluster is "+mk.plug,
		diagnosis.That("spec.template.spec.containers", "", diagnosis.ContainsNot, mk.image).Of("DaemonSet/*"))
	if had { // it was announced once, by whatever does
		f.Cause, f.Certainty = diagnosis.DevicePluginDown, diagnosis.Likely
	}
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "install " + mk.plug + ", which announces the GPUs of " + n.Name, Risk: diagnosis.LowRisk, Minutes: 10,
		Steps:    mk.steps,
		Commands: append(mk.install(n.Name), "kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'")}}
	return finishMaker(n, f)
}

// works is another node on which a pod of the same DaemonSet has announced the resource; nil for none. What
// keeps it from that here is this machine's.
func (p *part) works(resource corev1.ResourceName) *view.Node {
	d := p.s.kit.SetOf(p.pod)
	if d == nil {
		return nil
	}
	for _, n := range p.s.w.SortedNodes() {
		if q := n.Status.Allocatable[resource]; n != p.n && !q.IsZero() && d.On(n) != nil {
			return n
		}
	}
	return nil
}

// letBothOn lets its device plugin on the node, and before it what that waits for.
func (s *Stack) letBothOn(mk *maker, n *view.Node, d *parts.Set, m parts.Misses) Mend {
	mend := s.letOn(n, d, m, "")
	for _, w := range s.kit.Sets(mk.before) {
		if x := w.Misses(n); !x.None() && w.Namespace == d.Namespace {
			first := s.letOn(n, w, x, "")
			mend.Title = first.Title + "; " + mend.Title
			mend.Commands = append(first.Commands[:len(first.Commands)-1], mend.Commands...)
		}
	}
	return mend
}

// OtherName is another name under which the node offers GPUs of the maker of a resource that it
// does not offer; empty for none. Device plugins name GPUs by how they are parted, or by driver.
func OtherName(n *view.Node, resource corev1.ResourceName) corev1.ResourceName {
	m := makerOf(resource)
	if m == nil || m.devices == nil || !m.devices(resource) {
		return ""
	}
	for _, name := range view.SortedNames(n.Status.Allocatable) {
		if q := n.Status.Allocatable[name]; name != resource && m.devices(name) && !q.IsZero() {
			return name
		}
	}
	return ""
}

// parts is the label by which the node's GPUs are in parts; empty where they are whole, or nothing
// says so.
func (m *maker) parts(n *view.Node) string {
	value := n.Labels[m.parted]
	if m.parted == "" || value == "" || strings.HasPrefix(value, "spx") {
		return ""
	}
	return m.parted + "=" + value
}

// finishMaker says of each mend that what it brings is not known.
func finishMaker(n *view.Node, f *Finding) *Finding {
	for i := range f.Mends {
		f.Mends[i].Until, f.Mends[i].Unproven = "", "nothing says how many GPUs "+n.Name+" has"
	}
	return f
}

// mend is where to look when the plugin runs, or may run, and nothing came of it.
func (m *maker) mend(n *view.Node, pod *corev1.Pod) Mend {
	look := "kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + "  # " + m.plug + " has to run here"
	if pod != nil {
		look = fmt.Sprintf("kubectl -n %s logs %s --tail=50", pod.Namespace, pod.Name)
	}
	return Mend{Kind: diagnosis.RepairDeviceStack, Title: "see why " + m.plug + " announces nothing on " + n.Name, Risk: diagnosis.LowRisk, Minutes: 15, Unproven: "only its log and the machine tell why it announces nothing",
		Steps:    []string{"see what the plugin says", "see on the machine that the driver (" + m.driver + ") is loaded and serves the card"},
		Commands: []string{look, "kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host " + m.shows}}
}
