package changes

import (
	"slices"

	"github.com/unpend/unpend/rca/admit"
	"github.com/unpend/unpend/rca/claims"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/outside"
	"github.com/unpend/unpend/rca/outside/refused"
	"github.com/unpend/unpend/rca/retry"
	"github.com/unpend/unpend/rca/upkeep"
	"github.com/unpend/unpend/rca/view"
)

// remedy is what can be done about one cause. Where a field is nil nothing is, in that
// situation.
type remedy struct {
	// pod lists the alternatives for a cause that is the pod's own.
	pod func(*Bench) []edit.Change
	// beside is offered beside what clears the nodes, for a cause that keeps the pod from
	// none.
	beside func(*Bench) []edit.Change
	// policy lists the alternatives on a node that refuses the pod for something else than
	// what it has too little of.
	policy func(*Bench, *view.Node) []edit.Change
	// repair lists what mends the node itself.
	repair func(*Bench, *view.Node) []edit.Change
	// alone is repair too, where nothing else is in the pod's way: it is of no use to the pod
	// and would be done for nothing.
	alone func(*Bench, *view.Node) []edit.Change
	// layout: another MIG layout of the node can remove it.
	layout bool
	// config: so it can, for the label of the layout itself is at fault.
	config bool
}

// remedies says of each cause what can be done about it, a line each. What makes room
// for a pod whatever the cause is (evictions, a smaller request) is resourceChanges' own.
var remedies = map[diagnosis.CauseID]remedy{
	diagnosis.MIGLayoutMismatch:   {layout: true, repair: ofNodeFor(mend.LayOut, diagnosis.MIGLayoutMismatch)},
	diagnosis.MIGFragmented:       {layout: true},
	diagnosis.MIGFull:             {layout: true},
	diagnosis.MIGInstancesInUse:   {layout: true},
	diagnosis.MIGStrategyMismatch: {repair: (*Bench).uniform},
	diagnosis.MIGConfigFailed: {layout: true, config: true, repair: func(c *Bench, n *view.Node) []edit.Change {
		out := append(mend.Respell(c.Workload, n), mend.Unstick(c.Workload, n, diagnosis.MIGConfigFailed)...)
		if c.awaitsMIGOff(n) || layouts.UnswitchedOn(c.Cluster, n) != nil {
			return out // the layout before, of the other mode, has nothing for it
		}
		return append(out, c.revert(n, diagnosis.MIGConfigFailed))
	}},
	diagnosis.MIGConfigStuck: {repair: func(c *Bench, n *view.Node) []edit.Change {
		return append([]edit.Change{c.revert(n, diagnosis.MIGConfigStuck)}, mend.Unstick(c.Workload, n, diagnosis.MIGConfigStuck)...)
	}},
	diagnosis.MIGConfigUnknown:       {layout: true, config: true, repair: entry(diagnosis.MIGConfigUnknown)},
	diagnosis.MIGConfigInvalidForGPU: {layout: true, config: true, repair: entry(diagnosis.MIGConfigInvalidForGPU)},
	diagnosis.MIGModePending: {repair: func(_ *Bench, n *view.Node) []edit.Change {
		return []edit.Change{mend.Reboot(n, diagnosis.MIGModePending)}
	}},
	diagnosis.MIGLayoutDrift: {repair: func(c *Bench, n *view.Node) []edit.Change {
		restart := []edit.Change{mend.RestartPlugin(c.Workload, n, diagnosis.MIGLayoutDrift)}
		if layouts.ByHand(n) {
			return []edit.Change{mend.Remake(c.Workload, n)}
		}
		if n.Geometry == nil {
			again := mend.Reapply(c.Workload, n, "nothing reports what the GPUs of "+n.Name+" have")
			if slices.ContainsFunc(c.Asks, func(a view.Ask) bool { return layouts.NotLooked(n, a) }) {
				return append(restart, again)
			}
			return []edit.Change{again}
		}
		return append(restart, c.remakeLost(n)...)
	}},
	diagnosis.GPURequestTooLarge: {repair: (*Bench).fewerGPUs},
	diagnosis.HostResourcesShort: {repair: func(c *Bench, n *view.Node) []edit.Change {
		return slices.Concat(c.setPagesAside(n), reportDisk(c, n), largerMachines(c, n), admit.StateShare(c.Workload, n))
	}},
	diagnosis.GPUsInUse: {repair: ofNodeFor(mend.Configure, diagnosis.GPUsInUse)},
	diagnosis.SharedResourceRenamed: {repair: func(c *Bench, n *view.Node) []edit.Change {
		return append(c.otherName(n), mend.Configure(c.Workload, n, diagnosis.SharedResourceRenamed)...)
	}},
	diagnosis.DevicePluginDown: {repair: mending(diagnosis.DevicePluginDown)},
	diagnosis.GPUUnhealthy: {layout: true, repair: one(mend.RestartPlugin, diagnosis.GPUUnhealthy), alone: func(_ *Bench, n *view.Node) []edit.Change {
		if n.Geometry == nil && n.StockOf(view.WholeGPU).Allocatable >= n.StockOf(view.WholeGPU).Capacity { // none of its devices is unhealthy: one is missing
			return []edit.Change{mend.Quarantine(n), mend.Reboot(n, diagnosis.GPUUnhealthy)}
		}
		return []edit.Change{mend.Quarantine(n)}
	}},
	diagnosis.SharedRequestTooLarge:    {pod: of(retry.OneShare)},
	diagnosis.TopologyAlignmentRefused: {pod: of(retry.Again)},
	diagnosis.KubeletAdmissionRefused:  {pod: of(retry.Again), beside: of(retry.Uncounted)},
	diagnosis.UntoleratedTaint:         {policy: (*Bench).addToleration},
	diagnosis.NodeSelectorMismatch:     {policy: (*Bench).fixSelector},
	diagnosis.NodeCordoned: {policy: func(c *Bench, n *view.Node) []edit.Change {
		return []edit.Change{mend.Uncordon(n, upkeep.Of(c.Cluster, n))}
	}},
	diagnosis.NodeNotReady:           {pod: begin(diagnosis.NodeNotReady), policy: func(c *Bench, n *view.Node) []edit.Change { return []edit.Change{mend.WaitForReady(c.Workload, n)} }},
	diagnosis.PodAffinityConflict:    {policy: (*Bench).resolveAffinity},
	diagnosis.VolumeConflict:         {pod: begin(diagnosis.VolumeConflict), policy: (*Bench).lookAtVolume},
	diagnosis.TopologySpreadConflict: {policy: (*Bench).loosenSpread},
	diagnosis.QuotaExceeded:          {pod: of(admit.AgainstQuotas)},
	diagnosis.QuotaDemandsRequests:   {pod: of(admit.StateRequests)},
	diagnosis.RuntimeNotConfigured: {pod: func(c *Bench) []edit.Change {
		return append(admit.MakeRuntimeClass(c.Workload), begin(diagnosis.RuntimeNotConfigured)(c)...)
	}, repair: mending(diagnosis.RuntimeNotConfigured)},
	diagnosis.LimitRangeViolated: {pod: of(admit.ComeWithinLimits)},
	diagnosis.InvalidGPURequest:  {pod: of(admit.CorrectRequests)},
	diagnosis.PreemptionBlocked:  {pod: (*Bench).waitForPreempted},
	diagnosis.SchedulingGated:    {pod: of(outside.OpenGates)},
	diagnosis.QueueNotAdmitted: {pod: of(outside.LetInByQueue), beside: func(c *Bench) []edit.Change {
		return append(outside.AskForMachinesAgain(c.Workload), outside.LookInCluster(c.Workload)...)
	}},
	diagnosis.GangIncomplete:  {pod: func(c *Bench) []edit.Change { return c.GangChanges(diagnosis.GangIncomplete) }},
	diagnosis.DRAClaimMissing: {pod: of(claims.LookAtMissing)},
	diagnosis.DRAClassMissing: {policy: anyNode(claims.LookAtClass)},
	diagnosis.DRADriverMissing: {policy: func(c *Bench, _ *view.Node) []edit.Change {
		if ch := claims.LookAtDriver(c.Workload); ch.Title != claims.SeeWhy || !outside.DriverNowhere(c.Workload) {
			return []edit.Change{ch}
		}
		return nil
	}},
	diagnosis.DRANoDeviceMatches: {policy: func(c *Bench, n *view.Node) []edit.Change {
		return claims.Fix(c.Workload, n, diagnosis.DRANoDeviceMatches)
	}},
	diagnosis.DRASelectorError: {policy: func(c *Bench, n *view.Node) []edit.Change {
		return claims.Fix(c.Workload, n, diagnosis.DRASelectorError)
	}},
	diagnosis.DRADevicesInUse:      {policy: ofNode(claims.FreeDevices)},
	diagnosis.DRAPrepareFailed:     {pod: of(claims.LookAtPreparation)},
	diagnosis.SchedulerMissing:     {pod: of(outside.StartScheduler), beside: of(outside.AskSilent)},
	diagnosis.ScalingUp:            {beside: of(outside.WaitForAutoscaler)},
	diagnosis.ScaleUpStuck:         {beside: of(outside.LookAtPromise)},
	diagnosis.AutoscalerCannotHelp: {beside: of(outside.GrowPool)},
	diagnosis.NoNodes:              {pod: of(outside.AddNode)},
	diagnosis.Unknown:              {pod: (*Bench).unsettled, policy: (*Bench).freePort, repair: announceAgain},
	diagnosis.SchedulerRefused:     {beside: of(refused.Ask)},
	diagnosis.QueueMisconfigured:   {beside: of(outside.MendQueue)},
	diagnosis.WorkloadDeadlock:     {beside: of(outside.BreakDeadlock)},
	diagnosis.CloudCapacityRefused: {beside: of(outside.RefusedByCloud)},
	diagnosis.AutoscalerLimit:      {beside: of(outside.RaiseLimit)},
	diagnosis.GPUStackMissing:      {repair: mending(diagnosis.GPUStackMissing)},
	diagnosis.GPUStackNotOnNode:    {repair: mending(diagnosis.GPUStackNotOnNode)},
	diagnosis.DriverNotReady:       {pod: begin(diagnosis.DriverNotReady), repair: mending(diagnosis.DriverNotReady), policy: ofNode(mend.Upgrade)},
}

// begin is the remedy of pods that have their node and are not begun there.
func begin(id diagnosis.CauseID) func(*Bench) []edit.Change {
	return func(c *Bench) []edit.Change { return retry.Begin(c.Workload, id) }
}

// of is a remedy that needs the workload alone.
func of(changes func(*edit.Workload) []edit.Change) func(*Bench) []edit.Change {
	return func(c *Bench) []edit.Change { return changes(c.Workload) }
}

// ofNode is of, on one node.
func ofNode(changes func(*edit.Workload, *view.Node) []edit.Change) func(*Bench, *view.Node) []edit.Change {
	return func(c *Bench, n *view.Node) []edit.Change { return changes(c.Workload, n) }
}

// anyNode is one change that is the same on every node.
func anyNode(change func(*edit.Workload) edit.Change) func(*Bench, *view.Node) []edit.Change {
	return func(c *Bench, _ *view.Node) []edit.Change { return []edit.Change{change(c.Workload)} }
}

// ofNodeFor is ofNode, of a change that is told for which cause it is.
func ofNodeFor(changes func(*edit.Workload, *view.Node, diagnosis.CauseID) []edit.Change, id diagnosis.CauseID) func(*Bench, *view.Node) []edit.Change {
	return func(c *Bench, n *view.Node) []edit.Change { return changes(c.Workload, n, id) }
}

// mending is the remedy of a link of the device stack.
func mending(id diagnosis.CauseID) func(*Bench, *view.Node) []edit.Change {
	return func(c *Bench, n *view.Node) []edit.Change { return mend.Stack(c.Workload, n, id) }
}

// one is a remedy of one change.
func one(change func(*edit.Workload, *view.Node, diagnosis.CauseID) edit.Change, id diagnosis.CauseID) func(*Bench, *view.Node) []edit.Change {
	return func(c *Bench, n *view.Node) []edit.Change { return []edit.Change{change(c.Workload, n, id)} }
}

// AnotherNode is a node that is not there yet.
func AnotherNode(c *Bench, id diagnosis.CauseID) edit.Change {
	return outside.AnotherNode(c.Workload, id)
}

// OfPod lists the alternatives for a cause that is the pod's own; none: a person has to
// look.
func (c *Bench) OfPod(id diagnosis.CauseID) []edit.Change {
	if f := remedies[id].pod; f != nil {
		return f(c)
	}
	return nil
}

// OfPolicy lists, for a cause on one node that is not about resources, the alternatives
// that remove it.
func (c *Bench) OfPolicy(n *view.Node, id diagnosis.CauseID) []edit.Change {
	if f := remedies[id].policy; f != nil {
		return f(c, n)
	}
	return nil
}

// Besides are what is offered whatever is done on the nodes.
func (c *Bench) Besides() []edit.Change {
	var out []edit.Change
	for _, r := range c.Own {
		if f := remedies[r.ID].beside; f != nil {
			out = append(out, f(c)...)
		}
	}
	out = append(out, outside.AddByHand(c.Workload)...)
	if c.Growth().OfTemplate == diagnosis.VolumeConflict {
		return append(out, c.lookAtVolume(nil)...)
	}
	return append(out, outside.OfTemplate(c.Workload, c.Growth().OfTemplate)...)
}

// entry is for a label whose entry is at fault, where no other makes what is asked; of a ConfigMap that cannot be
// read none does.
func entry(cause diagnosis.CauseID) func(*Bench, *view.Node) []edit.Change {
	return func(c *Bench, n *view.Node) []edit.Change {
		if out := mend.RewriteConfig(c.Workload, n); len(out) > 0 && cause == diagnosis.MIGConfigUnknown {
			return out
		}
		if slices.ContainsFunc(c.Asks, func(a view.Ask) bool { return a.Profile != "" && len(c.layouts().Ways(n, a)) > 0 }) {
			return nil
		}
		return mend.Entry(c.Workload, n, cause)
	}
}

// repairs lists what mends a node itself, for each of the causes that admit it.
func (c *Bench) repairs(n *view.Node, causes []diagnosis.CauseID, alone bool) []edit.Change {
	var out []edit.Change
	for _, id := range causes {
		r := remedies[id]
		if r.repair != nil {
			out = append(out, r.repair(c, n)...)
		}
		if r.alone != nil && alone {
			out = append(out, r.alone(c, n)...)
		}
	}
	return out
}
