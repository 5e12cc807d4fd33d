package kubelet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher/incident"
)

// Behind is what stands behind a kubelet's refusal.
type Behind int

// What stands behind refusals: by the kubelet's words which family it is, and by what is on
// the node which of it.
const (
	OwnWords        Behind = iota // nothing more is known than what it says
	GPULost                       // NVML fails on some GPU of the node, and so for all
	GPUsSick                      // the device plugin calls them unhealthy
	PluginAway                    // it was not back since the node or its kubelet started, or died meanwhile
	Behindhand                    // the kubelet counts fewer free than the scheduler
	NotReleased                   // the pod before had just ended
	PlacedByHand                  // nodeName is written in the pod or its template
	TwoSchedulers                 // another scheduler places such pods on the node, too
	InitAsksToo                   // an init container asks for the same devices
	DevicesMoved                  // the table of devices changed under way
	SameUID                       // a static pod that was made again
	CountedOver                   // the kubelet's own sum of the node's pods is too high
	Unaligned                     // no NUMA node has all of it
	NVMLLost                      // the device plugin cannot start NVML itself, and so answers for no GPU
	OverheadLeftOut               // the scheduler that chose the node counts no overhead of a RuntimeClass
	AllHeld                       // pods that were there before hold all that the node offers: its scheduler counts otherwise
	Trial                         // the GPU Operator tries its device plugin on a node whose GPUs are held
	PluginSays                    // the device plugin answered with an error of its own
	NotByHAMi                     // HAMi's device plugin gives only what HAMi's scheduler has placed, and another has placed it
	NotPermitted                  // the device plugin's container may not read GPUs in MIG mode
	MemoryUnaligned               // its Memory Manager finds no NUMA nodes with so much memory left
)

// Turned is a kubelet's refusal of the case's pod.
type Turned struct {
	Behind Behind
	On     string     // the node's name
	Node   *view.Node // nil where it is gone or was not read
	Reason string
	Init   string        // the init container that asks too
	Before []*corev1.Pod // on the node, that had the devices before
	Others []*corev1.Pod // on the node, that ask for the same and that another scheduler placed
	// Here are all pods that the node's kubelet refused, this one included; Elsewhere counts
	// those of other nodes.
	Here      []*corev1.Pod
	Elsewhere int
	Last      time.Time // the newest refusal here
	// Fine: nothing speaks against trying again there.
	Fine bool
	// Back: the device plugin has started again since the newest refusal, and the node offers
	// all that it has. Well: so it does, and has had the time to say otherwise; not of NVIDIA's, whose plugin has to start again.
	Back, Well bool
	// since is when the node's plugin, or its kubelet, came back.
	plugin, ready time.Time
}

// stormy is how many pods that one node refused are no accident.
const stormy = 3

// Storm says whether the node refuses one pod after the other.
func (t *Turned) Storm() bool { return len(t.Here) >= stormy }

// Turned is worked out once; nil where no kubelet has refused the pod.
func (c *Case) Turned() *Turned {
	if c.turned == nil && c.On != "" {
		c.turned = c.readTurned()
	}
	return c.turned
}

func (c *Case) readTurned() *Turned {
	t := &Turned{On: c.On, Node: c.Cluster.Nodes[c.On], Reason: c.Refusal.Reason}
	for name, pods := range c.Cluster.Rejected() {
		if name != t.On {
			t.Elsewhere += len(pods)
			continue
		}
		t.Here = pods
		for _, p := range pods {
			if at := RejectedAt(c.Cluster, p); at.After(t.Last) {
				t.Last = at
			}
		}
	}
	if t.Node != nil {
		t.plugin, t.ready = t.Node.PluginSince(), t.Node.ReadySince()
	}
	t.Init = c.initAsksToo()
	t.Behind = c.behind(t)
	t.Fine = c.fine(t)
	return t
}

// toldByText are families that the kubelet's words tell apart from all others
// (pkg/kubelet/cm/devicemanager/manager.go, 1.36.3; k8s-device-plugin internal/rm).
var toldByText = []struct {
	part string
	is   Behind
}{
	{parts.NotPermitted, NotPermitted},
	{"[memorymanager]", MemoryUnaligned},
	{"calling nvml.Init", NVMLLost},
	{"GetPreferredAllocation rpc failed", GPULost},
	{"GPU is lost", GPULost},
	{"unable to get device link information", GPULost},
	{"error creating nvml.Device", GPULost},
	{"unhealthy devices", GPUsSick},
	{"cannot allocate unregistered device", PluginAway},
	{"code = Unavailable", PluginAway},
	{"unexpectedly allocated less resources", DevicesMoved},
	{"changed request for resource", SameUID},
}

func (c *Case) behind(t *Turned) Behind {
	text := c.Refusal.Message
	if t.Reason == topologyAffinity {
		return Unaligned
	}
	if c.notByHAMi(t) {
		return NotByHAMi
	}
	for _, k := range toldByText {
		if strings.Contains(text, k.part) {
			return k.is
		}
	}
	if pluginsWords(text) != "" {
		return PluginSays
	}
	devices, out := strings.Contains(text, "requested number of devices unavailable"), strings.HasPrefix(t.Reason, "OutOf")
	if !devices && strings.Contains(text, "Update plugin resources failed") {
		return DevicesMoved
	}
	if !devices && !out && t.Reason != "NodeAffinity" && t.Reason != "TaintToleration" && t.Reason != "NodePorts" {
		return OwnWords
	}
	t.Others = c.placedByOthers(t)
	switch {
	case devices && c.isTrial() && c.heldAll(t):
		return Trial
	case c.placedByHand():
		return PlacedByHand
	case len(t.Others) > 0:
		return TwoSchedulers
	case out && c.overheadLeftOut(t):
		return OverheadLeftOut
	case out:
		return CountedOver
	case !devices:
		return OwnWords
	}
	if t.Before = c.before(t); len(t.Before) > 0 {
		return NotReleased
	}
	if t.Init != "" {
		return InitAsksToo
	}
	if at := RejectedAt(c.Cluster, c.refused()); soon(t.ready, at) {
		return PluginAway
	}
	if c.heldBefore(t) {
		return AllHeld
	}
	return Behindhand
}

// pluginsWords are those with which a device plugin itself refused to give devices (its Allocate); empty
// where it did not. Older kubelets called it while they updated their own table.
func pluginsWords(text string) string {
	_, answer, called := strings.Cut(strings.Replace(text, "Update plugin resources failed", "Allocate failed", 1), "Allocate failed due to rpc error: code = ")
	_, says, _ := strings.Cut(answer, " desc = ")
	if !called || strings.Contains(says, "invalid allocation request") { // of shares, whose words are known
		return ""
	}
	return strings.TrimSuffix(strings.TrimSpace(says), ", which is unexpected")
}

// notByHAMi says whether HAMi's device plugin found no pod that HAMi's scheduler had placed on the node (pkg/util,
// GetPendingPod), and another scheduler has placed this one there: it would be refused again.
func (c *Case) notByHAMi(t *Turned) bool {
	text := c.Refusal.Message
	return t.OfHAMi() && !strings.Contains(c.Scheduler, "hami") &&
		(strings.Contains(text, "no binding pod found on node") || strings.Contains(text, "no node lock naming a pending pod"))
}

// hamisCards is where HAMi's device plugin writes on a node which cards it shares.
const hamisCards = "hami.io/node-nvidia-register"

// OfHAMi says whether HAMi's device plugin shares the node's cards.
func (t *Turned) OfHAMi() bool { return t.Node != nil && t.Node.Annotations[hamisCards] != "" }

// isTrial says whether it is the pod by which the GPU Operator's validator tries the device plugin: it asks for a GPU,
// names its node itself, and is made again until it gets one (gpu-operator cmd/nvidia-validator, runWorkload).
func (c *Case) isTrial() bool {
	p := c.refused()
	by := metav1.GetControllerOfNoCopy(p)
	return p.Labels["app"] == "nvidia-device-plugin-validator" && by != nil && by.Kind == "DaemonSet"
}

// heldAll says whether pods hold all that the node offers of what was short.
func (c *Case) heldAll(t *Turned) bool {
	name := c.short(t)
	return t.Node != nil && t.Node.Allocatable(name) > 0 && t.Node.HeldOf(name) >= t.Node.Allocatable(name)
}

// heldBefore says whether pods that began before the pod was refused hold all that the node offers of what was short:
// its kubelet and the requests of its pods then say the same.
func (c *Case) heldBefore(t *Turned) bool {
	name := c.short(t)
	if t.Node == nil || !c.heldAll(t) {
		return false
	}
	held, at := int64(0), RejectedAt(c.Cluster, c.refused())
	for _, p := range t.Node.Pods {
		if p.Status.StartTime != nil && p.Status.StartTime.Time.Before(at) {
			q := t.Node.Requests[p][name]
			held += q.Value()
		}
	}
	return held >= t.Node.Allocatable(name)
}

// Overhead is how much a pod's RuntimeClass adds to what its containers ask of the resource that it was
// refused for; zero for none.
func (c *Case) Overhead(t *Turned) (name corev1.ResourceName, adds resource.Quantity) {
	name = corev1.ResourceName(strings.TrimPrefix(t.Reason, "OutOf"))
	return name, c.refused().Spec.Overhead[name]
}

// overheadLeftOut says that what the containers ask is left on the node, and what the RuntimeClass adds to
// it is not, where another scheduler than the default one has chosen: that one counts it.
func (c *Case) overheadLeftOut(t *Turned) bool {
	name, adds := c.Overhead(t)
	if t.Node == nil || adds.Sign() <= 0 || c.Scheduler == corev1.DefaultSchedulerName {
		return false
	}
	free, asks := t.Node.Free(name), view.PodRequests(c.refused())[name]
	bare := asks.DeepCopy()
	bare.Sub(adds)
	return asks.Cmp(free) > 0 && bare.Cmp(free) <= 0
}

// soon says that something happened in the minutes before.
func soon(was, at time.Time) bool {
	return !was.IsZero() && at.After(was) && at.Sub(was) <= 5*time.Minute
}

// refused is the pod as it was refused, with its node.
func (c *Case) refused() *corev1.Pod {
	if p := c.Cluster.State.Pod(c.Pod.Namespace, c.Pod.Name); p != nil {
		return p
	}
	return c.Pod
}

// placedByHand says that the node's name is written in the workload's template, or, as far
// as that can be seen, that who made the pod wrote it: the scheduler binds pods without
// a trace among who wrote which fields.
func (c *Case) placedByHand() bool {
	if t := c.Cluster.Template(c.Workload); t != nil {
		return t.NodeName != ""
	}
	p := c.refused()
	for _, f := range p.ManagedFields {
		if f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:nodeName"`) {
			return true
		}
	}
	return strings.Contains(p.Annotations[corev1.LastAppliedConfigAnnotation], `"nodeName":"`)
}

// knownBy is by when a scheduler has seen for certain what another did.
const knownBy = 5 * time.Minute

// placedByOthers are the pods on the node that ask for what it was refused for, and that
// another scheduler placed: neither has seen the other's choice in time.
func (c *Case) placedByOthers(t *Turned) []*corev1.Pod {
	same := c.asksSame
	name, out := strings.CutPrefix(t.Reason, "OutOf")
	if out {
		same = func(p *corev1.Pod) bool {
			q, asks := view.PodRequests(p)[corev1.ResourceName(name)]
			return asks && q.Sign() > 0
		}
	}
	var others []*corev1.Pod
	at, counted := RejectedAt(c.Cluster, c.refused()), out && !strings.Contains(name, "/")
	for _, p := range c.Cluster.State.Pods {
		if counted && at.Sub(RejectedAt(c.Cluster, p)) > knownBy {
			continue // what a node has of CPU or memory every scheduler counts by all of its pods
		}
		if p.Spec.NodeName == t.On && !view.Ended(p) && same(p) && cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName) != c.Scheduler {
			others = append(others, p)
		}
	}
	return others
}

// initAsksToo is the first init container that asks for a GPU resource as a container that runs on does; its devices
// are its own while it runs, and injected ones are easily overlooked.
func (c *Case) initAsksToo() string {
	asks := func(name corev1.ResourceName) func(corev1.Container) bool {
		return func(k corev1.Container) bool {
			q := k.Resources.Limits[name]
			return q.Sign() > 0
		}
	}
	for _, a := range c.Asks {
		if i := slices.IndexFunc(c.Pod.Spec.InitContainers, asks(a.Resource)); i >= 0 && slices.ContainsFunc(c.Pod.Spec.Containers, asks(a.Resource)) {
			return c.Pod.Spec.InitContainers[i].Name
		}
	}
	return ""
}

// before are the pods of the node that hold what is asked and are about to end, or had just
// ended when the pod was refused.
func (c *Case) before(t *Turned) []*corev1.Pod {
	var out []*corev1.Pod
	at := RejectedAt(c.Cluster, c.refused())
	for _, p := range c.Cluster.State.Pods {
		if p.Spec.NodeName != t.On || p.Name == c.Pod.Name && p.Namespace == c.Pod.Namespace || !c.asksSame(p) {
			continue
		}
		if _, _, refused := incident.Waiting(p); refused {
			continue
		}
		ended := endedAt(p)
		if p.DeletionTimestamp != nil && !view.Ended(p) || !ended.IsZero() && ended.After(at.Add(-2*time.Minute)) && ended.Before(at.Add(2*time.Minute)) {
			out = append(out, p)
		}
	}
	return out
}

// devices are what the pod asks of device plugins.
func (c *Case) devices() []view.Ask {
	out := slices.Clone(c.Asks)
	for _, name := range view.SortedNames(c.Wants) {
		if q := c.Wants[name]; !view.IsGPU(name) && incident.OfDevices(string(name)) && !slices.Contains(whatif.OfHAMi, name) && q.Sign() > 0 {
			out = append(out, view.Ask{Resource: name, Count: q.Value()})
		}
	}
	return out
}

func (c *Case) asksSame(p *corev1.Pod) bool {
	requests := view.PodRequests(p)
	for _, a := range c.devices() {
		if q, ok := requests[a.Resource]; ok && q.Sign() > 0 {
			return true
		}
	}
	return false
}

// endedAt is when the last container of a pod that has ended did; zero where it has not.
func endedAt(p *corev1.Pod) time.Time {
	var last time.Time
	if !view.Ended(p) {
		return last
	}
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Terminated != nil && s.State.Terminated.FinishedAt.After(last) {
			last = s.State.Terminated.FinishedAt.Time
		}
	}
	return last
}

// reported is when a kubelet has told its node's status again for certain (nodeStatusUpdateFrequency, 10 s by default).
const reported = time.Minute

// fine says whether nothing speaks against trying again on the node: it has what is asked,
// and what was behind the refusal is over. What is unknown is not fine.
func (c *Case) fine(t *Turned) bool {
	if t.Node == nil || t.Node.ReadySince().IsZero() || t.Node.Spec.Unschedulable {
		return false
	}
	for _, a := range c.devices() {
		stock := t.Node.StockOf(a.Resource)
		if !t.Node.Has(a.Resource, a.Count) || stock.Allocatable < stock.Capacity && !t.Ground().Passes { // whose table of devices was not asked
			return false
		}
	}
	back := t.plugin.After(t.Last) || t.ready.After(t.Last)
	t.Back, t.Well = t.plugin.After(t.Last), len(c.devices()) > 0 && len(c.Asks) == 0 && !t.Storm() && c.Cluster.State.Now.Sub(t.Last) > reported
	sound := t.Node.Geometry != nil && t.Node.Doubt == "" && t.Node.SickText() == "" && !t.Storm()
	switch t.Behind {
	case GPUsSick: // what a plugin calls unhealthy its node does not offer (pkg/kubelet/cm/devicemanager, GetCapacity)
		return back || t.Well || sound
	case GPULost, NVMLLost:
		return back || sound
	case Unaligned, OverheadLeftOut, NotPermitted:
		return false
	case PluginSays: // why it refuses its log alone tells
		return back
	case NotReleased:
		return !slices.ContainsFunc(t.Before, func(p *corev1.Pod) bool { return !view.Ended(p) })
	}
	return back || !t.Storm()
}
