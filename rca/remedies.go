package rca

// remedy is what can be done about one cause. Where a field is nil nothing is, in that
// situation.
type remedy struct {
	// pod lists the alternatives for a cause that is the pod's own.
	pod func(*Bench) []change
	// beside is offered beside what clears the nodes, for a cause that keeps the pod from
	// none.
	beside func(*Bench) change
	// policy lists the alternatives on a node that refuses the pod for something else than
	// what it has too little of.
	policy func(*Bench, *nodeView) []change
	// repair lists what mends the node itself.
	repair func(*Bench, *nodeView) []change
	// alone is repair too, where nothing else is in the pod's way: it is of no use to the pod
	// and would be done for nothing.
	alone func(*Bench, *nodeView) []change
	// layout: another MIG layout of the node can remove it.
	layout bool
	// config: so it can, for the label of the layout itself is at fault.
	config bool
}

// remedies says of each cause what can be done about it, a line each. What makes room
// for a pod whatever the cause is (evictions, a smaller request) is resourceChanges' own.
var remedies = map[CauseID]remedy{
	MIGLayoutMismatch:      {layout: true},
	MIGFragmented:          {layout: true},
	MIGFull:                {layout: true},
	MIGInstancesInUse:      {layout: true},
	MIGStrategyMismatch:    {repair: (*Bench).uniform},
	MIGConfigFailed:        {layout: true, config: true, repair: one((*Bench).revert, MIGConfigFailed)},
	MIGConfigStuck:         {repair: one((*Bench).revert, MIGConfigStuck)},
	MIGConfigUnknown:       {layout: true, config: true},
	MIGConfigInvalidForGPU: {layout: true, config: true},
	MIGModePending:         {repair: func(_ *Bench, n *nodeView) []change { return []change{reboot(n)} }},
	MIGLayoutDrift: {repair: func(c *Bench, n *nodeView) []change {
		return append([]change{c.restartPlugin(n, MIGLayoutDrift)}, c.remakeLost(n)...)
	}},
	GPURequestTooLarge:     {repair: (*Bench).fewerGPUs},
	DevicePluginDown:       {repair: one((*Bench).restartPlugin, DevicePluginDown)},
	GPUUnhealthy:           {repair: one((*Bench).restartPlugin, GPUUnhealthy), alone: func(_ *Bench, n *nodeView) []change { return []change{n.quarantine()} }},
	SharedRequestTooLarge:  {pod: (*Bench).oneShare},
	UntoleratedTaint:       {policy: (*Bench).addToleration},
	NodeSelectorMismatch:   {policy: (*Bench).fixSelector},
	NodeCordoned:           {policy: func(_ *Bench, n *nodeView) []change { return []change{uncordon(n)} }},
	NodeNotReady:           {policy: func(_ *Bench, n *nodeView) []change { return []change{waitForReady(n)} }},
	PodAffinityConflict:    {policy: (*Bench).resolveAffinity},
	TopologySpreadConflict: {policy: (*Bench).loosenSpread},
	QuotaExceeded:          {pod: (*Bench).quotaChanges},
	LimitRangeViolated:     {pod: (*Bench).comeWithinLimits},
	InvalidGPURequest:      {pod: (*Bench).correctRequests},
	PreemptionBlocked:      {pod: (*Bench).waitForPreempted},
	SchedulingGated:        {pod: (*Bench).openGates},
	QueueNotAdmitted:       {pod: (*Bench).queueChanges},
	GangIncomplete:         {pod: func(c *Bench) []change { return c.gangChanges(GangIncomplete) }},
	DRAClaimMissing:        {pod: (*Bench).lookAtMissing},
	DRAClassMissing:        {policy: func(c *Bench, _ *nodeView) []change { return []change{c.lookAtClass()} }},
	DRADriverMissing:       {policy: func(c *Bench, _ *nodeView) []change { return []change{c.lookAtDriver()} }},
	DRANoDeviceMatches:     {policy: func(c *Bench, n *nodeView) []change { return c.fixClaims(n, DRANoDeviceMatches) }},
	DRASelectorError:       {policy: func(c *Bench, n *nodeView) []change { return c.fixClaims(n, DRASelectorError) }},
	DRADevicesInUse:        {policy: (*Bench).freeDevices},
	DRAPrepareFailed:       {pod: (*Bench).lookAtPreparation},
	SchedulerMissing:       {pod: (*Bench).schedulerChanges},
	ScalingUp:              {beside: (*Bench).waitForAutoscaler},
	AutoscalerCannotHelp:   {beside: (*Bench).growPool},
	NoNodes:                {pod: (*Bench).addNode},
	Unknown:                {pod: (*Bench).lookAtRefusal},
}

// one is a remedy of one change.
func one(change1 func(*Bench, *nodeView, CauseID) change, id CauseID) func(*Bench, *nodeView) []change {
	return func(c *Bench, n *nodeView) []change { return []change{change1(c, n, id)} }
}

// ofPod lists the alternatives for a cause that is the pod's own; none: a person has to
// look.
func (c *Bench) ofPod(id CauseID) []change {
	if f := remedies[id].pod; f != nil {
		return f(c)
	}
	return nil
}

// ofPolicy lists, for a cause on one node that is not about resources, the alternatives
// that remove it.
func (c *Bench) ofPolicy(n *nodeView, id CauseID) []change {
	if f := remedies[id].policy; f != nil {
		return f(c, n)
	}
	return nil
}

// beside is what is offered whatever is done on the nodes; false for nothing.
func (c *Bench) beside(id CauseID) (change, bool) {
	if f := remedies[id].beside; f != nil {
		return f(c), true
	}
	return change{}, false
}

// repairs lists what mends a node itself, for each of the causes that admit it.
func (c *Bench) repairs(n *nodeView, causes []CauseID, alone bool) []change {
	var out []change
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
