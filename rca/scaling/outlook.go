package scaling

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// ClusterAutoscaler is the component by which the cluster autoscaler reports. Reasons alone
// are shared: Karpenter and Volcano write FailedScheduling too.
const ClusterAutoscaler = "cluster-autoscaler"

// karpenters are the components by which Karpenter reports: its own, and that of EKS Auto Mode,
// where AWS runs it and its controller is no pod of the cluster.
var karpenters = []string{"karpenter", "eks-auto-mode/compute"}

// Outlook is what the autoscalers of one cluster have and say, but for what they say of
// pods.
type Outlook struct {
	Pools    []Pool
	Claims   []Claim
	Refused  []Refusal      // machines that the cloud refused: their NodeClaims are deleted at once
	Status   *Status        // the cluster autoscaler's; nil: none that can be read
	Failures []Failure      // what it says of groups that failed to grow
	of       map[string]int // where in Claims, by node
}

// Refusal is what Karpenter said of a NodeClaim that the cloud refused, when last.
type Refusal struct {
	Claim, Pool, Text string
	At                time.Time
	Codes             []Code
}

// Failure is what the cluster autoscaler said of a group that failed to grow.
type Failure struct {
	Reason, Text, Ref string
	At                time.Time
	Codes             []Code
}

// Read reads all of it.
func Read(st *cluster.State) *Outlook {
	o := &Outlook{of: map[string]int{}}
	for _, u := range st.NodePools {
		p := ReadPool(u)
		for _, class := range st.NodeClasses.Of(p.Class.Kind) {
			if class.GetName() == p.Class.Name {
				p.Class.read(class)
			}
		}
		o.Pools = append(o.Pools, p)
	}
	for _, u := range st.NodeClaims {
		k := ReadClaim(u)
		if k.Node != "" {
			o.of[k.Node] = len(o.Claims)
		}
		o.Claims = append(o.Claims, k)
	}
	for _, cm := range st.ConfigMaps {
		if s := ReadStatus(cm); s != nil && cm.Name == cluster.AutoscalerStatus {
			o.Status = s
		}
	}
	for _, e := range st.Events {
		switch about := e.InvolvedObject; {
		case about.Kind == "NodeClaim" && FromKarpenter(e) && e.Reason == "InsufficientCapacityError":
			o.Refused = append(o.Refused, Refusal{about.Name, PoolOfClaim(about.Name), words(e), Seen(e), Codes(e.Message)})
		case about.Kind == "ConfigMap" && From(e, ClusterAutoscaler) && slices.Contains([]string{"FailedToScaleUpGroup", "ScaleUpFailed", "ScaleUpTimedOut"}, e.Reason):
			o.Failures = append(o.Failures, Failure{e.Reason, words(e), "ConfigMap/" + about.Namespace + "/" + about.Name, Seen(e), Codes(e.Message)})
		}
	}
	slices.SortStableFunc(o.Refused, func(a, b Refusal) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Claim, b.Claim)) })
	slices.SortStableFunc(o.Failures, func(a, b Failure) int { return cmp.Or(b.At.Compare(a.At), strings.Compare(a.Text, b.Text)) })
	return o
}

// Claim finds a NodeClaim; nil when there is none.
func (o *Outlook) Claim(name string) *Claim {
	if i := slices.IndexFunc(o.Claims, func(c Claim) bool { return c.Name == name }); i >= 0 {
		return &o.Claims[i]
	}
	return nil
}

// ClaimOf finds the NodeClaim that a node was made for; nil when there is none.
func (o *Outlook) ClaimOf(node string) *Claim {
	if i, ok := o.of[node]; ok {
		return &o.Claims[i]
	}
	return nil
}

// Pool finds a NodePool; nil when there is none.
func (o *Outlook) Pool(name string) *Pool {
	if i := slices.IndexFunc(o.Pools, func(p Pool) bool { return p.Name == name }); i >= 0 {
		return &o.Pools[i]
	}
	return nil
}

// Group finds a node group of the status by its name, or by the end of it.
func (o *Outlook) Group(name string) *Group {
	if o.Status == nil {
		return nil
	}
	for i := range o.Status.Groups {
		if g := &o.Status.Groups[i]; g.Name == name || g.Short() == name {
			return g
		}
	}
	return nil
}

// PoolOfClaim is the NodePool that a NodeClaim's name begins with: Karpenter adds five letters.
func PoolOfClaim(claim string) string {
	return claim[:max(0, strings.LastIndexByte(claim, '-'))]
}

// From says whether an Event is a component's.
func From(e *corev1.Event, component string) bool {
	return e.ReportingController == component || e.Source.Component == component
}

// FromKarpenter says whether an Event is Karpenter's, whoever runs it.
func FromKarpenter(e *corev1.Event) bool {
	return slices.ContainsFunc(karpenters, func(component string) bool { return From(e, component) })
}

// Speaker is who says an Event. KAI's binder speaks for its scheduler (cmd/binder/app: GetEventRecorderFor("binder")).
func Speaker(e *corev1.Event) string {
	by := cmp.Or(e.ReportingController, e.Source.Component)
	if by == "binder" {
		return "kai-scheduler"
	}
	return by
}

// Seen is when an Event was last observed.
func Seen(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	}
	return e.CreationTimestamp.Time
}

// Begun is when it was first.
func Begun(e *corev1.Event) time.Time {
	since := Seen(e)
	for _, first := range []time.Time{e.FirstTimestamp.Time, e.EventTime.Time} {
		if !first.IsZero() && first.Before(since) {
			since = first
		}
	}
	return since
}

func words(e *corev1.Event) string { return strings.Join(strings.Fields(e.Message), " ") }
