package changes

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Change is one thing that could be done about one cause on one node. Several
// make a fix.
type Change struct {
	Kind    diagnosis.FixKind
	Cause   diagnosis.CauseID
	Victims []*corev1.Pod
	Cost    *evict.Cost // of the victims, each named once; nil: not known
	// Pod and Node edit copies: what the cluster would hold afterwards.
	Pod  func(*corev1.Pod)
	Node func(*corev1.Node)
	// On is the node that Node edits, where a fix changes several; nil: the fix's own.
	On *view.Node

	// Hard is what quotas of the pod's namespace would allow instead, by name.
	Hard map[string]corev1.ResourceList

	// Detail fills in steps, commands, actions and hardware. Thousands of changes
	// are weighed for each that is shown, so it is asked for those alone.
	Detail func(*Change)

	// Adds: it only writes down what was left out, and takes nothing of what was asked.
	Adds bool
	// With is what is done after it, for what it would be no use without.
	With []Change
	// Not is a node on which the pod would be refused again: to be placed there is no proof.
	Not string

	// Less is how many devices of those asked the pod does without.
	Less int64

	Title    string
	Minutes  int
	Risk     diagnosis.Risk
	Steps    []string
	Commands []string
	Actions  []diagnosis.Action
	Manual   bool
	Relayout *relayout.Way
	Hardware *int
	// Untestable says why no copy can show what it brings.
	Untestable string
	// Rolling is how the workload replaces its pods for it; nil where it does not.
	Rolling *Rolling
	// Drained are the pods that a person stops for it, by hand.
	Drained []*corev1.Pod
	// StopsUnknown: others may stop for it, and nobody can say who.
	StopsUnknown bool
	// claims replace those of the same name.
	claims []*resourcev1.ResourceClaim
	// template is what is changed in the workload's pod spec; live: its pods may
	// take it without being recreated.
	template map[string]any
	live     bool
	// Until names what must happen first, for a fix that only waits.
	Until string
}

// Apply makes the change on a fork and returns the waiting pod as it would be.
func (ch Change) Apply(s *whatif.Snapshot, pod *corev1.Pod) (*corev1.Pod, error) {
	for _, claim := range ch.claims {
		if err := s.SetClaim(claim); err != nil {
			return nil, err
		}
	}
	for _, v := range ch.Victims {
		s.DeletePod(v.Namespace, v.Name)
	}
	if ch.Pod != nil {
		pod = pod.DeepCopy()
		ch.Pod(pod)
	}
	return pod, nil
}

func uncordon(n *view.Node) Change {
	quarantined, first := n.Operation().Quarantined != "", "ask who cordoned it first"
	if quarantined {
		first = "see first that its GPU is mended"
	}
	ch := Change{
		Kind: diagnosis.UncordonNode, Cause: diagnosis.NodeCordoned, Minutes: 1, Risk: diagnosis.MediumRisk,
		Title: "uncordon " + n.Name,
		Node: func(o *corev1.Node) {
			o.Spec.Unschedulable = false
			o.Spec.Taints = slices.DeleteFunc(slices.Clone(o.Spec.Taints), func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		},
		Detail: func(ch *Change) {
			ch.Steps = []string{"uncordon " + n.Name + " (" + first + ")"}
			ch.Commands = []string{"kubectl uncordon " + n.Name}
			ch.Actions = []diagnosis.Action{{Verb: diagnosis.VerbUncordon, Target: view.NodeTarget(n.Node), Relies: n.Relies()}}
		},
	}
	if quarantined {
		ch.Risk = diagnosis.HighRisk
		ch.Title += ", which unpend keeps closed for its sick GPU"
	}
	return ch
}

func (c *Bench) addToleration(n *view.Node) []Change {
	var add []corev1.Toleration
	var names []string
	for _, t := range causes.Untolerated(c.Pod, n.Node) {
		if causes.OwnTaint(t) {
			continue
		}
		if causes.Departing(t) || c.startup(n, t) {
			return nil
		}
		op := corev1.TolerationOpEqual
		if t.Value == "" {
			op = corev1.TolerationOpExists
		}
		add = append(add, corev1.Toleration{Key: t.Key, Operator: op, Value: t.Value, Effect: t.Effect})
		names = append(names, t.ToString())
	}
	return []Change{c.once("tolerate "+strings.Join(names, ", "), func(title string) Change {
		list := append(slices.Clone(c.Pod.Spec.Tolerations), add...)
		ch := Change{
			Kind: diagnosis.AddToleration, Cause: diagnosis.UntoleratedTaint, Minutes: 1, Risk: diagnosis.LowRisk,
			Title: title + " in " + c.WorkloadName(),
			Pod:   func(p *corev1.Pod) { p.Spec.Tolerations = list },
		}
		if slices.ContainsFunc(add, func(t corev1.Toleration) bool { return t.Key != string(view.WholeGPU) }) {
			ch.Risk = diagnosis.MediumRisk // somebody has set it to keep others out
		}
		c.editTemplate(&ch, map[string]any{"tolerations": c.templateTolerations(add)}, true)
		return ch
	})}
}

// startup says whether Karpenter has put the taint on the node until it can be used: who
// tolerates it begins before what it waits for (spec.startupTaints of NodeClaim and NodePool).
func (c *Bench) startup(n *view.Node, t corev1.Taint) bool {
	out := c.Cluster.Outlook()
	claim := out.ClaimOf(n.Name)
	if claim == nil {
		return false
	}
	taints := claim.Startup
	if pool := out.Pool(claim.Pool); pool != nil {
		taints = slices.Concat(taints, pool.Startup)
	}
	return slices.ContainsFunc(taints, func(s corev1.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect })
}

// once makes a change that is the same on every node, and keeps it.
func (c *Bench) once(title string, make func(title string) Change) Change {
	ch, known := c.requests[title]
	if !known {
		ch = make(title)
		c.requests[title] = ch
	}
	return ch
}

// templateTolerations is the list to write: a template holds none of those that
// admission adds to its pods.
func (c *Bench) templateTolerations(add []corev1.Toleration) []corev1.Toleration {
	spec := c.Cluster.Template(c.Incident.Workload)
	if spec == nil {
		return append(slices.Clone(c.Pod.Spec.Tolerations), add...)
	}
	return append(slices.Clone(spec.Tolerations), add...)
}

func (c *Bench) fixSelector(n *view.Node) []Change {
	m := c.MissedOn(n)
	fix, known := c.selections[m]
	if !known {
		fix = c.selecting(n, m.Labels)
		c.selections[m] = fix
	}
	return fix
}
