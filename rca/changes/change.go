package changes

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
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

	// Hard is what quotas of the pod's namespace would allow instead, by name.
	Hard map[string]corev1.ResourceList

	// Detail fills in steps, commands, actions and hardware. Thousands of changes
	// are weighed for each that is shown, so it is asked for those alone.
	Detail func(*Change)

	// Less is how many devices of those asked the pod does without.
	Less int64

	Title    string
	Minutes  int
	Risk     diagnosis.Risk
	Steps    []string
	Commands []string
	Actions  []diagnosis.Action
	Manual   bool
	Relayout *Relayout
	Hardware *int
	// Untestable says why no copy can show what it brings.
	Untestable string
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
		if causes.Departing(t) {
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
		c.editTemplate(&ch, map[string]any{"tolerations": c.templateTolerations(add)}, true)
		return ch
	})}
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

// editTemplate fills in how the pod spec of the workload is changed: by a patch
// of the template where it may change, of the waiting pods where the API allows
// that (live) and all of them are named, else by recreating the workload.
func (c *Bench) editTemplate(ch *Change, spec map[string]any, live bool) {
	ch.template, ch.live = spec, live
	w := c.Incident.Workload
	resource := strings.ToLower(w.Kind) + "/" + w.Name
	defer func() {
		for i := range ch.Actions {
			ch.Actions[i].Stops = view.StopTargets(c.Cluster.State, ch.Actions[i])
		}
	}()
	owner, known := c.Cluster.State.Owner(w.Kind, w.Namespace, w.Name)
	template := diagnosis.MustJSON(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
	switch {
	case w.Kind == "Deployment" || w.Kind == "StatefulSet" || w.Kind == "ReplicaSet" || w.Kind == "DaemonSet":
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s patch %s --type=strategic -p '%s'", w.Namespace, resource, template))
		if !known {
			ch.Manual = true
			return
		}
		ch.Steps = append(ch.Steps, "patch the template of "+resource)
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbPatch, Target: diagnosis.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, UID: string(owner.GetUID())}, Patch: template})
	case live && len(c.waitingPods()) > 0 && (w.Kind == "Pod" || w.Kind == "Job" && c.Incident.Waiting <= len(c.Incident.Pods)):
		patch := diagnosis.MustJSON(map[string]any{"spec": spec})
		for _, p := range c.waitingPods() {
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s patch pod/%s --type=strategic -p '%s'", p.Namespace, p.Name, patch))
			ch.Steps = append(ch.Steps, "patch pod/"+p.Name)
			ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbPatch, Target: view.PodTarget(p), Patch: diagnosis.MustJSON(map[string]any{"spec": c.livePatch(p, spec)})})
		}
	case w.Kind == "Job" && known:
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get %s -o yaml > job.yaml  # change %s, then kubectl replace --force -f job.yaml", w.Namespace, resource, diagnosis.MustJSON(spec)))
		ch.Steps = append(ch.Steps, "recreate "+resource+" (its template cannot change)")
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: diagnosis.Target{Kind: w.Kind, Namespace: w.Namespace, Name: w.Name, UID: string(owner.GetUID())}, Patch: template})
	case w.Kind == "Pod":
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get %s -o yaml > pod.yaml  # change %s, then kubectl replace --force -f pod.yaml", w.Namespace, resource, diagnosis.MustJSON(spec)))
		ch.Steps = append(ch.Steps, "recreate "+resource)
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: view.PodTarget(c.Pod), Patch: diagnosis.MustJSON(map[string]any{"spec": spec})})
	default:
		ch.Manual = true
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s edit %s  # change %s", w.Namespace, resource, diagnosis.MustJSON(spec)))
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
		if p := c.Cluster.State.Pod(c.Incident.Workload.Namespace, ref.Name); p != nil {
			out = append(out, p)
		}
	}
	return out
}

// WorkloadName is the workload as kubectl takes it: deployment/x.
func (c *Bench) WorkloadName() string {
	w := c.Incident.Workload
	return strings.ToLower(w.Kind) + "/" + w.Name
}
