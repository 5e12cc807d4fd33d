package rca

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/unpend/unpend/rca/whatif"
)

// draPlugin is the scheduler's plugin that gives devices to claims.
const draPlugin = "DynamicResources"

// claimView is what there is to know about the devices a pod asks for.
type claimView struct {
	*inventory
	asker   *Asker
	pod     *corev1.Pod
	missing []missingClaim
	own     []*resourcev1.ResourceClaim
	asks    []*deviceAsk
	// would are the nodes that could serve the claims if nobody held a device.
	would map[string]bool
	// victims are, by node, the cheapest holders found whose leaving serves the
	// claims; holders the same, also of those that may not be evicted.
	victims, holders map[string][]*corev1.Pod
}

// missingClaim is a claim of the pod that is not there.
type missingClaim struct{ says, ref, fact string }

// deviceAsk is one request for devices: of a claim, or of an extended resource
// that a DeviceClass stands behind.
type deviceAsk struct {
	claim       *resourcev1.ResourceClaim // nil for an extended resource
	ref         string
	name        string // request, or request/subrequest
	at, sub     int    // its place in the claim; sub is -1 for one without alternatives
	class       string
	selectors   []resourcev1.DeviceSelector
	tolerations []resourcev1.DeviceToleration
	count       int64 // 0: all that match

	broken   *fault // does not compile
	readings map[*device]reading
	matching []*device
	near     *device // the nearest of those that do not match
	// givenUp: so many devices could not be asked that the others were not.
	givenUp bool
}

// readClaims looks at the devices that a pod asks for, by its claims and by the extended
// resources among what it wants; nil when it asks for none. On the nodes that the
// scheduler's filters refuse for its devices it finds who would have to leave.
func readClaims(ctx context.Context, inv *inventory, asker *Asker, pod *corev1.Pod, wants corev1.ResourceList, verdict whatif.Verdict) (*claimView, error) {
	v := &claimView{inventory: inv, asker: asker, pod: pod, would: map[string]bool{}, victims: map[string][]*corev1.Pod{}, holders: map[string][]*corev1.Pod{}}
	for i := range pod.Spec.ResourceClaims {
		v.readClaim(&pod.Spec.ResourceClaims[i])
	}
	v.readExtended(wants)
	if len(v.missing)+len(v.asks)+len(v.own) == 0 {
		return nil, nil
	}
	for _, a := range v.asks {
		v.read(ctx, a)
	}
	return v, v.freeAll(ctx, verdict)
}

func (v *claimView) readClaim(pc *corev1.PodResourceClaim) {
	name, generated, err := resourceclaim.Name(v.pod, pc)
	if err != nil {
		v.missing = append(v.missing, v.notGenerated(pc))
		return
	}
	if name == nil {
		return // no claim is needed for it
	}
	ref := "ResourceClaim/" + v.pod.Namespace + "/" + *name
	claim := v.claims[v.pod.Namespace+"/"+*name]
	switch {
	case claim == nil:
		v.missing = append(v.missing, missingClaim{"ResourceClaim " + *name + " does not exist", ref, "does not exist"})
	case claim.DeletionTimestamp != nil:
		v.missing = append(v.missing, missingClaim{"ResourceClaim " + *name + " is being deleted", ref, "is being deleted"})
	case generated && resourceclaim.IsForPod(v.pod, claim, false) != nil:
		v.missing = append(v.missing, missingClaim{"ResourceClaim " + *name + " was made for another pod", ref, "is not owned by the pod"})
	default:
		v.own = append(v.own, claim)
		for i := range claim.Spec.Devices.Requests {
			v.asks = append(v.asks, asksOfRequest(claim, i)...)
		}
	}
}

// notGenerated tells a claim that its template has not become.
func (v *claimView) notGenerated(pc *corev1.PodResourceClaim) missingClaim {
	m := missingClaim{"no ResourceClaim was made for " + pc.Name, podRef(v.pod), "status.resourceClaimStatuses has no " + pc.Name}
	if pc.ResourceClaimTemplateName == nil {
		return m
	}
	name := *pc.ResourceClaimTemplateName
	if v.asker.world.state.Unread["ResourceClaimTemplate"] == "" && v.templates[v.pod.Namespace+"/"+name] == nil {
		return missingClaim{"ResourceClaimTemplate " + name + " does not exist", "ResourceClaimTemplate/" + v.pod.Namespace + "/" + name, "does not exist"}
	}
	for _, e := range v.asker.world.state.Events {
		if e.Reason == "FailedResourceClaimCreation" && e.InvolvedObject.Name == v.pod.Name && e.InvolvedObject.Namespace == v.pod.Namespace {
			m.fact += "; " + e.Message
			break
		}
	}
	return m
}

func asksOfRequest(claim *resourcev1.ResourceClaim, i int) []*deviceAsk {
	r := claim.Spec.Devices.Requests[i]
	ref := "ResourceClaim/" + claim.Namespace + "/" + claim.Name
	if x := r.Exactly; x != nil {
		return []*deviceAsk{{claim: claim, ref: ref, name: r.Name, at: i, sub: -1, class: x.DeviceClassName, selectors: x.Selectors, tolerations: x.Tolerations, count: howMany(x.AllocationMode, x.Count)}}
	}
	var out []*deviceAsk
	for k, x := range r.FirstAvailable {
		out = append(out, &deviceAsk{claim: claim, ref: ref, name: r.Name + "/" + x.Name, at: i, sub: k, class: x.DeviceClassName, selectors: x.Selectors, tolerations: x.Tolerations, count: howMany(x.AllocationMode, x.Count)})
	}
	return out
}

func howMany(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	if mode == resourcev1.DeviceAllocationModeAll {
		return 0
	}
	return max(count, 1) // the API server's default, which dumps of manifests lack
}

// readExtended adds the extended resources that a DeviceClass stands behind.
func (v *claimView) readExtended(wants corev1.ResourceList) {
	for name, q := range wants {
		if class := v.backing[name]; class != nil && !q.IsZero() {
			v.asks = append(v.asks, &deviceAsk{ref: podRef(v.pod), name: string(name), sub: -1, class: class.Name, count: q.Value()})
		}
	}
	slices.SortStableFunc(v.asks, func(a, b *deviceAsk) int { return strings.Compare(a.ref, b.ref) })
}

// maxFaults bounds the devices, told apart, that a selector may fail on before the
// rest is left unasked: one that exceeds its budget takes half a second on each, and
// the scheduler gives up at the first.
const maxFaults = 8

// read asks the selectors of every device. Devices that are alike in all that the
// selectors speak of are asked once.
func (v *claimView) read(ctx context.Context, a *deviceAsk) {
	class := v.classes[a.class]
	if class == nil {
		return
	}
	if a.broken = cmp.Or(v.uncompiled(class.Spec.Selectors, true), v.uncompiled(a.selectors, false)); a.broken != nil {
		return
	}
	a.readings = make(map[*device]reading, len(v.devices))
	known := map[string]reading{}
	var distinct []*device
	like := alike(append(slices.Clone(class.Spec.Selectors), a.selectors...))
	faults := 0
	for _, d := range v.devices {
		key := like(d)
		r, ok := known[key]
		if !ok {
			distinct = append(distinct, d)
			if r = v.readDevice(ctx, class.Spec.Selectors, a.selectors, d); key != "" {
				known[key] = r
			}
			if r.fault != nil {
				faults++
			}
		}
		if r.fault != nil {
			f := *r.fault
			f.device = d
			r.fault = &f
		}
		a.readings[d] = r
		if r.fits && d.taintOf(a.tolerations) == "" {
			a.matching = append(a.matching, d)
		}
		if a.givenUp = faults == maxFaults; a.givenUp {
			break
		}
	}
	a.near = a.nearest(distinct)
}

// alike returns a key that is the same for devices that the selectors cannot tell
// apart; empty when that is not known.
func alike(selectors []resourcev1.DeviceSelector) func(*device) string {
	var seen []property
	for _, s := range selectors {
		if s.CEL == nil {
			continue
		}
		seen = append(seen, properties(s.CEL.Expression)...)
		if rest := reference.ReplaceAllString(s.CEL.Expression, ""); strings.Contains(rest, "attributes") || strings.Contains(rest, "capacity") {
			return func(*device) string { return "" }
		}
	}
	return func(d *device) string {
		var key strings.Builder
		key.WriteString(d.id.driver)
		if d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
			key.WriteString(" shared")
		}
		for _, p := range seen {
			value, ok := d.value(p)
			if value == "a list" {
				return ""
			}
			key.WriteString("\x00")
			if ok {
				key.WriteString("=" + value)
			}
		}
		return key.String()
	}
}

// freeAll finds the nodes that could serve the claims if nobody held a device, and
// there who would have to leave.
func (v *claimView) freeAll(ctx context.Context, verdict whatif.Verdict) error {
	var refused []string
	for _, n := range verdict.Nodes {
		if slices.ContainsFunc(n.Blockers, func(b whatif.Blocker) bool { return b.Plugin == draPlugin }) {
			refused = append(refused, n.Node)
		}
	}
	if len(refused) == 0 || len(v.missing) > 0 || slices.ContainsFunc(v.asks, func(a *deviceAsk) bool { return a.givenUp }) {
		return nil
	}
	err := whatif.Try(v.asker.world.snap, func(s *whatif.Snapshot) error {
		if err := s.FreeDevices(); err != nil {
			return err
		}
		ok, err := s.AllowedBy(ctx, draPlugin, v.pod, refused)
		for _, name := range ok {
			v.would[name] = true
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("free all devices on a copy: %w", err)
	}
	return v.findHolders(ctx, refused)
}

// needs is what the pod's claims ask for, for people. Of alternatives it is the first.
func (v *claimView) needs() []string {
	if v == nil {
		return nil
	}
	var out []string
	for _, a := range v.asks {
		if a.claim != nil && a.sub <= 0 {
			out = append(out, a.countText()+"×"+a.class)
		}
	}
	if len(out) == 0 && len(v.missing) > 0 {
		out = append(out, "a claim")
	}
	return out
}
