package rca

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// weigher says what is not worth working out: so much was found that costs less.
type weigher interface {
	// enough says whether so many fixes of the kinds cost nobody anything that no more will
	// be tried.
	enough(sets [][]change, more FixKind) bool
	// pointless says whether so many of the same kinds cost less than this change beside
	// the only set there is that it will not be tried.
	pointless(n *nodeView, sets [][]change, ch *change) bool
}

// resourceChanges lists the alternatives that make room for the pod on a node:
// each is complete for all the resources the node is short of, on top of the sets.
func (c *Bench) resourceChanges(w weigher, n *nodeView, causes []CauseID, sets [][]change) [][]change {
	var out [][]change
	lack, fits := n.deficitsOf(c.wants)
	root := causes[0]
	if i := slices.IndexFunc(causes, func(id CauseID) bool { return id != HostResourcesShort }); i >= 0 {
		root = causes[i] // the CPU is short beside a GPU that is free, or it is not the point
	}
	if fits {
		for _, ch := range c.release(n, lack) {
			out = append(out, []change{ch})
		}
		if victims, ok := c.cheapest(n, lack); ok && len(victims) > 0 && !c.allIdle(victims) {
			out = append(out, []change{c.evict(n, root, victims)})
			if ch, ok := c.move(n, root, lack, victims); ok {
				out = append(out, []change{ch})
			}
			if root != IdleGPUHolders { // who does nothing does not end either
				out = append(out, []change{c.waitFor(n, root, victims)})
			}
		}
	}
	for _, a := range c.asks {
		if n.has(a.resource, a.count) {
			continue
		}
		if a.profile != "" && slices.ContainsFunc(causes, func(id CauseID) bool { return remedies[id].layout }) && !w.enough(sets, relayoutKind(root)) {
			ways := c.relayouts(n, a)
			if len(ways) == 0 {
				ways = c.leastCostly(c.modeChanges(n, a))
			}
			for _, r := range ways {
				if set, ok := c.repartition(w, n, root, a, r, sets); ok {
					out = append(out, set)
				}
			}
		}
		for _, ch := range c.changeGPURequest(n, root, a) {
			out = append(out, []change{ch})
		}
	}
	for _, ch := range c.repairs(n, causes, !slices.ContainsFunc(sets, func(s []change) bool { return len(s) > 0 })) {
		out = append(out, []change{ch})
	}
	if ch, ok := c.lowerRequest(n, lack, fits); ok {
		out = append(out, []change{ch})
	}
	return out
}

// relayoutKind is what giving a node another layout is called.
func relayoutKind(cause CauseID) FixKind {
	if remedies[cause].config {
		return FixMIGConfig
	}
	return RepartitionGPU
}

func (c *Bench) evict(n *nodeView, cause CauseID, victims []*corev1.Pod) change {
	ch := c.evictFor(cause, victims)
	ch.title = "evict " + podList(victims) + " from " + n.Name
	return ch
}

// evictFor evicts pods, wherever they are.
func (c *Bench) evictFor(cause CauseID, victims []*corev1.Pod) change {
	ch := change{kind: EvictPods, cause: cause, victims: victims, minutes: 1, risk: LowRisk}
	ch.detail = func(ch *change) {
		for _, v := range victims {
			ch.steps = append(ch.steps, "evict "+v.Namespace+"/"+v.Name)
			ch.commands = append(ch.commands, evictCommand(v))
			ch.actions = append(ch.actions, Action{Verb: VerbEvict, Target: podTarget(v), Relies: map[string]string{"node": v.Spec.NodeName}})
		}
	}
	return ch
}

func evictCommand(v *corev1.Pod) string {
	return fmt.Sprintf(`kubectl create --raw /api/v1/namespaces/%s/pods/%s/eviction -f - <<<'{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"%s","namespace":"%s"}}'`, v.Namespace, v.Name, v.Name, v.Namespace)
}

// waitFor is the fix that leaves the holders alone until they end by themselves.
func (c *Bench) waitFor(n *nodeView, cause CauseID, holders []*corev1.Pod) change {
	end, leave := " end", " leave "
	if len(holders) == 1 {
		end, leave = " ends", " leaves "
	}
	until, minutes := podList(holders)+" on "+n.Name+end, c.deadline(holders)
	if minutes > 0 {
		until += fmt.Sprintf(", by its deadline in %d min", minutes)
	}
	return change{kind: Wait, cause: cause, victims: holders, manual: true, risk: NoRisk, minutes: minutes,
		until: until,
		title: "wait until " + podList(holders) + leave + n.Name,
		detail: func(ch *change) {
			for _, p := range holders {
				ch.commands = append(ch.commands, fmt.Sprintf("kubectl -n %s get pod %s -w", p.Namespace, p.Name))
			}
		}}
}

// deadline is in how many minutes the last of the pods has to have ended, by its own
// deadline or its Job's; 0 where one of them has none.
func (c *Bench) deadline(holders []*corev1.Pod) int {
	last := time.Duration(0)
	for _, p := range holders {
		left, known := time.Duration(0), false
		ends := func(since *metav1.Time, seconds *int64) {
			if since == nil || seconds == nil {
				return
			}
			if d := since.Add(time.Duration(*seconds) * time.Second).Sub(c.world.state.Now); !known || d < left {
				left, known = d, true
			}
		}
		ends(p.Status.StartTime, p.Spec.ActiveDeadlineSeconds)
		if by := metav1.GetControllerOfNoCopy(p); by != nil && by.Kind == "Job" {
			for _, j := range c.world.state.Jobs {
				if j.Namespace == p.Namespace && j.Name == by.Name {
					ends(j.Status.StartTime, j.Spec.ActiveDeadlineSeconds)
				}
			}
		}
		if !known {
			return 0
		}
		last = max(last, left)
	}
	return max(1, int(math.Ceil(last.Minutes())))
}

// repartition gives the node another layout, with the evictions that the pod's
// other requests need beside it.
func (c *Bench) repartition(w weigher, n *nodeView, cause CauseID, a ask, r relayout, sets [][]change) ([]change, bool) {
	rest, ok := c.deficitsBeside(n, a, r)
	if !ok {
		return nil, false
	}
	ch := change{kind: relayoutKind(cause), cause: cause, victims: r.victims, cost: r.cost, minutes: 4, risk: LowRisk, relayout: &r}
	if r.mode != nil {
		ch.minutes, ch.risk = 10, MediumRisk
	}
	if len(rest) == 0 && w.pointless(n, sets, &ch) {
		return nil, false
	}
	c.describe(n, a, &ch)
	if len(rest) == 0 {
		return []change{ch}, true
	}
	victims, ok := c.cheapestOf(n, rest, func(p *corev1.Pod) bool { return !slices.Contains(r.victims, p) })
	if !ok {
		return nil, false
	}
	return []change{c.evict(n, c.heldBeside(rest), victims), ch}, true
}

// heldBeside is the cause that others than the victims of another layout leave for.
func (c *Bench) heldBeside(rest deficits) CauseID {
	for _, b := range c.asks {
		switch {
		case rest[b.resource] == 0:
		case b.profile == "":
			return GPUsInUse
		default:
			return MIGInstancesInUse
		}
	}
	return HostResourcesShort
}

// describe completes what repartitions a node.
func (c *Bench) describe(n *nodeView, a ask, ch *change) {
	r := ch.relayout
	ch.title = "repartition " + gpuList(n, r.remade) + " to " + strconv.Quote(r.config) + evicting(r.victims)
	if r.mode != nil {
		ch.title = fmt.Sprintf("switch MIG on for %s by %q%s", gpuList(n, r.remade), r.config, emptying(r.victims))
	}
	ch.node = func(o *corev1.Node) {
		for name, q := range r.after(n) {
			o.Status.Allocatable[name] = q
			o.Status.Capacity[name] = q
		}
		o.Labels[labelMIGConfig] = r.config
	}
	ch.detail = func(ch *change) {
		if r.mode == nil { // else the silicon needs a reset too
			ch.hardware = c.hardwareEvictions(n, a)
		}
		r.detail(n, ch)
	}
}

// detail writes the repartition out, step by step.
func (r relayout) detail(n *nodeView, ch *change) {
	action := &Relayout{Config: r.config, First: r.first, Entry: r.entry, Layouts: map[int]map[string]int{}, GPUs: r.remade}
	for index, layout := range r.layouts() {
		action.Layouts[index] = layout
	}
	ch.steps = []string{"cordon " + n.Name}
	ch.commands = []string{"kubectl cordon " + n.Name}
	for _, v := range r.victims {
		action.Victims = append(action.Victims, podTarget(v))
		ch.steps = append(ch.steps, "evict "+v.Namespace+"/"+v.Name)
		ch.commands = append(ch.commands, evictCommand(v))
	}
	if r.into != nil {
		action.ConfigMap = &Target{"ConfigMap", r.into.Namespace, r.into.Name, string(r.into.UID)}
		ch.steps = append(ch.steps, fmt.Sprintf("add entry %s to configmap/%s", r.config, r.into.Name))
		ch.commands = append(ch.commands, fmt.Sprintf("kubectl -n %s edit configmap/%s  # add %s: %s", r.into.Namespace, r.into.Name, r.config, r.entry))
	}
	if r.first != "" {
		ch.steps = append(ch.steps, fmt.Sprintf("set %s=%s, which its GPUs have: MIG manager acts on a change of the label", labelMIGConfig, r.first))
		ch.commands = append(ch.commands, fmt.Sprintf("kubectl label node %s %s=%s --overwrite", n.Name, labelMIGConfig, r.first))
	}
	wait := "wait for MIG manager"
	if r.mode != nil {
		wait += " (it resets the GPUs, or reboots the node)"
	}
	ch.steps = append(ch.steps, fmt.Sprintf("set %s=%s", labelMIGConfig, r.config), wait, "verify the layout", "uncordon "+n.Name)
	ch.commands = append(ch.commands, fmt.Sprintf("kubectl label node %s %s=%s --overwrite", n.Name, labelMIGConfig, r.config), "kubectl uncordon "+n.Name)
	ch.actions = []Action{{Verb: VerbRelayout, Target: nodeTarget(n.Node), Relayout: action, Relies: n.relies()}}
}

// deficitsAfter is what the node lacks besides GPUs once the victims have left.
func (c *Bench) deficitsAfter(n *nodeView, r relayout) (deficits, bool) {
	if c.host == nil {
		c.host = maps.Clone(c.wants)
		for _, a := range c.asks {
			delete(c.host, a.resource)
		}
	}
	lack, ok := n.deficitsOf(c.host)
	for _, v := range r.victims {
		for name := range lack {
			if lack[name] -= n.contribution(v, name); lack[name] <= 0 {
				delete(lack, name)
			}
		}
	}
	return lack, ok
}

// deficitsBeside is deficitsAfter with what else the pod asks of GPUs than what the other
// layout is for; false where too few of it are there then, whoever leaves.
func (c *Bench) deficitsBeside(n *nodeView, a ask, r relayout) (deficits, bool) {
	rest, ok := c.deficitsAfter(n, r)
	if !ok || len(c.asks) == 1 {
		return rest, ok
	}
	if rest == nil {
		rest = deficits{}
	}
	after := r.after(n)
	for _, b := range c.asks {
		if b.resource == a.resource {
			continue
		}
		has, anew := after[b.resource]
		if !anew {
			has = n.Status.Allocatable[b.resource]
		}
		if has.Value() < b.count {
			return nil, false
		}
		lack := n.heldOf(b.resource) + b.count - has.Value()
		for _, p := range r.victims {
			q := n.requests[p][b.resource]
			lack -= q.Value()
		}
		if lack > 0 {
			rest[b.resource] = 1000 * lack
		}
	}
	return rest, true
}

func podList(pods []*corev1.Pod) string {
	if len(pods) == 1 {
		return pods[0].Namespace + "/" + pods[0].Name
	}
	return fmt.Sprintf("%d pods (%s/%s, …)", len(pods), pods[0].Namespace, pods[0].Name)
}

func gpuList(n *nodeView, gpus []int) string {
	texts := make([]string, len(gpus))
	for i, g := range gpus {
		texts[i] = strconv.Itoa(g)
	}
	return n.Name + "/GPU " + strings.Join(texts, ",")
}

// emptying is evicting of a whole node.
func emptying(victims []*corev1.Pod) string {
	switch len(victims) {
	case 0:
		return ""
	case 1:
		return ", evicting the 1 pod of the node"
	}
	return fmt.Sprintf(", evicting all %d pods of the node", len(victims))
}

func evicting(victims []*corev1.Pod) string {
	switch len(victims) {
	case 0:
		return ""
	case 1:
		return ", evicting 1 pod"
	}
	return ", evicting " + strconv.Itoa(len(victims)) + " pods"
}
