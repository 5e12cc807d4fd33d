package rca

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/whatif"
)

// change is one thing that could be done about one cause on one node. Several
// make a fix.
type change struct {
	kind    FixKind
	cause   CauseID
	victims []*corev1.Pod
	cost    *victimCost // of the victims, each of whom is named once; nil: not known
	// pod and node edit copies: what the cluster would hold afterwards.
	pod  func(*corev1.Pod)
	node func(*corev1.Node)

	// hard is what quotas of the pod's namespace would allow instead, by name.
	hard map[string]corev1.ResourceList

	// detail fills in steps, commands, actions and hardware. Thousands of changes
	// are weighed for each that is shown, so it is asked for those alone.
	detail func(*change)

	// less is how many devices of those asked the pod does without.
	less int64

	title    string
	minutes  int
	risk     Risk
	steps    []string
	commands []string
	actions  []Action
	manual   bool
	relayout *relayout
	hardware *int
	// untestable says why no copy can show what it brings.
	untestable string
	// claims replace those of the same name.
	claims []*resourcev1.ResourceClaim
	// template is what is changed in the workload's pod spec; live: its pods may have
	// it without being made anew.
	template map[string]any
	live     bool
	// until names what must happen first, for a fix that only waits.
	until string
}

// apply makes the change on a fork and returns the waiting pod as it would be.
func (ch change) apply(s *whatif.Snapshot, pod *corev1.Pod) (*corev1.Pod, error) {
	for _, claim := range ch.claims {
		if err := s.SetClaim(claim); err != nil {
			return nil, err
		}
	}
	for _, v := range ch.victims {
		s.DeletePod(v.Namespace, v.Name)
	}
	if ch.pod != nil {
		pod = pod.DeepCopy()
		ch.pod(pod)
	}
	return pod, nil
}

func uncordon(n *nodeView) change {
	quarantined, first := n.operation().Quarantined != "", "ask who cordoned it first"
	if quarantined {
		first = "see first that its GPU is mended"
	}
	ch := change{
		kind: UncordonNode, cause: NodeCordoned, minutes: 1, risk: MediumRisk,
		title: "uncordon " + n.Name,
		node: func(o *corev1.Node) {
			o.Spec.Unschedulable = false
			o.Spec.Taints = slices.DeleteFunc(slices.Clone(o.Spec.Taints), func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
		},
		detail: func(ch *change) {
			ch.steps = []string{"uncordon " + n.Name + " (" + first + ")"}
			ch.commands = []string{"kubectl uncordon " + n.Name}
			ch.actions = []Action{{Verb: VerbUncordon, Target: nodeTarget(n.Node), Relies: n.relies()}}
		},
	}
	if quarantined {
		ch.risk = HighRisk
		ch.title += ", which unpend keeps closed for its sick GPU"
	}
	return ch
}

func (c *Bench) addToleration(n *nodeView) []change {
	var add []corev1.Toleration
	var names []string
	for _, t := range untolerated(c.Pod, n.Node) {
		if ownTaint(t) {
			continue
		}
		if departing(t) {
			return nil
		}
		op := corev1.TolerationOpEqual
		if t.Value == "" {
			op = corev1.TolerationOpExists
		}
		add = append(add, corev1.Toleration{Key: t.Key, Operator: op, Value: t.Value, Effect: t.Effect})
		names = append(names, t.ToString())
	}
	return []change{c.once("tolerate "+strings.Join(names, ", "), func(title string) change {
		list := append(slices.Clone(c.Pod.Spec.Tolerations), add...)
		ch := change{
			kind: AddToleration, cause: UntoleratedTaint, minutes: 1, risk: LowRisk,
			title: title + " in " + c.workloadName(),
			pod:   func(p *corev1.Pod) { p.Spec.Tolerations = list },
		}
		c.editTemplate(&ch, map[string]any{"tolerations": c.templateTolerations(add)}, true)
		return ch
	})}
}

// once makes a change that is the same on every node it is asked for.
func (c *Bench) once(title string, make func(title string) change) change {
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
	spec := c.world.template(c.Incident.Workload)
	if spec == nil {
		return append(slices.Clone(c.Pod.Spec.Tolerations), add...)
	}
	return append(slices.Clone(spec.Tolerations), add...)
}

func (c *Bench) fixSelector(n *nodeView) []change {
	m := c.missedOn(n)
	fix, known := c.selections[m]
	if !known {
		fix = c.selecting(n, m.labels)
		c.selections[m] = fix
	}
	return fix
}

// editTemplate fills in how the pod spec of the workload is changed: by a patch
// of the template where it may change, of the waiting pods where the API allows
// that (live) and all of them are named, else by making the workload anew.
func (c *Bench) editTemplate(ch *change, spec map[string]any, live bool) {
	ch.template, ch.live = spec, live
	w := c.Incident.Workload
	resource := strings.ToLower(w.Kind) + "/" + w.Name
	owner, known := c.world.state.Owner(w.Kind, w.Namespace, w.Name)
	template := mustJSON(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
	switch {
	case w.Kind == "Deployment" || w.Kind == "StatefulSet" || w.Kind == "ReplicaSet" || w.Kind == "DaemonSet":
		ch.commands = append(ch.commands, fmt.Sprintf("kubectl -n %s patch %s --type=strategic -p '%s'", w.Namespace, resource, template))
		if !known {
			ch.manual = true
			return
		}
		ch.steps = append(ch.steps, "patch the template of "+resource)
		ch.actions = append(ch.actions, Action{Verb: VerbPatch, Target: Target{w.Kind, w.Namespace, w.Name, string(owner.GetUID())}, Patch: template})
	case live && len(c.waitingPods()) > 0 && (w.Kind == "Pod" || w.Kind == "Job" && c.Incident.Waiting <= len(c.Incident.Pods)):
		patch := mustJSON(map[string]any{"spec": spec})
		for _, p := range c.waitingPods() {
			ch.commands = append(ch.commands, fmt.Sprintf("kubectl -n %s patch pod/%s --type=strategic -p '%s'", p.Namespace, p.Name, patch))
			ch.steps = append(ch.steps, "patch pod/"+p.Name)
			ch.actions = append(ch.actions, Action{Verb: VerbPatch, Target: podTarget(p), Patch: mustJSON(map[string]any{"spec": c.livePatch(p, spec)})})
		}
	case w.Kind == "Job" && known:
		ch.commands = append(ch.commands, fmt.Sprintf("kubectl -n %s get %s -o yaml > job.yaml  # change %s, then kubectl replace --force -f job.yaml", w.Namespace, resource, mustJSON(spec)))
		ch.steps = append(ch.steps, "make "+resource+" anew (its template cannot change)")
		ch.actions = append(ch.actions, Action{Verb: VerbRecreate, Target: Target{w.Kind, w.Namespace, w.Name, string(owner.GetUID())}, Patch: template})
	case w.Kind == "Pod":
		ch.commands = append(ch.commands, fmt.Sprintf("kubectl -n %s get %s -o yaml > pod.yaml  # change %s, then kubectl replace --force -f pod.yaml", w.Namespace, resource, mustJSON(spec)))
		ch.steps = append(ch.steps, "make "+resource+" anew")
		ch.actions = append(ch.actions, Action{Verb: VerbRecreate, Target: podTarget(c.Pod), Patch: mustJSON(map[string]any{"spec": spec})})
	default:
		ch.manual = true
		ch.commands = append(ch.commands, fmt.Sprintf("kubectl -n %s edit %s  # change %s", w.Namespace, resource, mustJSON(spec)))
	}
}

// livePatch keeps the tolerations a pod was given by admission: its list may
// only grow.
func (c *Bench) livePatch(p *corev1.Pod, spec map[string]any) map[string]any {
	added, ok := spec["tolerations"].([]corev1.Toleration)
	if !ok {
		return spec
	}
	list := slices.Clone(p.Spec.Tolerations)
	for _, t := range added {
		if !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return map[string]any{"tolerations": list}
}

func (c *Bench) waitingPods() []*corev1.Pod {
	var out []*corev1.Pod
	for _, ref := range c.Incident.Pods {
		if p := c.world.state.Pod(c.Incident.Workload.Namespace, ref.Name); p != nil {
			out = append(out, p)
		}
	}
	return out
}

func (c *Bench) workloadName() string {
	w := c.Incident.Workload
	return strings.ToLower(w.Kind) + "/" + w.Name
}

func podTarget(p *corev1.Pod) Target {
	return Target{"Pod", p.Namespace, p.Name, string(p.UID)}
}

func nodeTarget(n *corev1.Node) Target { return Target{Kind: "Node", Name: n.Name, UID: string(n.UID)} }

// mustJSON writes values built here from strings, numbers and API types, which
// always marshal.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`null`)
	}
	return b
}
