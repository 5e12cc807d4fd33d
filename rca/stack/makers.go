package stack

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Maker is whose GPUs a resource is, where it is another maker's than NVIDIA; empty for any
// other resource.
func Maker(resource corev1.ResourceName) string {
	if m := makers.Of(resource); m != nil {
		return m.Whose
	}
	return ""
}

// AskRuntime says whether pods of NVIDIA's device plugin ask for a RuntimeClass.
func AskRuntime(w *view.Cluster) bool {
	return slices.ContainsFunc(parts.Of(w).Sets(parts.Plugin), func(d *parts.Set) bool { return d.Spec.Template.Spec.RuntimeClassName != nil })
}

// Install is how the device plugin that announces a maker's resource comes into a cluster, on a node for
// one: false for a resource of no maker that is known.
func Install(resource corev1.ResourceName, node string) (what string, commands []string, known bool) {
	m := makers.Of(resource)
	if m == nil {
		return "", nil, false
	}
	return m.Plug, append([]string{"kubectl debug node/" + node + " -it --image=busybox -- chroot /host " + m.Shows + "  # the driver (" + m.Driver + ") has to show a card"}, m.Install(node)...), true
}

// PluginOf is the pod of another maker's device plugin on the node, where GPUs of that maker are
// asked; nil for none.
func (s *Stack) PluginOf(n *view.Node, wants corev1.ResourceList) *corev1.Pod {
	for _, name := range view.SortedNames(wants) {
		if m := makers.Of(name); m != nil {
			return s.kit.Pod(n, m.Plugin)
		}
	}
	return nil
}

// OfMaker is why a node that has GPUs of another maker's offers none of a resource; nil where it
// offers some, and where nothing says that it has one.
func (s *Stack) OfMaker(n *view.Node, resource corev1.ResourceName) *Finding {
	m := makers.Of(resource)
	offered, had := n.Status.Allocatable[resource], false
	if m == nil || !offered.IsZero() || m.Offers(n, resource) {
		return nil
	}
	sign := m.Sign(n)
	if _, had = n.Status.Capacity[resource]; sign == "" && (!had || m.Signed) {
		if m != makers.Virtual {
			return s.part(n, parts.Discovery).unableFor(m, resource)
		}
		return s.givenToContainers(n, resource)
	}
	f := s.ofMaker(m, n, resource, had)
	seen := []diagnosis.Evidence{diagnosis.NoneOf(n.Node, resource)}
	if sign != "" {
		seen = append(seen, diagnosis.Fact(n.Ref(), "label "+sign+"="+n.Labels[sign], n.Labelled(sign)...))
	}
	f.Evidence = append(seen, f.Evidence...)
	return f
}

func (s *Stack) ofMaker(mk *makers.Maker, n *view.Node, resource corev1.ResourceName, had bool) *Finding {
	if unread := s.notSeen(); unread != "" {
		f := s.finding(Installed, Unseen, diagnosis.DevicePluginDown, mk.Has+" and offers no "+string(resource), n.Ref(), "which device plugin there is was not seen: "+unread, s.notSeenClaims()...)
		f.Certainty, f.Mends = diagnosis.Possible, []Mend{mendOf(mk, n, nil)}
		return f
	}
	l := s.part(n, mk.Plugin)
	sets := s.kit.Sets(mk.Plugin)
	switch {
	case l.pod != nil:
		if d := s.part(n, parts.Driver); mk.Plugin == parts.MachinePlugin && d.pod != nil && (d.State == parts.Failed || d.Loops) {
			f := d.finding(Driver, Failed, diagnosis.DriverNotReady, fmt.Sprintf("%s and offers no %s: its vGPU manager fails at %s", mk.Has, resource, d.Text()))
			f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "see why NVIDIA's vGPU manager fails on " + n.Name, Risk: diagnosis.LowRisk, Minutes: 15, Steps: []string{"see what it says; a driver that the machine has loaded by itself has to be taken off first"},
				Commands: []string{fmt.Sprintf("kubectl -n %s logs %s -c %s --previous --tail=50", d.pod.Namespace, d.pod.Name, d.Where), "kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host " + mk.Shows}}}
			return finishMaker(mk, n, f)
		}
		if left := podTime - s.since(s.kit.Begun(l.pod)); left > 0 && l.State != parts.Failed && !l.Loops {
			f := l.finding(Plugin, Starting, diagnosis.DevicePluginDown, "is starting: the pod of "+mk.Plug+" began "+view.Age(podTime-left)+" ago")
			f.Mends = []Mend{waitFor(n, "device plugin", left)}
			return finishMaker(mk, n, f)
		}
		if f := l.unheard(); f != nil && l.State == "" {
			return finishMaker(mk, n, f)
		}
		if f := l.keptWaiting(mk, resource); f != nil {
			return finishMaker(mk, n, f)
		}
		says, look, ill := mk.Silent(n, resource)
		switch l.State {
		case "":
		case parts.Waiting:
			says = mk.Plug + " waits in " + l.Text()
		default:
			says = mk.Plug + " fails at " + l.Text()
		}
		f := l.finding(Registration, Failed, diagnosis.DevicePluginDown, mk.Has+" and offers no "+string(resource)+": "+says)
		f.Mends = []Mend{mendOf(mk, n, &l)}
		if ill && l.State == "" {
			return unhealthy(n, resource, f, look)
		}
		if l.Told { // it has not begun: a log there is none
			m := &f.Mends[0]
			m.Title, m.Unproven = "see why the pod of "+mk.Plug+" is not started on "+n.Name, "once it is started, only its log and the machine tell what it announces"
			m.Steps[0], m.Commands[0] = "mend what keeps it from that, by its Events: a volume, or its sandbox", fmt.Sprintf("kubectl -n %s describe pod %s", l.pod.Namespace, l.pod.Name)
		}
		if l.State != parts.Failed || l.Told || mk.Sign(n) == "" { // else it says itself that it does not run
			f.Certainty = diagnosis.Likely
		}
		if twin := l.works(resource); twin != nil {
			f.Says += fmt.Sprintf(", while it works on %s", twin.Name)
			f.Evidence = append(f.Evidence, diagnosis.Fact(twin.Ref(), fmt.Sprintf("offers %s, image %s", resource, twin.Status.NodeInfo.OSImage), diagnosis.That(diagnosis.Allocatable, string(resource), diagnosis.IsNot, "0"), diagnosis.That("status.nodeInfo.osImage", "", diagnosis.Is, twin.Status.NodeInfo.OSImage)))
			f.Mends[0].Steps = append(f.Mends[0].Steps, fmt.Sprintf("see in what the machine differs from %s: system, kernel, SELinux, what its kubelet lets plugins do", twin.Name))
		}
		if split := mk.Parts(n); split != "" {
			f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "label "+split, n.Labelled(mk.Parted)...))
			f.Mends[0].Steps = append(f.Mends[0].Steps, "versions of the plugin differ in which parts of GPUs they find: try another, or give the GPUs back whole (spx)")
		}
		return f
	case len(sets) > 0:
		d := sets[0]
		m := d.Misses(n)
		if m.None() {
			return finishMaker(mk, n, s.refusedPod(n, d, PluginOnNode))
		}
		if f := s.moduleUnloaded(mk, n, d, m); f != nil {
			return finishMaker(mk, n, f)
		}
		f := s.finding(PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("%s and offers no %s: %s/%s does not run there: %s", mk.Has, resource, d.Namespace, d.Name, d.Text(n, m)), d.Ref(), d.Text(n, m), d.Claims(n, m)...)
		f.Mends = []Mend{s.letBothOn(mk, n, d, m)}
		return finishMaker(mk, n, f)
	}
	f := s.finding(Installed, Missing, diagnosis.GPUStackMissing, fmt.Sprintf("%s, and no %s is installed that announces %s", mk.Has, mk.Plugin, resource), n.Ref(), "no DaemonSet of the cluster is "+mk.Plug,
		diagnosis.That("spec.template.spec.containers", "", diagnosis.ContainsNot, mk.Image).Of("DaemonSet/*"))
	if had { // it was announced once, by whatever does
		f.Cause, f.Certainty = diagnosis.DevicePluginDown, diagnosis.Likely
	}
	f.Mends = []Mend{{Kind: diagnosis.RepairDeviceStack, Title: "install " + mk.Plug + ", which announces the " + mk.Devs() + " of " + n.Name, Risk: diagnosis.LowRisk, Minutes: 10,
		Steps:    mk.Steps,
		Commands: append(mk.Install(n.Name), "kubectl get node "+n.Name+" -o jsonpath='{.status.allocatable}'")}}
	return finishMaker(mk, n, f)
}

// unhealthy is of devices that a plugin has announced, and none of which the node offers now.
func unhealthy(n *view.Node, resource corev1.ResourceName, f *Finding, look string) *Finding {
	has := fmt.Sprint(n.Capacity(resource))
	f.Evidence = append(f.Evidence, diagnosis.Fact(n.Ref(), "capacity "+string(resource)+"="+has, diagnosis.That(diagnosis.Capacity, string(resource), diagnosis.Is, has)))
	f.Mends[0].Title, f.Mends[0].Unproven = look, "only its log and the machine tell why it calls them unhealthy"
	f.Mends = []Mend{{Kind: diagnosis.RestartDevicePlugin, Unproven: "whether a new pod of the plugin finds them sound nobody can try on a copy"}, f.Mends[0]}
	return f
}

// keptWaiting: the plugin waits in an init container for another part, which has no pod on the node.
func (p *part) keptWaiting(mk *makers.Maker, resource corev1.ResourceName) *Finding {
	awaited := mk.Awaits[p.Where]
	if awaited == "" || p.State != parts.Waiting || p.s.kit.Pod(p.n, awaited) != nil {
		return nil
	}
	sets := p.s.kit.Sets(awaited)
	comes := slices.ContainsFunc(sets, func(d *parts.Set) bool { return d.Misses(p.n).None() })
	if comes || len(sets) == 0 {
		return nil // its pod is to come, or nothing is known that brings it
	}
	d := sets[0]
	m := d.Misses(p.n)
	f := p.s.finding(PluginOnNode, KeptOff, diagnosis.GPUStackNotOnNode, fmt.Sprintf("%s and offers no %s: %s/%s, for which %s waits, does not run there: %s", mk.Has, resource, d.Namespace, d.Name, mk.Plug, d.Text(p.n, m)), d.Ref(), d.Text(p.n, m), d.Claims(p.n, m)...)
	f.Certainty = diagnosis.Likely // that it waits for this, only its log says
	f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(p.pod), p.Text(), p.Claims...))
	f.Mends = []Mend{p.s.letOn(p.n, d, m, "")}
	return f
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
func (s *Stack) letBothOn(mk *makers.Maker, n *view.Node, d *parts.Set, m parts.Misses) Mend {
	mend := s.letOn(n, d, m, "")
	for _, w := range s.kit.Sets(mk.Before) {
		if x := w.Misses(n); !x.None() && w.Namespace == d.Namespace {
			first := s.letOn(n, w, x, "")
			mend.Title = first.Title + "; " + mend.Title
			mend.Commands = append(first.Commands[:len(first.Commands)-1], mend.Commands...)
		}
	}
	return mend
}

// finishMaker says of each mend that what it brings is not known.
func finishMaker(mk *makers.Maker, n *view.Node, f *Finding) *Finding {
	for i := range f.Mends {
		f.Mends[i].Until, f.Mends[i].Unproven = "", "nothing says how many "+mk.Devs()+" "+n.Name+" has"
	}
	return f
}

// mendOf is where to look when the plugin runs, or may run, and nothing came of it.
func mendOf(m *makers.Maker, n *view.Node, l *part) Mend {
	look := "kubectl get pods -A -o wide --field-selector spec.nodeName=" + n.Name + "  # " + m.Plug + " has to run here"
	if l != nil {
		look = fmt.Sprintf("kubectl -n %s logs %s%s --tail=50", l.pod.Namespace, l.pod.Name, l.In())
	}
	out := Mend{Kind: diagnosis.RepairDeviceStack, Title: "see why " + m.Plug + " announces nothing on " + n.Name, Risk: diagnosis.LowRisk, Minutes: 15, Unproven: "only its log and the machine tell why it announces nothing",
		Steps:    []string{"see what the plugin says", "see on the machine that the driver (" + m.Driver + ") is loaded and serves the card"},
		Commands: []string{look, "kubectl debug node/" + n.Name + " -it --image=busybox -- chroot /host " + m.Shows}}
	if m.Look != nil {
		out.Commands = append(out.Commands, m.Look(n)...)
	}
	return out
}
