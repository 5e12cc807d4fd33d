package devices

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// Inventory is what the cluster's drivers offer, and who has it.
type Inventory struct {
	claims    map[string]*resourcev1.ResourceClaim // by namespace/name
	templates map[string]*resourcev1.ResourceClaimTemplate
	classes   map[string]*resourcev1.DeviceClass
	backing   map[corev1.ResourceName]*resourcev1.DeviceClass // of extended resources
	Devices   []*Device
	ByNode    map[string][]*Device
	drivers   map[string]bool // those with a ResourceSlice
	// Incomplete pools offer nothing: driver and what is the matter.
	Incomplete map[string]string
	Holders    map[ID]*resourcev1.ResourceClaim
	rules      []*resourcev1.DeviceTaintRule
	selectors  *cel.Cache
}

// ID names a device in the cluster, as an allocation of a claim does.
type ID struct{ Driver, pool, Name string }

// AllocatedTo claims that a ResourceClaim has the device.
func (d ID) AllocatedTo(c *resourcev1.ResourceClaim) diagnosis.Claim {
	return diagnosis.That("status.allocation.devices.results[device="+d.Name+",pool="+d.pool+",driver="+d.Driver+"]", "", diagnosis.Exists, "").Of("ResourceClaim/" + c.Namespace + "/" + c.Name)
}

// Device is one device of a complete pool.
type Device struct {
	*resourcev1.Device
	ID    ID
	slice string
}

// Ref is the ResourceSlice that lists the device.
func (d *Device) Ref() string { return "ResourceSlice/" + d.slice }

// compiled is how many selectors are kept compiled.
const compiled = 256

// TakeInventory reads what there is of devices.
func TakeInventory(st *cluster.State) *Inventory {
	inv := &Inventory{rules: st.TaintRules(), claims: map[string]*resourcev1.ResourceClaim{}, templates: map[string]*resourcev1.ResourceClaimTemplate{}, classes: map[string]*resourcev1.DeviceClass{},
		backing: map[corev1.ResourceName]*resourcev1.DeviceClass{}, ByNode: map[string][]*Device{}, drivers: map[string]bool{}, Incomplete: map[string]string{}, Holders: map[ID]*resourcev1.ResourceClaim{},
		// As the scheduler has it by default (kube_features.go, 1.37.1).
		selectors: cel.NewCache(compiled, cel.Features{EnableConsumableCapacity: true})}
	for _, c := range st.ResourceClaims {
		inv.claims[c.Namespace+"/"+c.Name] = c
		inv.hold(c)
	}
	for _, t := range st.ClaimTemplates {
		inv.templates[t.Namespace+"/"+t.Name] = t
	}
	for _, c := range st.DeviceClasses {
		inv.classes[c.Name] = c
		inv.back(corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix+c.Name), c)
		if c.Spec.ExtendedResourceName != nil {
			inv.back(corev1.ResourceName(*c.Spec.ExtendedResourceName), c)
		}
	}
	for _, pool := range inv.pools(st.TaintedSlices()) {
		inv.offer(st.Nodes, pool)
	}
	return inv
}

// back notes the class behind an extended resource: of several the newest, then
// the first by name (extendedresourcecache.go, 1.37.1).
func (inv *Inventory) back(name corev1.ResourceName, c *resourcev1.DeviceClass) {
	old := inv.backing[name]
	if old == nil || cmp.Or(c.CreationTimestamp.Compare(old.CreationTimestamp.Time), strings.Compare(old.Name, c.Name)) > 0 {
		inv.backing[name] = c
	}
}

func (inv *Inventory) hold(c *resourcev1.ResourceClaim) {
	if c.Status.Allocation == nil {
		return
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.AdminAccess == nil || !*r.AdminAccess {
			inv.Holders[ID{r.Driver, r.Pool, r.Device}] = c
		}
	}
}

// pools are the slices of the newest generation of each pool that is complete:
// of others the scheduler allocates nothing.
func (inv *Inventory) pools(all []*resourcev1.ResourceSlice) [][]*resourcev1.ResourceSlice {
	byPool := map[[2]string][]*resourcev1.ResourceSlice{}
	var order [][2]string
	for _, s := range all {
		inv.drivers[s.Spec.Driver] = true
		key := [2]string{s.Spec.Driver, s.Spec.Pool.Name}
		have := byPool[key]
		switch {
		case len(have) == 0:
			order = append(order, key)
		case have[0].Spec.Pool.Generation > s.Spec.Pool.Generation:
			continue
		case have[0].Spec.Pool.Generation < s.Spec.Pool.Generation:
			have = nil
		}
		byPool[key] = append(have, s)
	}
	var out [][]*resourcev1.ResourceSlice
	for _, key := range order {
		pool := byPool[key]
		if want := pool[0].Spec.Pool.ResourceSliceCount; int64(len(pool)) != want {
			inv.Incomplete[key[0]] = fmt.Sprintf("pool %s has %d of its %d ResourceSlices", key[1], len(pool), want)
			continue
		}
		out = append(out, pool)
	}
	return out
}

// offer lists a pool's devices under the nodes that can use them.
func (inv *Inventory) offer(nodes []*corev1.Node, pool []*resourcev1.ResourceSlice) {
	for _, s := range pool {
		for i := range s.Spec.Devices {
			d := &Device{&s.Spec.Devices[i], ID{s.Spec.Driver, s.Spec.Pool.Name, s.Spec.Devices[i].Name}, s.Name}
			inv.Devices = append(inv.Devices, d)
			name, everywhere, selector := s.Spec.NodeName, s.Spec.AllNodes, s.Spec.NodeSelector
			if s.Spec.PerDeviceNodeSelection != nil && *s.Spec.PerDeviceNodeSelection {
				name, everywhere, selector = d.NodeName, d.AllNodes, d.NodeSelector
			}
			if name != nil && *name != "" {
				inv.ByNode[*name] = append(inv.ByNode[*name], d)
				continue
			}
			for _, n := range nodes {
				if everywhere != nil && *everywhere || selects(selector, n) {
					inv.ByNode[n.Name] = append(inv.ByNode[n.Name], d)
				}
			}
		}
	}
}

func selects(selector *corev1.NodeSelector, n *corev1.Node) bool {
	if selector == nil {
		return false
	}
	s, err := nodeaffinity.NewNodeSelector(selector)
	return err == nil && s.Match(n)
}

// ruleOf is the DeviceTaintRule by which the device has the taint; nil where its driver has
// written it.
func (inv *Inventory) ruleOf(d *Device, taint string) *resourcev1.DeviceTaintRule {
	for _, rule := range inv.rules {
		if cluster.TaintText(rule.Spec.Taint) == taint && cluster.Taints(rule, d.ID.Driver, d.ID.pool, d.ID.Name) {
			return rule
		}
	}
	return nil
}

// keptOff are the devices of the node that the ask would take but for a taint, with that; of a node without devices, those
// of others.
func (v *Claims) keptOff(a *Ask, node string) iter.Seq2[*Device, string] {
	devices := v.ByNode[node]
	if len(devices) == 0 {
		devices = v.Devices
	}
	return func(yield func(*Device, string) bool) {
		for _, d := range devices {
			if taint := d.taintOf(a.tolerations); taint != "" && a.Readings[d].Fits && !yield(d, taint) {
				return
			}
		}
	}
}

// Rules are the names of the DeviceTaintRules that keep the ask from devices of the node that
// it would take, in the order of the devices; of a node without devices, from those of others.
func (v *Claims) Rules(a *Ask, node string) []string {
	var out []string
	for d, taint := range v.keptOff(a, node) {
		if rule := v.ruleOf(d, taint); rule != nil && !slices.Contains(out, rule.Name) {
			out = append(out, rule.Name)
		}
	}
	return out
}

// taintOf names a taint of the device that the tolerations do not cover.
func (d *Device) taintOf(tolerations []resourcev1.DeviceToleration) string {
	for _, t := range d.Taints {
		if t.Effect == resourcev1.DeviceTaintEffectNone {
			continue
		}
		if !slices.ContainsFunc(tolerations, func(tol resourcev1.DeviceToleration) bool { return resourceclaim.ToleratesTaint(tol, t) }) {
			return cluster.TaintText(t)
		}
	}
	return ""
}
