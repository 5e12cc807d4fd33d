package growth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// silentAfter is how old the cluster autoscaler's status may be: it is written about every
// ten seconds.
const silentAfter = 10 * time.Minute

// byClusterAutoscaler tells what the cluster autoscaler makes of the pod: its last word, and
// what its status and its Events say of the groups.
func (c *Case) byClusterAutoscaler(g *Growth) {
	g.Karpenter = false
	last := c.newestEvent(func(e *corev1.Event) bool {
		return scaling.From(e, scaling.ClusterAutoscaler) && (e.Reason == "TriggeredScaleUp" || e.Reason == "NotTriggerScaleUp" || e.Reason == failedScaleUp)
	})
	o := c.Cluster.Outlook()
	switch {
	case last == nil:
		c.byRequest(g)
		controls{c}.autoscalerDown(g, o)
		untold{c}.byStatus(g, o)
		c.bySilence(g, o)
		c.byPriority(g, o)
		c.byHalt(g, o)
	case last.Reason == "TriggeredScaleUp":
		c.byPromise(g, o, last)
	case last.Reason == failedScaleUp:
		byFailure(c, g, last)
	default:
		c.byGroups(g, o, last)
	}
}

// failedScaleUp is how GKE's autoscaler tells a pod that no node pool could grow for it, in zones and with words of its own
// for Google's codes (cluster-autoscaler/pkg/events, failedScaleUpReason).
const failedScaleUp = "FailedScaleUp"

// byFailure tells what became of a scale-up that was begun for the pod.
func byFailure(c *Case, g *Growth, e *corev1.Event, before ...diagnosis.Evidence) {
	evidence := append([]diagnosis.Evidence{diagnosis.Fact(view.PodRef(c.Pod), e.Reason+": "+e.Message, diagnosis.Says(e.Message))}, before...)
	g.Suits, g.Codes, g.Said = true, scaling.Codes(e.Message), view.Quotable(e.Message, 400)
	_, zones, _ := strings.Cut(e.Message, "in zones ")
	zones, _, _ = strings.Cut(zones, " associated with")
	what := "node pools a machine"
	if zones != "" {
		what = "node pools of " + zones + " a machine"
	}
	switch {
	case len(g.Codes) > 0:
		g.tell(diagnosis.CloudCapacityRefused, diagnosis.Likely, refusedSays(what, g.Codes), evidence...)
	case strings.Contains(e.Message, "failed to appear in time"):
		g.tell(diagnosis.ScaleUpStuck, diagnosis.Likely, "a node was asked for and never joined: "+view.Quotable(e.Message, 160), evidence...)
	default:
		g.tell(diagnosis.CloudCapacityRefused, diagnosis.Likely, "the cloud refuses a node: "+view.Quotable(e.Message, 160), evidence...)
	}
}

// byPromise follows a scale-up that was begun.
func (c *Case) byPromise(g *Growth, o *scaling.Outlook, e *corev1.Event) {
	g.Suits, g.Since, g.Said = true, scaling.Begun(e), view.Quotable(e.Message, 400)
	g.By = g.Since.Add(promised)
	evidence := []diagnosis.Evidence{diagnosis.Fact(view.PodRef(c.Pod), e.Reason+": "+e.Message, diagnosis.Says(e.Message))}
	for _, name := range scaling.Grown(e.Message) {
		group := o.Group(name)
		if group == nil {
			continue
		}
		g.Groups = append(g.Groups, *group)
		if c.tellBackoff(g, o, group, evidence) {
			return
		}
		if n := group.Health.NodeCounts.Registered.Unready.ResourceUnready; n > 0 {
			g.tell(diagnosis.ScaleUpStuck, diagnosis.Likely, fmt.Sprintf("%s of node group %s came without GPUs", view.CountOf(n, "node"), group.Short()), append(evidence, statusOf(o, group))...)
			return
		}
		evidence = append(evidence, statusOf(o, group))
	}
	if len(g.Groups) == 0 && c.tellFailure(g, o, scaling.Grown(e.Message), scaling.Begun(e), evidence) {
		return
	}
	age := c.Cluster.State.Now.Sub(g.Since)
	if age <= promised {
		says := "an autoscaler is bringing a node"
		if came := cameSince(c.Cluster, g.Since); came != nil {
			says = fmt.Sprintf("an autoscaler promised a node %s ago, and %s has come since", view.Age(age), came.Name)
			evidence = append(evidence, diagnosis.Fact(came.Ref(), "Ready since "+came.ReadySince().UTC().Format(time.RFC3339), view.Since("Ready", came.ReadySince())))
		}
		g.tell(diagnosis.ScalingUp, diagnosis.Likely, says, evidence...)
		return
	}
	g.tell(diagnosis.ScaleUpStuck, diagnosis.Likely, fmt.Sprintf("an autoscaler promised a node %s ago, and none has come that helps", view.Age(age)), evidence...)
}

// cameSince is the first ready node that joined after a promise; nil where none has.
func cameSince(w *view.Cluster, promise time.Time) *view.Node {
	for _, n := range w.SortedNodes() {
		if n.CreationTimestamp.After(promise) && !n.ReadySince().IsZero() {
			return n
		}
	}
	return nil
}

// tellBackoff tells of a group that the autoscaler leaves alone for a while: with the cloud's
// code, or because its machines did not join.
func (c *Case) tellBackoff(g *Growth, o *scaling.Outlook, group *scaling.Group, evidence []diagnosis.Evidence) bool {
	if !group.InBackoff() {
		return false
	}
	info := group.ScaleUp.BackoffInfo
	codes := scaling.Codes(info.ErrorCode, info.ErrorMessage)
	g.Codes = codes
	evidence = append(evidence, statusOf(o, group))
	switch {
	case len(codes) > 0:
		g.tell(diagnosis.CloudCapacityRefused, diagnosis.Proven, refusedSays("node group "+group.Short()+" a machine", codes), evidence...)
	case c.tellFailure(g, o, []string{group.Name, group.Short()}, time.Time{}, evidence):
	case info.ErrorCode != "":
		g.tell(diagnosis.CloudCapacityRefused, diagnosis.Likely, fmt.Sprintf("the cloud refuses node group %s a machine with %s: %s", group.Short(), view.Quotable(info.ErrorCode, 60), view.Quotable(info.ErrorMessage, 160)), evidence...)
	default:
		return false
	}
	return true
}

// tellFailure tells what the autoscaler said on its ConfigMap of groups that failed to grow.
func (c *Case) tellFailure(g *Growth, o *scaling.Outlook, groups []string, after time.Time, evidence []diagnosis.Evidence) bool {
	for _, f := range o.Failures { // the newest first
		if f.At.Before(after) || len(groups) > 0 && !slices.ContainsFunc(groups, func(name string) bool { return strings.Contains(f.Text, name) }) {
			continue
		}
		evidence = append(evidence, diagnosis.Fact(f.Ref, f.Reason+": "+view.Quotable(f.Text, 320), diagnosis.Says(f.Text)))
		g.Codes = f.Codes
		if f.Reason == "ScaleUpTimedOut" {
			g.tell(diagnosis.ScaleUpStuck, diagnosis.Likely, "a node was asked for and never joined: "+view.Quotable(f.Text, 160), evidence...)
			return true
		}
		if len(f.Codes) == 0 {
			g.tell(diagnosis.CloudCapacityRefused, diagnosis.Likely, "the cloud refuses a node: "+view.Quotable(f.Text, 160), evidence...)
			return true
		}
		g.tell(diagnosis.CloudCapacityRefused, diagnosis.Likely, refusedSays("a node group a machine", f.Codes), evidence...)
		return true
	}
	return false
}

// statusOf is what the autoscaler's status says of a group.
func statusOf(o *scaling.Outlook, g *scaling.Group) diagnosis.Evidence {
	h := g.Health
	fact := fmt.Sprintf("node group %s: %d asked of the cloud, %d registered, %d ready, at most %d", g.Short(), h.Target, h.NodeCounts.Registered.Total, h.NodeCounts.Registered.Ready, h.MaxSize)
	if n := h.NodeCounts.Registered.Unready.ResourceUnready; n > 0 {
		fact += fmt.Sprintf(", %d without their GPUs", n)
	}
	if n := h.NodeCounts.LongUnregistered; n > 0 {
		fact += fmt.Sprintf(", %d that never joined", n)
	}
	if s := g.ScaleUp; s.Status != "" {
		fact += "; scaleUp " + s.Status
		if s.BackoffInfo.ErrorCode != "" {
			fact += ": " + view.Quotable(s.BackoffInfo.ErrorCode, 80) + ": " + view.Quotable(s.BackoffInfo.ErrorMessage, 240)
		}
	}
	return diagnosis.Fact(o.Status.Ref, fact, groupClaims(g)...)
}

// groupClaims are what the autoscaler's status has of a group.
func groupClaims(g *scaling.Group) []diagnosis.Claim {
	if len(g.Text) > 0 {
		out := []diagnosis.Claim{diagnosis.That("data[status]", "", diagnosis.Contains, g.Name)}
		for _, line := range g.Text {
			out = append(out, diagnosis.That("data[status]", "", diagnosis.Contains, line))
		}
		return out
	}
	at, h := "data[status].nodeGroups[name="+g.Name+"]", g.Health
	is := func(path string, n int) diagnosis.Claim {
		return diagnosis.That(at+".health."+path, "", diagnosis.Is, strconv.Itoa(n))
	}
	out := []diagnosis.Claim{is("cloudProviderTarget", h.Target), is("nodeCounts.registered.total", h.NodeCounts.Registered.Total), is("nodeCounts.registered.ready", h.NodeCounts.Registered.Ready), is("maxSize", h.MaxSize)}
	if n := h.NodeCounts.Registered.Unready.ResourceUnready; n > 0 {
		out = append(out, is("nodeCounts.registered.unready.resourceUnready", n))
	}
	if n := h.NodeCounts.LongUnregistered; n > 0 {
		out = append(out, is("nodeCounts.longUnregistered", n))
	}
	if s := g.ScaleUp; s.Status != "" {
		out = append(out, diagnosis.That(at+".scaleUp.status", "", diagnosis.Is, s.Status))
		if s.BackoffInfo.ErrorCode != "" {
			out = append(out, diagnosis.That(at+".scaleUp.backoffInfo.errorCode", "", diagnosis.Is, s.BackoffInfo.ErrorCode), diagnosis.That(at+".scaleUp.backoffInfo.errorMessage", "", diagnosis.Contains, diagnosis.Says(s.BackoffInfo.ErrorMessage).Value))
		}
	}
	return out
}

// byGroups sorts why no group grows. Size, health and back-off are looked at before the
// autoscaler asks whether the pod fits a fresh node of the group.
func (c *Case) byGroups(g *Growth, o *scaling.Outlook, e *corev1.Event) {
	said := scaling.NotTriggered(e.Message)
	g.Said = view.Quotable(e.Message, 600)
	evidence := []diagnosis.Evidence{diagnosis.Fact(view.PodRef(c.Pod), strings.TrimSpace(e.Reason+": "+e.Message), diagnosis.Says(e.Message))}
	blind := c.blindTo()
	lacks := ofBar(said, scaling.Lacks)
	if backoff := ofBar(said, scaling.Backoff); len(backoff) > 0 {
		told, none := c.byBackoff(g, o, len(said) == 1, evidence)
		if told {
			return
		}
		if none && len(backoff) == len(said) {
			g.Bar = scaling.Other
			g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "no node group that failed to grow could hold the pod", evidence...)
			return
		}
		if none {
			said = slices.DeleteFunc(said, func(r scaling.Reason) bool { return r.Bar == scaling.Backoff })
		}
	}
	if backoff := ofBar(said, scaling.Backoff); len(backoff) > 0 {
		if failure := c.newestEvent(func(e *corev1.Event) bool {
			return scaling.From(e, scaling.ClusterAutoscaler) && e.Reason == failedScaleUp
		}); failure != nil {
			byFailure(c, g, failure, evidence...)
			return
		}
		what := "a node group failed to grow shortly before, and is left alone for a while"
		if slices.ContainsFunc(backoff, scaling.Reason.Failed) {
			what = "the cluster autoscaler asked for a machine for the pod in vain"
		}
		g.tell(diagnosis.CloudCapacityRefused, diagnosis.Possible, what+"; with what code the cloud refused was not read", evidence...)
		return
	}
	limit := c.limitsInTheWay(o, said)
	if len(limit) > 0 && c.byMissing(g, o, said, evidence) {
		return
	}
	if len(limit) > 0 && (blind == "" || len(lacks) == 0 || heldSomewhere(c.Cluster, blind)) {
		c.tellMax(g, o, limit, evidence)
		g.Suits = len(said) == len(limit)
		return
	}
	left := whose{c}.leftOver(o, said) // which of it decides; what is told then is all that is said
	lacks = ofBar(left, scaling.Lacks)
	remembered := slices.IndexFunc(said, func(r scaling.Reason) bool { return r.Remembered() != "" })
	switch {
	case whose{c}.byOldWords(g, o, e.Message, evidence):
	case remembered >= 0:
		whose{c}.byRemembered(g, o, said[remembered].Remembered(), evidence)
	case whose{c}.byStartup(g, o, left, evidence):
	case len(ofBar(said, scaling.Internal)) > 0:
		g.Bar = scaling.Internal
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "the cluster autoscaler considered a node group for the pod and left it out; why is in its log alone: "+view.Quotable(ofBar(said, scaling.Internal)[0].Text, 120), evidence...)
	case len(ofBar(said, scaling.NotReady)) > 0:
		g.Bar = scaling.NotReady
		for i := range groupsOf(o) {
			if group := &o.Status.Groups[i]; group.Health.Status == "Unhealthy" {
				g.Groups, evidence = append(g.Groups, *group), append(evidence, statusOf(o, group))
			}
		}
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "the cluster autoscaler leaves a node group alone whose nodes are not ready", evidence...)
	case len(ofBar(said, scaling.Volume)) > 0 && len(ofBar(said, scaling.Other)) == 0:
		c.byVolume(g, said, evidence)
	case len(lacks) > 0:
		fresh{c}.byLack(g, o, said, blind, evidence)
	case len(ofBar(left, scaling.Claims)) > 0 && whose{c}.byClaimsAtZero(g, o, evidence):
	case len(ofBar(said, scaling.Topology)) > 0:
		c.byNeighbours(g, o, evidence)
	case len(ofBar(said, scaling.Selector))+len(ofBar(said, scaling.Taint)) > 0:
		c.byTemplates(g, o, said, evidence)
	case whose{c}.byNamed(g, o, evidence):
	default:
		g.Bar = scaling.Other
		says := "the cluster autoscaler looked and cannot help"
		if empty, _, _ := c.couldHold(o, (*scaling.Group).Empty); len(c.Asks) > 0 && len(empty) > 0 && !heldSomewhere(c.Cluster, string(c.Asks[0].Resource)) {
			g.Groups = empty
			says += ": of a group at zero (" + groupNames(empty) + ") it knows what its template says, and counts no " + string(c.Asks[0].Resource) + " where that speaks of none"
			for i := range empty {
				evidence = append(evidence, statusOf(o, &empty[i]))
			}
		}
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, says, evidence...)
	}
}

func groupsOf(o *scaling.Outlook) []scaling.Group {
	if o.Status == nil {
		return nil
	}
	return o.Status.Groups
}

// heldSomewhere says whether a node offers the resource: then a group of such nodes is
// known by one of them.
func heldSomewhere(w *view.Cluster, resource string) bool {
	for _, n := range w.SortedNodes() {
		if n.Capacity(corev1.ResourceName(resource)) > 0 {
			return true
		}
	}
	return false
}

// tellMax names the groups that may not grow, with their size.
func (c *Case) tellMax(g *Growth, o *scaling.Outlook, limit []scaling.Reason, evidence []diagnosis.Evidence) {
	g.Bar = scaling.Limit
	says := "the cluster autoscaler may not grow: " + view.Quotable(limit[0].Text, 160)
	if own := slices.IndexFunc(limit, func(r scaling.Reason) bool { return strings.Contains(r.Text, "exceeded quota:") }); own >= 0 {
		says = "the cluster autoscaler's own limits are reached (no ResourceQuota, and not the cloud's): " + view.Quotable(limit[own].Text, 160)
	}
	groups, sure, _ := c.couldHold(o, (*scaling.Group).AtMax)
	g.Groups = groups
	for i := range groups {
		evidence = append(evidence, statusOf(o, &groups[i]))
	}
	if len(groups) > 0 && slices.ContainsFunc(limit, ofSize) {
		says = "at their largest size: node group " + sizes(groups)
		if len(groups) > 1 && !sure {
			says += whichIsUnknown
		}
	}
	g.tell(diagnosis.AutoscalerLimit, diagnosis.Likely, says, evidence...)
}

// sizes are groups with the size that each has, of the largest that it may have.
func sizes(groups []scaling.Group) string {
	out := make([]string, len(groups))
	for i := range groups {
		out[i] = fmt.Sprintf("%s (%d of %d)", groups[i].Short(), groups[i].Health.Target, groups[i].Health.MaxSize)
	}
	return strings.Join(out, ", ")
}

// ofSize says whether a limit is that of a group's own size.
func ofSize(r scaling.Reason) bool { return strings.Contains(r.Text, "max node group size") }

// limitsInTheWay are the limits that the autoscaler names, but for the size of groups none of
// which could hold the pod: if they grew, it would wait on.
func (c *Case) limitsInTheWay(o *scaling.Outlook, said []scaling.Reason) []scaling.Reason {
	limit := ofBar(said, scaling.Limit)
	if groups, _, some := c.couldHold(o, (*scaling.Group).AtMax); some && len(groups) == 0 || (whose{c}).fullAreOthers(o, said) {
		limit = slices.DeleteFunc(limit, ofSize)
	}
	return limit
}

// fullAreOthers says, where the groups themselves were not read, whether those that are at their largest size are for
// others than the pod: a group at its size has machines, and no node of the cluster has a GPU.
func (c whose) fullAreOthers(o *scaling.Outlook, said []scaling.Reason) bool {
	all := len(said) == len(slices.DeleteFunc(slices.Clone(said), func(r scaling.Reason) bool { return !ofSize(r) }))
	return o.Status == nil && !all && len(c.Asks) > 0 && c.Cluster.State.Unread["Node"] == "" && len(c.Cluster.SortedNodes()) > 0 && !c.Cluster.HasGPUs()
}

func groupNames(groups []scaling.Group) string {
	names := make([]string, len(groups))
	for i := range groups {
		names[i] = groups[i].Short()
	}
	return strings.Join(names, ", ")
}

// byRequest tells of the ProvisioningRequest that the pod waits on.
func (c *Case) byRequest(g *Growth) {
	name := c.Pod.Annotations["autoscaling.x-k8s.io/consume-provisioning-request"]
	if name == "" {
		return
	}
	for _, u := range c.Cluster.State.ProvisioningRequests {
		if u.GetNamespace() != c.Pod.Namespace || u.GetName() != name {
			continue
		}
		ref := view.ObjectRef("ProvisioningRequest", u.GetNamespace(), name)
		for _, kind := range []string{"Failed", "CapacityRevoked", "BookingExpired", "Provisioned"} {
			k := scaling.ConditionOf(u, kind)
			if k.Met() == (kind == "Provisioned") || k.Status == "" {
				continue
			}
			g.Bar = scaling.Other
			g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, "its ProvisioningRequest "+name+" has no capacity: "+view.Cut(k.Words(), 160), diagnosis.Fact(ref, kind+"="+k.Status+" "+view.Cut(k.Words(), 300), append(view.SaysOf(k), view.ConditionIs(kind, k.Status))...))
			return
		}
	}
}

// bySilence tells of an autoscaler that does not run.
func (c *Case) bySilence(g *Growth, o *scaling.Outlook) {
	if len(g.told) > 0 || o.Status == nil || o.Status.Updated.IsZero() || !c.stopped() || len(o.Pools) > 0 {
		return
	}
	if age := c.Cluster.State.Now.Sub(o.Status.Updated); age > silentAfter {
		g.Bar = scaling.NotReady
		g.tell(diagnosis.AutoscalerCannotHelp, diagnosis.Likely, fmt.Sprintf("the cluster autoscaler has not written its status for %s: it does not run", view.Age(age)), diagnosis.Fact(o.Status.Ref, "last updated "+o.Status.Updated.UTC().Format(time.RFC3339), diagnosis.That("metadata.annotations", scaling.LastUpdated, diagnosis.Contains, o.Status.Updated.Format("15:04:05"))))
	}
}
