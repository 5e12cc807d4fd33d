package kubelet

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Refused tells of the refusals that are not Aligned's or Shares', with their words in a headline; empty:
// the usual ones do. That it refused is in the pod's own status; what stands behind is read off its
// words and the node.
func (c *Case) Refused() (f *view.Finding, words string) {
	reason, evidence, ok := c.refusedBy()
	if !ok || reason == topologyAffinity || reason == unexpectedAdmission && tooManyShares(c.Refusal.Message) {
		return nil, ""
	}
	says := "the kubelet refused it at admission: " + reason
	if t := c.Turned(); t != nil {
		says += " on " + t.On
		if behind := c.behindSays(t); behind != "" {
			says += ": " + behind
		}
		words = cmp.Or(t.Behind.words(), t.Ground().words)
		evidence = append(evidence, c.turnedEvidence(t)...)
	}
	return view.Found(diagnosis.Proven, says+c.itSaid(), evidence...), words
}

// knewNone are a kubelet's words for devices of which it knew none (pkg/kubelet/lifecycle, InsufficientResourceError).
var knewNone = regexp.MustCompile(`Node didn't have enough resource: \S+/\S+, requested: \d+, used: \d+, capacity: 0\b`)

// itSaid quotes the kubelet.
func (c *Case) itSaid() string {
	text := strings.TrimPrefix(strings.Join(strings.Fields(c.Refusal.Message), " "), "Pod was rejected: ")
	if text == "" {
		return ""
	}
	return "; it said: " + view.Cut(text, 200)
}

// words say it in a headline; empty: the catalogue's do.
func (b Behind) words() string {
	return map[Behind]string{GPULost: "a lost GPU refuses all", NVMLLost: "device plugin lost NVML", GPUsSick: "kubelet: GPUs unhealthy", PluginAway: "device plugin did not answer", PluginSays: "device plugin gave none", Behindhand: "kubelet counts otherwise",
		NotReleased: "GPU was not given back yet", PlacedByHand: "nodeName is set by hand", TwoSchedulers: "two schedulers, one node", InitAsksToo: "init container asks too", OverheadLeftOut: "overhead was not counted", Trial: "no GPU is free for a trial", NotByHAMi: "HAMi has not placed it", AllHeld: "all is held on its node", NotPermitted: "plugin may not read MIG GPUs", MemoryUnaligned: "no NUMA node has the memory"}[b]
}

// behindSays is what stands behind the refusal, as far as that can be told.
func (c *Case) behindSays(t *Turned) string {
	says := ""
	switch t.Behind {
	case OwnWords:
		says = t.Ground().Says
	case GPULost:
		says = "NVML fails on a GPU of the node, and the device plugin looks at every one before it gives any: one lost GPU refuses all pods that ask for whole GPUs"
	case NVMLLost:
		says = "the device plugin itself cannot start NVML (nvml.Init), and answers for none of the node's GPUs: no GPU is named, and its pod goes on as if nothing were"
	case NotPermitted:
		says = "the device plugin may not read GPUs that are in MIG mode (NVML: " + parts.NotPermitted + "): its container lacks the right to, and no GPU is lost by that"
	case GPUsSick:
		says = "the device plugin calls the devices unhealthy"
		switch {
		case t.Back:
			says = "the device plugin called the devices unhealthy; it has restarted since, and offers them all"
		case t.Well:
			says = "the device plugin called the devices unhealthy; the node offers all of them by now"
		case len(c.Asks) > 0: // NVIDIA's (k8s-device-plugin internal/rm/health.go); others have them back
			says += ", until it restarts"
		}
	case PluginAway:
		says = "the device plugin was not there when the kubelet asked it"
		if strings.Contains(c.Refusal.Message, "error reading from server") { // gRPC's word for a connection that broke off
			says = "the device plugin broke off while it answered the kubelet"
		}
		if at := RejectedAt(c.Cluster, c.refused()); soon(t.ready, at) {
			says += fmt.Sprintf(": the node had been Ready for %s", view.Age(at.Sub(t.ready)))
		}
	case PluginSays:
		says = "the device plugin itself did not give it the device: " + view.Cut(pluginsWords(c.Refusal.Message), 120)
	case Behindhand:
		says = "the kubelet's own table of devices had fewer free than the scheduler counts" + c.countsNow(t)
	case NotReleased:
		says = fmt.Sprintf("%s was just leaving, and its devices were not given back yet", view.PodList(t.Before))
	case PlacedByHand:
		says = "its nodeName is written by hand, so no scheduler has counted what the node has left" + c.countsNow(t)
	case TwoSchedulers:
		says = fmt.Sprintf("scheduler %s chose the node, and %s chose it for %s: neither waits for the other", c.Scheduler, cmp.Or(t.Others[0].Spec.SchedulerName, corev1.DefaultSchedulerName), view.PodList(t.Others)) + c.countsNow(t)
	case Trial:
		says = "it is the GPU Operator's trial of its device plugin, which no scheduler places" + c.countsNow(t)
	case AllHeld:
		says = "pods that were there before it hold all that the node offers, and " + c.Scheduler + ", which chose the node, counts otherwise" + c.countsNow(t)
	case NotByHAMi:
		says = fmt.Sprintf("HAMi's device plugin gives devices only to a pod that HAMi's scheduler has placed, and %s has placed this one", c.Scheduler)
	case InitAsksToo:
		says = fmt.Sprintf("its init container %s asks for the devices too", t.Init)
	case DevicesMoved:
		says = "the node's devices changed while it was admitted"
	case SameUID:
		says = "a pod of the same uid was there before, with other requests"
	case OverheadLeftOut:
		name, adds := c.Overhead(t)
		says = fmt.Sprintf("what its containers ask is left there, and is not with the overhead of RuntimeClass %s, %s %s: %s has placed it as if it had none", ptr.Deref(c.refused().Spec.RuntimeClassName, ""), adds.String(), name, c.Scheduler) + c.countsNow(t)
	case CountedOver:
		says = "by the kubelet's own count the node was full" + c.countsNow(t)
		if knewNone.MatchString(c.Refusal.Message) {
			says = "the kubelet knew of none there yet, as it does until the device plugin has registered with it" + c.countsNow(t)
		}
	case MemoryUnaligned: // pkg/kubelet/cm/memorymanager, policy_static.go: no other policy refuses
		says = "its Memory Manager (policy Static) finds no NUMA nodes with so much memory left"
	}
	if t.Init != "" && t.Behind != InitAsksToo {
		says += fmt.Sprintf("; its init container %s asks for the devices too", t.Init)
	}
	return strings.TrimPrefix(says+c.stormSays(t), "; ")
}

// stormSays names a node that refuses one pod after the other; that no other has is no sign against the
// node where no other has what its device plugin refuses.
func (c *Case) stormSays(t *Turned) string {
	says := t.stormSays()
	if t.Behind != PluginSays {
		return says
	}
	for name := range view.PodRequests(c.Pod) {
		if strings.Contains(string(name), "/") && !slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool { return n.Name != t.On && n.Allocatable(name) > 0 }) {
			says, _, _ = strings.Cut(says, ", no other node has")
		}
	}
	return says
}

// countsNow is what the scheduler counts on the node now of what was short there.
func (c *Case) countsNow(t *Turned) string {
	name := c.short(t)
	if t.Node == nil {
		return ""
	}
	has, ok := t.Node.Status.Allocatable[name]
	if !ok || has.IsZero() {
		return ""
	}
	free := t.Node.Free(name)
	return fmt.Sprintf(" (now %s of %s %s are free)", free.String(), has.String(), name)
}

// short is what the kubelet had too little of: what its reason names, else the first of the devices that the pod asks.
func (c *Case) short(t *Turned) corev1.ResourceName {
	name, named := strings.CutPrefix(t.Reason, "OutOf")
	if of := c.devices(); !named && len(of) > 0 {
		return of[0].Resource
	}
	return corev1.ResourceName(name)
}

// stormSays names a node that refuses one pod after the other.
func (t *Turned) stormSays() string {
	if !t.Storm() {
		return ""
	}
	elsewhere := "no other node has refused any"
	if t.Elsewhere > 0 {
		elsewhere = fmt.Sprintf("other nodes have refused %d", t.Elsewhere)
	}
	return fmt.Sprintf("; %d refused pods lie on %s, %s", len(t.Here), t.On, elsewhere)
}

// stormClaims are how many pods the node refused, and how many others did.
func (t *Turned) stormClaims() []diagnosis.Claim {
	if !t.Storm() {
		return nil
	}
	is := func(path string, n int) diagnosis.Claim {
		return diagnosis.That(path, "", diagnosis.Is, strconv.Itoa(n)).Of("Node/" + t.On)
	}
	return []diagnosis.Claim{is("count(refused)", len(t.Here)), is("count(refused[*]) - count(refused)", t.Elsewhere)}
}

// turnedEvidence is what the node shows.
func (c *Case) turnedEvidence(t *Turned) []diagnosis.Evidence {
	if t.Node == nil {
		return []diagnosis.Evidence{diagnosis.Fact("Node/"+t.On, "is not there any more, or was not read", diagnosis.That("", "", diagnosis.Absent, ""))}
	}
	var out []diagnosis.Evidence
	note := func(ref, fact string, claims ...diagnosis.Claim) {
		out = append(out, diagnosis.Fact(ref, fact, claims...))
	}
	for _, a := range c.devices() {
		stock, free := t.Node.StockOf(a.Resource), t.Node.Free(a.Resource)
		amount := func(path string, n int64) diagnosis.Claim {
			return diagnosis.That(path, string(a.Resource), diagnosis.Is, strconv.FormatInt(n, 10))
		}
		note(t.Node.Ref(), fmt.Sprintf("%s: capacity %d, allocatable %d, %d free by the requests of its pods", a.Resource, stock.Capacity, stock.Allocatable, free.Value()),
			amount(diagnosis.Capacity, stock.Capacity), amount(diagnosis.Allocatable, stock.Allocatable), amount(diagnosis.Free, free.Value()))
	}
	name := c.short(t)
	if has := t.Node.Status.Allocatable[name]; !has.IsZero() && !slices.ContainsFunc(c.devices(), func(a view.Ask) bool { return a.Resource == name }) { // CPU, memory, huge pages
		free := t.Node.Free(name)
		note(t.Node.Ref(), fmt.Sprintf("%s: allocatable %s, %s free by the requests of its pods", name, has.String(), free.String()),
			diagnosis.That(diagnosis.Allocatable, string(name), diagnosis.Is, has.String()), diagnosis.That(diagnosis.Free, string(name), diagnosis.Is, free.String()))
	}
	clock := func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }
	if !t.ready.IsZero() {
		note(t.Node.Ref(), "Ready since "+clock(t.ready), view.Since("Ready", t.ready))
	}
	if p := t.Node.PluginPod(); p != nil && !t.plugin.IsZero() {
		note(view.PodRef(p), "the device plugin runs since "+clock(t.plugin), diagnosis.That("spec.nodeName", "", diagnosis.Is, t.On))
	}
	if name, adds := c.Overhead(t); t.Behind == OverheadLeftOut {
		has, free := t.Node.Status.Allocatable[name], t.Node.Free(name)
		note(t.Node.Ref(), fmt.Sprintf("%s: allocatable %s, %s free by the requests of its pods", name, has.String(), free.String()), diagnosis.That(diagnosis.Allocatable, string(name), diagnosis.Is, has.String()), diagnosis.That(diagnosis.Free, string(name), diagnosis.Is, free.String()))
		note(c.Ref(), fmt.Sprintf("overhead %s=%s, schedulerName %s", name, adds.String(), c.Scheduler), diagnosis.That("spec.overhead", string(name), diagnosis.Is, adds.String()), diagnosis.That("spec.schedulerName", "", diagnosis.Is, c.Scheduler))
	}
	if t.Behind == NotByHAMi {
		note(t.Node.Ref(), "annotation "+hamisCards+" is there", diagnosis.That("metadata.annotations", hamisCards, diagnosis.Exists, ""))
	}
	if t.Behind == NotByHAMi || t.Behind == AllHeld {
		note(c.Ref(), "schedulerName "+c.Scheduler, diagnosis.That("spec.schedulerName", "", diagnosis.Is, c.Scheduler))
	}
	for _, p := range t.Others {
		note(view.PodRef(p), "asks for the same there, and schedulerName is "+cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName), diagnosis.That("spec.nodeName", "", diagnosis.Is, t.On))
	}
	for _, p := range t.Before {
		note(view.PodRef(p), "asked for the same devices there, and was leaving", diagnosis.That("spec.nodeName", "", diagnosis.Is, t.On))
	}
	if at := RejectedAt(c.Cluster, c.refused()); !at.IsZero() {
		note(c.Ref(), "refused at "+clock(at), append(t.stormClaims(), diagnosis.That("status.phase", "", diagnosis.Is, "Failed"))...)
	}
	return out
}
