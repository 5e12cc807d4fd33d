package devices

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Plugin is the scheduler's plugin that gives devices to claims.
const Plugin = "DynamicResources"

// Claims is what there is to know about the devices a pod asks for.
type Claims struct {
	*Inventory
	asker   *evict.Asker
	pod     *corev1.Pod
	Missing []missingClaim
	Own     []*resourcev1.ResourceClaim
	Asks    []*Ask
	// would are the nodes that could serve the claims if nobody held a device.
	would map[string]bool
	// Victims are, by node, the cheapest holders found whose leaving serves the
	// claims; Holders the same, also of those that may not be evicted.
	Victims, Holders map[string][]*corev1.Pod
	orphans          *[]Orphan // of all nodes, once they were looked for
}

// missingClaim is a claim of the pod that is not there.
type missingClaim struct {
	Says, Ref, Fact string
	Claims          []diagnosis.Claim // of what Ref names
}

// Ask is one request for devices: of a claim, or of an extended resource
// that a DeviceClass stands behind.
type Ask struct {
	Claim       *resourcev1.ResourceClaim // nil for an extended resource
	Ref         string
	Name        string // request, or request/subrequest
	At, Sub     int    // its place in the claim; sub is -1 for one without alternatives
	Class       string
	selectors   []resourcev1.DeviceSelector
	tolerations []resourcev1.DeviceToleration
	count       int64 // 0: all that match

	Broken   *fault // does not compile
	Readings map[*Device]reading
	matching []*Device
	near     *Device // the nearest of those that do not match
	// givenUp: so many devices could not be asked that the others were not.
	givenUp bool
}

// Read looks at the devices that a pod asks for, by its claims and by the extended
// resources among what it wants; nil when it asks for none. On the nodes that the
// scheduler's filters refuse for its devices it finds who would have to leave.
func Read(ctx context.Context, inv *Inventory, asker *evict.Asker, pod *corev1.Pod, wants corev1.ResourceList, verdict whatif.Verdict) (*Claims, error) {
	v := &Claims{Inventory: inv, asker: asker, pod: pod, would: map[string]bool{}, Victims: map[string][]*corev1.Pod{}, Holders: map[string][]*corev1.Pod{}}
	for i := range pod.Spec.ResourceClaims {
		v.readClaim(&pod.Spec.ResourceClaims[i])
	}
	v.readExtended(wants)
	if len(v.Missing)+len(v.Asks)+len(v.Own) == 0 {
		return nil, nil
	}
	for _, a := range v.Asks {
		v.askSelectors(ctx, a)
	}
	return v, v.freeAll(ctx, verdict)
}

func (v *Claims) readClaim(pc *corev1.PodResourceClaim) {
	name, generated, err := resourceclaim.Name(v.pod, pc)
	if err != nil {
		v.Missing = append(v.Missing, v.notGenerated(pc))
		return
	}
	if name == nil {
		return // no claim is needed for it
	}
	ref := "ResourceClaim/" + v.pod.Namespace + "/" + *name
	claim := v.claims[v.pod.Namespace+"/"+*name]
	switch {
	case claim == nil:
		v.Missing = append(v.Missing, missingClaim{"ResourceClaim " + *name + " does not exist", ref, "does not exist", []diagnosis.Claim{diagnosis.That("", "", diagnosis.Absent, "")}})
	case claim.DeletionTimestamp != nil:
		v.Missing = append(v.Missing, missingClaim{"ResourceClaim " + *name + " is being deleted", ref, "is being deleted", []diagnosis.Claim{diagnosis.That("metadata.deletionTimestamp", "", diagnosis.Exists, "")}})
	case generated && resourceclaim.IsForPod(v.pod, claim, false) != nil:
		v.Missing = append(v.Missing, missingClaim{"ResourceClaim " + *name + " was made for another pod", ref, "is not owned by the pod", []diagnosis.Claim{diagnosis.That("metadata.ownerReferences[uid="+string(v.pod.UID)+"]", "", diagnosis.Absent, "")}})
	case slices.Contains(v.Own, claim): // a pod may name one twice
	default:
		v.Own = append(v.Own, claim)
		for i := range claim.Spec.Devices.Requests {
			v.Asks = append(v.Asks, asksOfRequest(claim, i)...)
		}
	}
}

// notGenerated tells a claim that its template has not become.
func (v *Claims) notGenerated(pc *corev1.PodResourceClaim) missingClaim {
	m := missingClaim{"no ResourceClaim was made for " + pc.Name, view.PodRef(v.pod), "status.resourceClaimStatuses has no " + pc.Name, []diagnosis.Claim{diagnosis.That("status.resourceClaimStatuses[name="+pc.Name+"]", "", diagnosis.Absent, "")}}
	if pc.ResourceClaimTemplateName == nil {
		return m
	}
	name := *pc.ResourceClaimTemplateName
	if v.asker.Cluster.State.Unread["ResourceClaimTemplate"] == "" && v.templates[v.pod.Namespace+"/"+name] == nil {
		return missingClaim{"ResourceClaimTemplate " + name + " does not exist", "ResourceClaimTemplate/" + v.pod.Namespace + "/" + name, "does not exist", []diagnosis.Claim{diagnosis.That("", "", diagnosis.Absent, "")}}
	}
	for _, e := range v.asker.Cluster.State.Events {
		if e.Reason == "FailedResourceClaimCreation" && e.InvolvedObject.Name == v.pod.Name && e.InvolvedObject.Namespace == v.pod.Namespace {
			m.Fact, m.Claims = m.Fact+"; "+e.Message, append(m.Claims, diagnosis.Says(e.Message))
			break
		}
	}
	return m
}

func asksOfRequest(claim *resourcev1.ResourceClaim, i int) []*Ask {
	r := claim.Spec.Devices.Requests[i]
	ref := "ResourceClaim/" + claim.Namespace + "/" + claim.Name
	if x := r.Exactly; x != nil {
		return []*Ask{{Claim: claim, Ref: ref, Name: r.Name, At: i, Sub: -1, Class: x.DeviceClassName, selectors: x.Selectors, tolerations: x.Tolerations, count: howMany(x.AllocationMode, x.Count)}}
	}
	var out []*Ask
	for k, x := range r.FirstAvailable {
		out = append(out, &Ask{Claim: claim, Ref: ref, Name: r.Name + "/" + x.Name, At: i, Sub: k, Class: x.DeviceClassName, selectors: x.Selectors, tolerations: x.Tolerations, count: howMany(x.AllocationMode, x.Count)})
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
func (v *Claims) readExtended(wants corev1.ResourceList) {
	for name, q := range wants {
		if class := v.backing[name]; class != nil && !q.IsZero() {
			v.Asks = append(v.Asks, &Ask{Ref: view.PodRef(v.pod), Name: string(name), Sub: -1, Class: class.Name, count: q.Value()})
		}
	}
	slices.SortStableFunc(v.Asks, func(a, b *Ask) int { return strings.Compare(a.Ref, b.Ref) })
}

// maxFaults bounds the devices, told apart, that a selector may fail on before the
// rest is left unasked: one that exceeds its budget takes half a second on each, and
// the scheduler gives up at the first.
const maxFaults = 8

// askSelectors asks the selectors of every device. Devices that are alike in all that the
// selectors speak of are asked once.
func (v *Claims) askSelectors(ctx context.Context, a *Ask) {
	class := v.classes[a.Class]
	if class == nil {
		return
	}
	if a.Broken = cmp.Or(v.uncompiled(class.Spec.Selectors, true), v.uncompiled(a.selectors, false)); a.Broken != nil {
		return
	}
	a.Readings = make(map[*Device]reading, len(v.Devices))
	known := map[string]reading{}
	var distinct []*Device
	like := alike(append(slices.Clone(class.Spec.Selectors), a.selectors...))
	faults := 0
	for _, d := range v.Devices {
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
			f.Device = d
			r.fault = &f
		}
		a.Readings[d] = r
		if r.Fits && d.taintOf(a.tolerations) == "" {
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
func alike(selectors []resourcev1.DeviceSelector) func(*Device) string {
	var seen []Property
	for _, s := range selectors {
		if s.CEL == nil {
			continue
		}
		seen = append(seen, Properties(s.CEL.Expression)...)
		if rest := reference.ReplaceAllString(s.CEL.Expression, ""); strings.Contains(rest, "attributes") || strings.Contains(rest, "capacity") {
			return func(*Device) string { return "" }
		}
	}
	return func(d *Device) string {
		var key strings.Builder
		key.WriteString(d.ID.Driver)
		if d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations {
			key.WriteString(" shared")
		}
		for _, p := range seen {
			value, ok := d.Value(p)
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
func (v *Claims) freeAll(ctx context.Context, verdict whatif.Verdict) error {
	var refused []string
	for _, n := range verdict.Nodes {
		if slices.ContainsFunc(n.Blockers, func(b whatif.Blocker) bool { return b.Plugin == Plugin }) {
			refused = append(refused, n.Node)
		}
	}
	if len(refused) == 0 || len(v.Missing) > 0 || slices.ContainsFunc(v.Asks, func(a *Ask) bool { return a.givenUp }) {
		return nil
	}
	err := whatif.Try(v.asker.Cluster.Snapshot, func(s *whatif.Snapshot) error {
		if err := s.FreeDevices(); err != nil {
			return err
		}
		ok, err := s.AllowedBy(ctx, Plugin, v.pod, refused)
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

// Needs is what the pod's claims ask for, for people. Of alternatives it is the first.
func (v *Claims) Needs() []string {
	if v == nil {
		return nil
	}
	var out, classes []string
	counts := map[string]int64{}
	for _, a := range v.Asks {
		switch {
		case a.Claim == nil || a.Sub > 0:
		case a.count == 0:
			out = append(out, a.CountText()+"×"+a.Class)
		default:
			if counts[a.Class] == 0 {
				classes = append(classes, a.Class)
			}
			counts[a.Class] += a.count
		}
	}
	for _, class := range classes {
		out = append(out, fmt.Sprintf("%d×%s", counts[class], class))
	}
	if len(out) == 0 && len(v.Missing) > 0 {
		out = append(out, "a claim")
	}
	return out
}
