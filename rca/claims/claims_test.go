package claims

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
)

// device is one of gpu.example with a model, a number of slices and some memory.
func device() *devices.Device {
	model, slices, listed := "a100", int64(7), []int64{1, 2}
	return &devices.Device{ID: devices.ID{Driver: "gpu.example"}, Device: &resourcev1.Device{Name: "d",
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &model}, "slices": {IntValue: &slices}, "lanes": {IntValues: listed}},
		Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: rcatest.List("m", "40Gi")["m"]}}}}
}

// A clause is written as the nearest device meets it, where that can be told, or asked only of
// devices that publish what it speaks of.
func TestClausesAreRewritten(t *testing.T) {
	const of = `device.attributes["gpu.example"].`
	const memory = `device.capacity["gpu.example"].memory.compareTo(quantity("80Gi"))`
	for _, tc := range []struct{ text, instead, guarded string }{
		{of + `model == "h100"`, of + `model == "a100"`, `"model" in device.attributes["gpu.example"] && (` + of + `model == "h100")`},
		{of + `model != "a100"`, "", `"model" in device.attributes["gpu.example"] && (` + of + `model != "a100")`},
		{of + `slices > 7`, of + `slices >= 7`, `"slices" in device.attributes["gpu.example"] && (` + of + `slices > 7)`},
		{of + `slices < 7`, of + `slices <= 7`, `"slices" in device.attributes["gpu.example"] && (` + of + `slices < 7)`},
		{of + `slices >= 8`, of + `slices >= 7`, `"slices" in device.attributes["gpu.example"] && (` + of + `slices >= 8)`},
		{of + `cores > 7`, "", `"cores" in device.attributes["gpu.example"] && (` + of + `cores > 7)`},
		{of + `lanes == 7`, "", `"lanes" in device.attributes["gpu.example"] && (` + of + `lanes == 7)`},
		{memory + ` >= 0`, `device.capacity["gpu.example"].memory.compareTo(quantity("40Gi")) >= 0`, `"memory" in device.capacity["gpu.example"] && (` + memory + ` >= 0)`},
		{`1 == 2`, "", ""},
	} {
		if got := deviceInstead(device(), tc.text); got != tc.instead {
			t.Errorf("%s: %s, want %s", tc.text, got, tc.instead)
		}
		if got := guarded(tc.text); got != tc.guarded {
			t.Errorf("%s: %s, want %s", tc.text, got, tc.guarded)
		}
	}
}

// Of a selector only the clauses that are in the way are rewritten.
func TestOnlyBadClausesAreRewritten(t *testing.T) {
	const model, slice, comment = `device.attributes["gpu.example"].model == "h100"`, `device.attributes["gpu.example"].slices == 7`, `device.attributes["gpu.example"].slices == 7 // of eight`
	const better = `device.attributes["gpu.example"].model == "a100"`
	bad := []devices.Clause{{Text: model, Selector: 1}}
	for name, tc := range map[string]struct {
		is, want string
		at       int
		near     *devices.Device
		guard    bool
		bad      []devices.Clause
		says     string
	}{
		"as the device is":       {model + " && " + slice, better + " && " + slice, 1, device(), false, bad, `ask model == "a100" instead of model == "h100"`},
		"of another selector":    {model + " && " + slice, model + " && " + slice, 0, device(), false, bad, ""},
		"no device is near":      {model + " && " + slice, slice, 1, nil, false, bad, `leave out model == "h100"`},
		"guarded":                {model + " && " + slice, `"model" in device.attributes["gpu.example"] && (` + model + ") && " + slice, 1, device(), true, bad, ""},
		"the whole is bad":       {model + " || " + slice, "", 1, nil, false, []devices.Clause{{Text: model + " || " + slice, Selector: 1}}, "leave out"},
		"it cannot be parted":    {model + " && " + slice, "", 1, nil, false, []devices.Clause{{Text: model + " && " + slice, Selector: 1}}, "leave out"},
		"a comment has its line": {model + "\n&& " + comment, better + "\n&& " + comment, 1, device(), false, bad, `ask model == "a100" instead of model == "h100"`},
	} {
		s := &resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: tc.is}}
		says := strings.Join(rewrite(s, tc.at, tc.bad, tc.near, tc.guard), ", ")
		if s.CEL.Expression != tc.want || !strings.HasPrefix(says, tc.says) || tc.says == "" && !tc.guard && says != "" {
			t.Errorf("%s: %s, %s; want %s", name, s.CEL.Expression, says, tc.want)
		}
	}
}

// A claim is replaced where it stands alone; one that was made from a template is made again
// from the corrected one, by the pod's next or by the pod itself.
func TestHowClaimsAreCorrected(t *testing.T) {
	template, claim := "big", "w-gpu-x7"
	spec := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "it's"}}}}
	const doc = `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"w-gpu-x7","namespace":"a"},"spec":{"devices":{"requests":[{"name":"it'\''s"}]}}}`
	const made = `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaimTemplate","metadata":{"name":"big","namespace":"a"},"spec":{"spec":{"devices":{"requests":[{"name":"it'\''s"}]}}}}`
	const replace, again = "kubectl replace --force -f - <<<'", "kubectl -n a delete pod w  # its next one gets a claim from the new template"
	for name, tc := range map[string]struct {
		fill func(*corev1.Pod)
		want []string
	}{
		"alone": {func(*corev1.Pod) {}, []string{replace + doc + "'"}},
		"by its name": {func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
		}, []string{replace + doc + "'"}},
		"of a template, and the pod comes back": {func(p *corev1.Pod) {
			p.OwnerReferences = rcatest.Victim("x", 0, 0, 0, "x").OwnerReferences
		}, []string{replace + made + "'", again}},
		"of a template, and it does not": {func(*corev1.Pod) {}, []string{replace + made + "'", "kubectl -n a get pod w -o yaml > pod.yaml && kubectl replace --force -f pod.yaml"}},
		"of another template":            {func(p *corev1.Pod) { p.Status.ResourceClaimStatuses[0].ResourceClaimName = &template }, []string{replace + doc + "'"}},
		"not made yet":                   {func(p *corev1.Pod) { p.Status.ResourceClaimStatuses[0].ResourceClaimName = nil }, []string{replace + doc + "'"}},
		"of another claim of the pod":    {func(p *corev1.Pod) { p.Status.ResourceClaimStatuses[0].Name = "other" }, []string{replace + doc + "'"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			if name != "alone" {
				w.Wait.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
				w.Wait.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim}}
			}
			tc.fill(w.Wait)
			old := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: claim}}
			if got := claimCommands(edit.New(w.Case(t, "Pod")), old, &resourcev1.ResourceClaim{Spec: spec}); !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Devices become free when their holders leave or end; a claim that holds some for no pod a
// person has to see to.
func TestDevicesBecomeFree(t *testing.T) {
	victim := rcatest.Victim("v", 0, 0, 0, "v")
	victim.Spec.NodeName = "n"
	unused := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "left"}}
	used := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "used"}, Status: resourcev1.ResourceClaimStatus{ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Name: "v"}}}}
	const evict, wait, see = "by plan, low risk: evict a/v from n", "by hand, none risk: wait until a/v leaves n", "by hand, none risk: see who needs ResourceClaim a/left, which holds a device for no pod (whether the claim may be given up is not known)"
	for name, tc := range map[string]struct {
		victims, holders []*corev1.Pod
		claims           []*resourcev1.ResourceClaim
		want             string
	}{
		"somebody leaves":          {[]*corev1.Pod{victim}, []*corev1.Pod{victim}, nil, evict + "; " + wait},
		"somebody may not leave":   {nil, []*corev1.Pod{victim}, nil, wait},
		"and a claim is left":      {nil, []*corev1.Pod{victim}, []*resourcev1.ResourceClaim{unused}, wait},
		"a claim is left alone":    {nil, nil, []*resourcev1.ResourceClaim{used, unused, unused}, see},
		"a claim that a pod needs": {nil, nil, []*resourcev1.ResourceClaim{used}, ""},
		"nothing is known":         {nil, nil, []*resourcev1.ResourceClaim{nil}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			w.AddNode(sim.Node{Name: "n"})
			c := edit.New(w.Case(t, "Deployment"))
			inv := devices.TakeInventory(w.State)
			for i, claim := range tc.claims {
				d := &devices.Device{ID: devices.ID{Driver: "gpu.example", Name: string(rune('a' + i))}}
				inv.ByNode["n"] = append(inv.ByNode["n"], d)
				if claim != nil {
					inv.Holders[d.ID] = claim
				}
			}
			c.Claims = &devices.Claims{Inventory: inv, Victims: map[string][]*corev1.Pod{"n": tc.victims}, Holders: map[string][]*corev1.Pod{"n": tc.holders}}
			got := FreeDevices(c, c.Node("n"))
			if edittest.ToldAll(got) != tc.want {
				t.Errorf("%s, want %s", edittest.ToldAll(got), tc.want)
			}
			if n := len(unusedClaims(c, c.Node("n"))); slices.Contains(tc.claims, unused) && n != 1 {
				t.Errorf("%d claims are unused", n)
			}
			for _, ch := range got {
				if ch.Cause != diagnosis.DRADevicesInUse {
					t.Errorf("%s is for %s", ch.Title, ch.Cause)
				}
			}
		})
	}
}

// Of all claims whose pods are gone the commands are written out; the title counts them, where it
// is more than one, and names three.
func TestAllOrphansAreFreed(t *testing.T) {
	w := edittest.New()
	w.AddNode(sim.Node{Name: "n"})
	c := edit.New(w.Case(t, "Deployment"))
	for count, title := range map[int]string{
		1: "free ResourceClaim a/c0, whose pod is gone",
		2: "free 2 ResourceClaims whose pods are gone: a/c0, a/c1",
		3: "free 3 ResourceClaims whose pods are gone: a/c0, a/c1, a/c2",
		9: "free 9 ResourceClaims whose pods are gone: a/c0, a/c1, a/c2 and 6 more",
	} {
		var orphans []devices.Orphan
		for i := range count {
			orphans = append(orphans, devices.Orphan{Claim: &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprintf("c%d", i)}}, Gone: []devices.Gone{{Namespace: "a", Name: fmt.Sprintf("p%d", i)}}})
		}
		got := giveBack(c.Node("n"), orphans)
		if last := fmt.Sprintf("resourceclaim c%d ", count-1); got.Title != title || len(got.Commands) != 1+2*count || !strings.Contains(got.Commands[2*count], last) {
			t.Errorf("%s: %q, want %s", got.Title, got.Commands, title)
		}
	}
}

// A claim that is being deleted goes once its finalizers do; those of one that stays are left.
func TestOrphansThatAreBeingDeleted(t *testing.T) {
	const drop = `kubectl -n a patch resourceclaim c --type=merge -p '{"metadata":{"finalizers":null}}'`
	now := &metav1.Time{Time: rcatest.Noon}
	w := edittest.New()
	w.AddNode(sim.Node{Name: "n"})
	c := edit.New(w.Case(t, "Deployment"))
	for name, tc := range map[string]struct {
		deleted    *metav1.Time
		finalizers []string
		want       bool
	}{
		"being deleted":         {now, []string{"x"}, true},
		"that nothing holds up": {now, nil, false},
		"one that stays":        {nil, []string{"x"}, false},
	} {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c", DeletionTimestamp: tc.deleted, Finalizers: tc.finalizers}}
		if got := giveBack(c.Node("n"), []devices.Orphan{{Claim: claim}}).Commands; slices.Contains(got, drop) != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Of a claim only the clauses in the way are corrected, in the request that no device serves,
// as the nearest device has it or asked of those alone that publish it; the class is not the
// workload's to change.
func TestClaimsAreCorrected(t *testing.T) {
	const of = `device.attributes["gpu.example"].`
	const model, slices7, cores = of + `model == "h100"`, of + `slices == 7`, of + `cores == 7`
	for name, tc := range map[string]struct {
		class string
		own   []string
		want  []string // the selectors that are left, by the fixes; none: a person has to look
	}{
		"a value":                {`device.driver == "gpu.example"`, []string{model + " && " + slices7}, []string{of + `model == "a100" && ` + slices7, `"model" in device.attributes["gpu.example"] && (` + model + ") && " + slices7}},
		"of the second selector": {`device.driver == "gpu.example"`, []string{slices7, model}, []string{slices7 + "; " + of + `model == "a100"`, slices7 + `; "model" in device.attributes["gpu.example"] && (` + model + ")"}},
		"what is not published":  {`device.driver == "gpu.example"`, []string{cores, slices7}, []string{slices7, `"cores" in device.attributes["gpu.example"] && (` + cores + "); " + slices7}},
		"it is the class's":      {model, []string{slices7}, nil},
		"nothing is in the way":  {`device.driver == "gpu.example"`, []string{slices7}, nil},
		"of an alternative":      {`device.driver == "gpu.example"`, []string{model}, []string{of + `model == "a100"`, `"model" in device.attributes["gpu.example"] && (` + model + ")"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			node, claim := "n", "mine"
			own := func(r *resourcev1.DeviceRequest) *[]resourcev1.DeviceSelector {
				if r.Exactly != nil {
					return &r.Exactly.Selectors
				}
				return &r.FirstAvailable[0].Selectors
			}
			w.AddNode(sim.Node{Name: node, MIGOff: []int{0}})
			selectors := func(all ...string) []resourcev1.DeviceSelector {
				var out []resourcev1.DeviceSelector
				for _, e := range all {
					out = append(out, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
				}
				return out
			}
			w.ResourceSlices = []*resourcev1.ResourceSlice{{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.example", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}, Devices: []resourcev1.Device{*device().Device}}}}
			w.DeviceClasses = []*resourcev1.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "c"}, Spec: resourcev1.DeviceClassSpec{Selectors: selectors(tc.class)}}}
			w.ResourceClaims = []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: claim, UID: "m"}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
				Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1, Selectors: selectors(tc.own...)}}}}}}}
			if name == "of an alternative" {
				w.ResourceClaims[0].Spec.Devices.Requests[0] = resourcev1.DeviceRequest{Name: "gpu", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "first", DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1, Selectors: selectors(tc.own...)}}}
			}
			w.Wait.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
			w.Wait.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
			c := edit.New(w.Case(t, "Pod"))
			w.Look(t, c.Case)
			var got []string
			for _, ch := range Fix(c, c.Node(node), diagnosis.DRANoDeviceMatches) {
				if ch.Kind != diagnosis.FixClaim {
					continue
				}
				var left []string
				for _, s := range *own(&ch.Claims[0].Spec.Devices.Requests[0]) {
					left = append(left, s.CEL.Expression)
				}
				got = append(got, strings.Join(left, "; "))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if was := *own(&w.ResourceClaims[0].Spec.Devices.Requests[0]); len(was) != len(tc.own) || was[0].CEL.Expression != tc.own[0] {
				t.Error("the claim that there is was changed")
			}
		})
	}
}
