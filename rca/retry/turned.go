package retry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/kubelet"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Again is what is done about a pod that a kubelet has refused: it is tried again
// where nothing speaks against that, else what is behind the refusal is mended first.
func Again(c *edit.Workload) []edit.Change {
	t := c.Kubelet.Turned()
	if t == nil {
		return nil
	}
	id := diagnosis.KubeletAdmissionRefused
	var out []edit.Change
	mendFirst := func(ch edit.Change) {
		ch = thenAgain(c, t, ch)
		if bare(c) && (ch.Untestable == "" || ch.Until != "") {
			ch.With = []edit.Change{again(c, t, "")}
		}
		out = append(out, ch)
	}
	not := t.On
	if t.Fine {
		not = ""
	}
	switch t.Behind {
	case kubelet.PlacedByHand:
		return append(out, freely(c, t))
	case kubelet.Trial:
		return append(out, leaveOutTrial(c, t))
	case kubelet.AllHeld:
		if room := makeRoom(c, t); t.Storm() && len(room) > 0 { // the next one would be refused, too
			return room
		}
	case kubelet.NotByHAMi:
		return append(out, c.GiveToHAMi(id)...)
	case kubelet.OverheadLeftOut: // it would be placed there, and refused, again
		if ch, ok := askBesideOverhead(c, t); ok {
			return append(out, ch)
		}
		return append(out, countOverhead(c))
	case kubelet.InitAsksToo:
		out = append(out, askOnce(c, t))
	case kubelet.NotReleased:
		if !t.Fine {
			mendFirst(waitForRelease(c, t))
			not = t.On
		}
	}
	if t.Lasts() {
		return otherwise(c, t)
	}
	if toldByNode(c, t) { // what mends the node is offered for what it is told
		return append(out, again(c, t, ""))
	}
	out = append(out, again(c, t, not))
	if t.Node == nil {
		return out
	}
	switch t.Behind {
	case kubelet.GPULost:
		mendFirst(closeNode(c, t))
		last := mend.RestartPlugin(c, t.Node, id)
		last.Minutes, last.Untestable = 2, "it helps only if NVML then hides the lost GPU, which nobody can try on a copy"
		return append(out, thenAgain(c, t, mend.Reboot(t.Node, id)), thenAgain(c, t, last))
	case kubelet.NVMLLost:
		first := mend.RestartPlugin(c, t.Node, id)
		first.Untestable = "whether NVML starts for a new pod of the device plugin nobody can try on a copy: where it does not, the driver has lost a GPU"
		mendFirst(first)
		q := closeNode(c, t)
		q.Minutes = 2 // first what stops nobody
		mendFirst(q)
		return append(out, thenAgain(c, t, mend.Reboot(t.Node, id)))
	case kubelet.NotPermitted:
		mendFirst(permit(c, t))
		return out
	case kubelet.GPUsSick:
		if t.Back || t.Well {
			return out // what would be mended has been
		}
		mendFirst(mend.RestartPlugin(c, t.Node, id))
		if q := closeNode(c, t); t.Node.SickText() != "" || offeredElsewhere(c, t) {
			q.Minutes = 2 // a restart gives back what had a passing fault
			mendFirst(q)
		}
		return append(out, thenAgain(c, t, mend.Reboot(t.Node, id)))
	case kubelet.Unaligned:
		if c.Kubelet.AsksNothing() {
			return append(out, newerKubelet(t))
		}
		if bare(c) && c.Kubelet.Vacant(t) {
			first := again(c, t, "")
			first.Title += ": nobody else holds GPUs there now, or CPUs of its own"
			first.Untestable = "where the kubelet lays devices and CPUs is in no object: one NUMA node may be too small for it still"
			out = append(out, first)
		}
		ch, asks := leaveOutInit(c, t)
		if asks {
			out = append(out, ch)
		}
		if t.Occupied() && c.Kubelet.Beyond(t) == nil { // else nobody is in its way
			out = append(out, freeSocket(c, t))
		}
		return append(out, askAligned(c, t))
	}
	return append(out, stillRefused(c, t)...)
}

// toldByNode says that the scheduler refuses the node by now, too, for what was behind the
// refusal: its own causes tell what is to be done.
func toldByNode(c *edit.Workload, t *kubelet.Turned) bool {
	return t.Node != nil && t.Behind != kubelet.GPULost && t.Behind != kubelet.NVMLLost && t.Behind != kubelet.Unaligned && !slices.Contains(c.Verdict.Feasible(), t.On)
}

// thenAgain has a bare pod made again once what refused it is mended: nobody else makes it. A node that is only closed
// to pods mends nothing; and where nothing speaks against trying again at once, that is offered by itself, and what cannot
// be tried beside it.
func thenAgain(c *edit.Workload, t *kubelet.Turned, ch edit.Change) edit.Change {
	if bare(c) && !t.Fine && (ch.Kind != diagnosis.QuarantineGPU || ch.Untestable == "") {
		ch.With = []edit.Change{again(c, t, "")}
	}
	return ch
}

// otherwise is for a reason that the same pod meets again: it is to be another pod, or the node another one.
func otherwise(c *edit.Workload, t *kubelet.Turned) []edit.Change {
	g := t.Ground()
	ch := edit.Change{Kind: diagnosis.ChangeRequest, Manual: true, Minutes: 2, Risk: diagnosis.MediumRisk, Title: "make " + c.WorkloadName() + " " + g.InPod,
		Untestable: "what a kubelet takes beside devices nobody can try on a copy", Drained: c.Cluster.Running(c.Incident.Workload), StopsUnknown: true,
		Commands: []string{fmt.Sprintf("kubectl -n %s describe pod %s  # what exactly it refuses", c.Pod.Namespace, c.Pod.Name), c.EditByHand(g.InPod)}}
	out := []edit.Change{ch}
	if g.OnNode == "" {
		return out
	}
	node := edit.Change{Kind: diagnosis.Manual, Manual: true, Minutes: 10, Risk: diagnosis.MediumRisk, Title: g.OnNode + " on " + t.On, Untestable: "how a kubelet and its machine are set up is in no object",
		Commands: []string{fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host %s  # as it is now", t.On, g.Look)}}
	if bare(c) {
		node.With = []edit.Change{again(c, t, "")}
	}
	return append(out, node)
}

// stillRefused is what helps against a kubelet that goes on refusing.
func stillRefused(c *edit.Workload, t *kubelet.Turned) []edit.Change {
	id := diagnosis.KubeletAdmissionRefused
	var out []edit.Change
	switch t.Behind {
	case kubelet.PluginAway, kubelet.Behindhand, kubelet.DevicesMoved, kubelet.NotReleased:
		restart := mend.RestartPlugin(c, t.Node, id)
		restart.Untestable = "the kubelet's own table of devices is in no object: the plugin registers its devices afresh"
		out = append(out, thenAgain(c, t, restart), thenAgain(c, t, restartKubelet(t.Node)))
	case kubelet.CountedOver, kubelet.SameUID:
		out = append(out, thenAgain(c, t, restartKubelet(t.Node)))
	case kubelet.TwoSchedulers:
		out = append(out, edit.Change{Kind: diagnosis.Manual, Manual: true, Minutes: 10, Risk: diagnosis.MediumRisk, Title: fmt.Sprintf("give %s to one scheduler alone", t.On), Untestable: fmt.Sprintf("how %s counts no copy can show", c.Queue.SchedulerName()),
			Commands: []string{fmt.Sprintf("kubectl get pods -A --field-selector spec.nodeName=%s -o custom-columns=NS:.metadata.namespace,POD:.metadata.name,SCHEDULER:.spec.schedulerName", t.On)}})
	case kubelet.PluginSays:
		out = append(out, askPlugin(c, t))
	case kubelet.MemoryUnaligned:
		out = append(out, askOfOneNUMA(c, t))
	case kubelet.OwnWords:
		out = append(out, edit.Change{Kind: diagnosis.Manual, Manual: true, Minutes: 5, Risk: diagnosis.NoRisk, Title: "look at what the kubelet of " + t.On + " says", Untestable: "the kubelet decides by what no object tells",
			Commands: []string{fmt.Sprintf("kubectl -n %s describe pod %s", c.Pod.Namespace, c.Pod.Name), "kubectl describe node " + t.On}})
	}
	if t.Storm() && (elsewhere(c, t) || t.Behind != kubelet.PluginSays && t.Behind != kubelet.MemoryUnaligned) { // else it would have no node at all, and its owner tries again by itself
		out = append(out, cordonFirst(c, t))
	}
	return out
}

// askPlugin is for a device plugin that answers the kubelet with an error of its own.
func askPlugin(c *edit.Workload, t *kubelet.Turned) edit.Change {
	ch := edit.Change{Kind: diagnosis.Manual, Manual: true, Minutes: 5, Risk: diagnosis.NoRisk, Title: "see why the device plugin on " + t.On + " does not give it its device", Untestable: "why the device plugin refuses its own log tells",
		Commands: []string{"kubectl get pods -A -o wide --field-selector spec.nodeName=" + t.On + "  # the device plugin is one of them: its log"}}
	p := t.Node.PluginPod()
	if len(c.Asks) == 0 {
		p = otherPlugin(t.Node)
	}
	if p != nil {
		ch.Commands[0] = fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", p.Namespace, p.Name)
	}
	if owner := metav1.GetControllerOfNoCopy(c.Pod); owner != nil {
		ch.Title += fmt.Sprintf("; %s/%s makes another pod meanwhile", strings.ToLower(owner.Kind), owner.Name)
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get pods -w  # one that is given it runs", c.Pod.Namespace))
	}
	return ch
}

// otherPlugin is the one pod on the node that by its DaemonSet's name is a device plugin, and not NVIDIA's; nil where none is, or
// several are.
func otherPlugin(n *view.Node) *corev1.Pod {
	var found *corev1.Pod
	for _, p := range n.Pods {
		owner := metav1.GetControllerOfNoCopy(p)
		if owner == nil || owner.Kind != "DaemonSet" || !strings.Contains(owner.Name, "device-plugin") || p == n.PluginPod() {
			continue
		}
		if found != nil {
			return nil
		}
		found = p
	}
	return found
}

// permit is for a device plugin whose container may not read GPUs in MIG mode: they are sound.
func permit(c *edit.Workload, t *kubelet.Turned) edit.Change {
	ch := edit.Change{Kind: diagnosis.RepairDeviceStack, Cause: diagnosis.KubeletAdmissionRefused, Manual: true, Minutes: 5, Risk: diagnosis.LowRisk, Title: "let the device plugin on " + t.On + " read GPUs that are in MIG mode: its container lacks the right to",
		Untestable: "what NVML lets the device plugin do no copy can show", Until: "the device plugin of " + t.On + " has started again, with the right to"}
	ch.Commands = []string{"kubectl get pods -A -o wide --field-selector spec.nodeName=" + t.On + "  # the device plugin is one of them: its DaemonSet is to have it privileged, with NVIDIA_MIG_MONITOR_DEVICES=all"}
	if p := t.Node.PluginPod(); p != nil {
		ch.Commands = parts.Permit(p, parts.Of(c.Cluster).SetOf(p))
	}
	return ch
}

// answers is how long an operator may take to make another pod in place of one that was refused.
const answers = 30 * time.Minute

// bare says whether nobody makes another pod when this one was refused.
func bare(c *edit.Workload) bool {
	return metav1.GetControllerOfNoCopy(c.Pod) == nil
}

// again tries once more: a bare pod is made again without its node, others their owners
// make. To come to the node "not" would be to be refused again.
func again(c *edit.Workload, t *kubelet.Turned, not string) edit.Change {
	if incident.Reserves(c.Pod) {
		return edit.Change{Kind: diagnosis.Wait, Manual: true, Risk: diagnosis.NoRisk, Minutes: 1, Not: not, Title: "wait until its scheduler reserves a GPU again, for who is to share it", Until: "its scheduler has made another reservation",
			Commands: []string{fmt.Sprintf("kubectl -n %s get pods -o wide -L runai-gpu-group -w", c.Pod.Namespace)}}
	}
	if bare(c) {
		ch := recreate(c, fmt.Sprintf("make pod/%s again, which the kubelet of %s has refused", c.Pod.Name, t.On))
		ch.Not, ch.Untestable = not, doubted(t)
		return ch
	}
	owner := metav1.GetControllerOfNoCopy(c.Pod)
	name := strings.ToLower(owner.Kind) + "/" + owner.Name
	ch := edit.Change{Kind: diagnosis.Wait, Manual: true, Risk: diagnosis.NoRisk, Minutes: 1, Not: not, Title: "wait until " + name + " makes another pod", Until: name + " makes another pod",
		Commands: []string{fmt.Sprintf("kubectl -n %s get pods -w", c.Pod.Namespace)}}
	if group := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group; group != "apps" && group != "batch" && group != "" && (strings.HasSuffix(owner.Kind, "Job") || c.Cluster.State.Now.Sub(t.Last) > answers) { // such may give up, as Volcano's Job does
		ch.Kind, ch.Until, ch.Title = diagnosis.Manual, "", "see whether "+name+" makes another pod, and make it again where it does not"
		ch.Untestable = fmt.Sprintf("what a %s of %s does about a refused pod is known to its operator alone", owner.Kind, group)
		ch.Commands = []string{fmt.Sprintf("kubectl -n %s get %s.%s/%s -o yaml  # its status", c.Pod.Namespace, strings.ToLower(owner.Kind), group, owner.Name), ch.Commands[0]}
		return ch
	}
	if o, ok := c.Cluster.State.Owner(incident.OwnerKind(owner), c.Pod.Namespace, owner.Name); ok {
		if j, is := o.(*batchv1.Job); is && gaveUp(j) {
			ch.Kind, ch.Title, ch.Until = diagnosis.Manual, "make "+name+" again: it gave up after such refusals", name+" is made again"
			ch.Commands = []string{fmt.Sprintf("kubectl -n %s get %s -o json | jq 'del(%s)' | kubectl replace --force -f -", c.Pod.Namespace, name, edit.OfOneJob)}
		}
	}
	return ch
}

// doubted says why nobody can tell whether another try helps; empty where it is told.
func doubted(t *kubelet.Turned) string {
	if !t.Unknown() {
		return ""
	}
	return "whether the next one is taken nobody can tell: what the kubelet refuses by these words is not known"
}

func gaveUp(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(k batchv1.JobCondition) bool {
		return k.Type == batchv1.JobFailed && k.Status == corev1.ConditionTrue
	})
}

// recreate makes the bare pod again, and has the scheduler choose its node.
func recreate(c *edit.Workload, title string) edit.Change {
	ch := edit.Change{Kind: diagnosis.RecreatePod, Cause: diagnosis.KubeletAdmissionRefused, Minutes: 1, Risk: diagnosis.LowRisk, Title: title}
	if _, admitted := view.AdmittedBy(c.Pod, c.Cluster.State.QueuedWorkloads); admitted {
		c.MakeAgain(&ch, c.Pod, "pod/"+c.Pod.Name, map[string]any{"nodeName": nil})
		return ch
	}
	ch.Detail = func(ch *edit.Change) {
		ns, name := c.Pod.Namespace, c.Pod.Name
		ch.Steps = append(ch.Steps, "recreate pod/"+name+" without its node")
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get pod %s -o json | jq 'del(.spec.nodeName, .status, .metadata.uid, .metadata.resourceVersion)' | kubectl replace --force -f -", ns, name))
		ch.Actions = append(ch.Actions, diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: view.PodTarget(c.Pod), Patch: diagnosis.MustJSON(map[string]any{"spec": map[string]any{"nodeName": nil}})})
	}
	return ch
}

// freely has the scheduler choose the node of what names it by hand.
func freely(c *edit.Workload, t *kubelet.Turned) edit.Change {
	if bare(c) {
		return recreate(c, fmt.Sprintf("make pod/%s again without nodeName %s: the scheduler chooses", c.Pod.Name, t.On))
	}
	ch := edit.Change{Kind: diagnosis.ChangeRequest, Adds: true, Minutes: 1, Risk: diagnosis.MediumRisk, Title: fmt.Sprintf("take nodeName %s out of %s: the scheduler chooses", t.On, c.WorkloadName())}
	c.EditTemplate(&ch, map[string]any{"nodeName": nil}, false)
	return ch
}

// leaveOutTrial is for the pod by which the GPU Operator tries its device plugin: nobody is evicted for that.
func leaveOutTrial(c *edit.Workload, t *kubelet.Turned) edit.Change {
	policy := "NAME"
	if of := c.Cluster.State.ClusterPolicies; len(of) > 0 {
		policy = of[0].GetName()
	}
	ch := edit.LookAt(diagnosis.KubeletAdmissionRefused, "let the GPU Operator leave out the trial of its device plugin, or wait until a GPU of "+t.On+" is free for it", "the operator makes the pod again by a rule of its own until it gets a GPU, and who holds GPUs there shows that the device plugin gives them",
		fmt.Sprintf(`kubectl patch clusterpolicy %s --type merge -p '{"spec":{"validator":{"plugin":{"env":[{"name":"WITH_WORKLOAD","value":"false"}]}}}}'  # in place of what stands in that list now`, policy),
		fmt.Sprintf("kubectl -n %s get pods -o wide --field-selector spec.nodeName=%s  # its validator is Ready then", c.Pod.Namespace, t.On))
	ch.Minutes, ch.NeedlessOn = 5, func(*view.Node) bool { return true }
	return ch
}

// askOnce leaves the devices to the containers that run on.
func askOnce(c *edit.Workload, t *kubelet.Turned) edit.Change {
	return c.EditContainers(edit.Change{Kind: diagnosis.ChangeRequest, Minutes: 1, Risk: diagnosis.MediumRisk, Title: fmt.Sprintf("ask for no GPU in init container %s of %s", t.Init, c.WorkloadName())}, func(containers []corev1.Container) {
		for i := range containers {
			if containers[i].Name == t.Init {
				for _, a := range c.Asks {
					delete(containers[i].Resources.Limits, a.Resource)
					delete(containers[i].Resources.Requests, a.Resource)
				}
			}
		}
	})
}

func waitForRelease(_ *edit.Workload, t *kubelet.Turned) edit.Change {
	return edit.Change{Kind: diagnosis.Wait, Manual: true, Risk: diagnosis.NoRisk, Minutes: 1, Victims: slices.DeleteFunc(slices.Clone(t.Before), view.Ended), Until: view.PodList(t.Before) + " has left and its devices are given back",
		Title: "wait until " + view.PodList(t.Before) + " has given its devices back", Commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", t.Before[0].Namespace, t.Before[0].Name)}}
}

// closeNode keeps pods off a node that refuses them, for its GPU. It makes room only where
// another node has some.
func closeNode(c *edit.Workload, t *kubelet.Turned) edit.Change {
	ch := mend.Quarantine(t.Node)
	ch.Cause, ch.On = diagnosis.KubeletAdmissionRefused, t.Node
	ch.Title = fmt.Sprintf("quarantine %s, which refuses every such pod: cordon it, and have %s seen to", t.On, mend.SickText(t.Node))
	if elsewhere(c, t) {
		ch.Untestable = ""
	}
	return ch
}

// offeredElsewhere says whether another node has what is asked, held or not: to close the only one that has, of which nothing
// but its device plugin says that a GPU is sick, keeps the pod from all, and every other pod from the machine.
func offeredElsewhere(c *edit.Workload, t *kubelet.Turned) bool {
	lacks := func(n *view.Node, name corev1.ResourceName) bool {
		return strings.Contains(string(name), "/") && n.Allocatable(name) == 0
	}
	return slices.ContainsFunc(c.Cluster.SortedNodes(), func(n *view.Node) bool {
		return n.Name != t.On && !slices.ContainsFunc(view.SortedNames(c.Wants), func(name corev1.ResourceName) bool { return lacks(n, name) })
	})
}

// elsewhere says whether another node than the one that refused would take the pod now.
func elsewhere(c *edit.Workload, t *kubelet.Turned) bool {
	return slices.ContainsFunc(c.Verdict.Feasible(), func(name string) bool { return name != t.On })
}

// cordonFirst is first aid where owners make pod after pod for a node that refuses them: by
// count it looks the emptiest.
func cordonFirst(_ *edit.Workload, t *kubelet.Turned) edit.Change {
	ch := edit.Change{Kind: diagnosis.Manual, Manual: true, Minutes: 1, Risk: diagnosis.MediumRisk, Title: fmt.Sprintf("cordon %s as first aid: it has refused %d pods", t.On, len(t.Here)),
		Untestable: "it keeps pods off " + t.On + " until that is mended, and makes no room",
		Commands:   []string{"kubectl cordon " + t.On}}
	seen := map[string]bool{}
	for _, p := range t.Here {
		if metav1.GetControllerOfNoCopy(p) != nil && !seen[p.Namespace] {
			seen[p.Namespace] = true
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s delete pods --field-selector status.phase=Failed,spec.nodeName=%s  # what was refused stays behind", p.Namespace, t.On))
		}
	}
	return ch
}

func restartKubelet(n *view.Node) edit.Change {
	return edit.Change{Kind: diagnosis.RestartKubelet, Cause: diagnosis.KubeletAdmissionRefused, Manual: true, Minutes: 3, Risk: diagnosis.MediumRisk, Title: "restart the kubelet of " + n.Name,
		Untestable: "what a kubelet counts is in no object; running pods keep running",
		Steps:      []string{"restart the kubelet of " + n.Name, "wait until the device plugin has registered again"},
		Commands:   []string{fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host systemctl restart kubelet", n.Name), "kubectl get node " + n.Name + " -w"}}
}

// freeSocket names who would have to leave for a whole NUMA node to be free. Which of them
// lie together no object tells.
func freeSocket(_ *edit.Workload, t *kubelet.Turned) edit.Change {
	ch := edit.Change{Kind: diagnosis.Manual, Manual: true, Minutes: 10, Risk: diagnosis.MediumRisk, Title: "free a socket of " + t.On, Untestable: "which GPUs and CPUs lie together is in no object read here: the node tells"}
	debug := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host ", t.On)
	ch.Commands = []string{debug + "nvidia-smi topo -m", debug + "lscpu", debug + "cat /var/lib/kubelet/cpu_manager_state"}
	ch.Steps = []string{"see which GPUs and CPUs of " + t.On + " lie on one NUMA node, and who holds them"}
	for _, p := range t.Node.Pods {
		if view.HoldsGPU(t.Node.Requests[p]) {
			ch.Steps = append(ch.Steps, fmt.Sprintf("%s/%s holds GPUs there", p.Namespace, p.Name))
			ch.Commands = append(ch.Commands, "# if it holds the socket: "+edit.EvictCommand(p))
		}
	}
	ch.StopsUnknown = len(ch.Steps) > 1 // some of them, once somebody has looked
	return ch
}

// leaveOutInit is for init containers that ask whole CPUs: the kubelet gives them theirs first,
// of any NUMA node, and the others then find too few beside them (kubernetes/kubernetes#110306).
func leaveOutInit(c *edit.Workload, t *kubelet.Turned) (edit.Change, bool) {
	for _, init := range c.Pod.Spec.InitContainers {
		cpu := init.Resources.Requests[corev1.ResourceCPU]
		limit := init.Resources.Limits[corev1.ResourceCPU]
		if cpu.IsZero() || cpu.MilliValue()%1000 != 0 || cpu.Cmp(limit) != 0 || init.RestartPolicy != nil {
			continue
		}
		ch := edit.Change{Kind: diagnosis.ChangeRequest, Manual: true, Minutes: 1, Risk: diagnosis.MediumRisk, Title: fmt.Sprintf("have init container %s of %s ask for no whole CPUs: the kubelet gives it those of one NUMA node first", init.Name, c.WorkloadName()),
			Untestable: "where the CPUs lie that the kubelet gives is in no object", Drained: c.Cluster.Running(c.Incident.Workload), StopsUnknown: true}
		ch.Commands = []string{fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host cat /var/lib/kubelet/cpu_manager_state", t.On), c.EditByHand("no whole CPUs for init container " + init.Name + ": 900m, say")}
		return ch, true
	}
	return edit.Change{}, false
}

// newerKubelet is for a pod that asks for nothing: no change of it helps.
func newerKubelet(t *kubelet.Turned) edit.Change {
	return edit.Change{Kind: diagnosis.Manual, Manual: true, Minutes: 15, Risk: diagnosis.MediumRisk, Title: fmt.Sprintf("give %s a newer kubelet, or another topology policy: the pod asks for nothing that could be aligned", t.On),
		Untestable: "what a kubelet aligns nobody can try on a copy",
		Commands:   []string{"kubectl get node " + t.On + " -o jsonpath='{.status.nodeInfo.kubeletVersion}'", "# on the machine: topologyManagerPolicy in its kubelet's configuration (best-effort refuses nobody), then restart the kubelet"}}
}

// askAligned asks for what one NUMA node has.
func askAligned(c *edit.Workload, t *kubelet.Turned) edit.Change {
	asked, change := "GPUs and CPUs", "fewer GPUs or CPUs"
	if len(c.Asks) == 0 {
		asked, change = "CPUs and memory", "fewer whole CPUs, or less memory"
	}
	ch := edit.Change{Kind: diagnosis.ChangeRequest, Manual: true, Minutes: 2, Risk: diagnosis.MediumRisk, Title: "ask for no more " + asked + " than one NUMA node of " + t.On + " has, in " + c.WorkloadName(),
		Untestable: "what one NUMA node has is in no object read here", Drained: c.Cluster.Running(c.Incident.Workload), StopsUnknown: true}
	debug := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host ", t.On)
	if len(c.Asks) > 0 {
		ch.Commands = []string{debug + "nvidia-smi topo -m"}
	}
	switch b := c.Kubelet.Beyond(t); {
	case b != nil:
		change = fmt.Sprintf("at most %s %s", b.Most.String(), b.Resource)
		ch.Title = fmt.Sprintf("have %s ask for %s: no NUMA node of %s has more", c.WorkloadName(), change, t.On)
		ch.Untestable = "what a kubelet aligns nobody can try on a copy"
		ch.Commands = []string{"kubectl get noderesourcetopologies.topology.node.k8s.io " + t.On + " -o yaml"}
	case !t.Occupied():
		ch.Commands = append(ch.Commands, debug+"lscpu  # the CPUs of each NUMA node", debug+"grep -A2 -i -e topologyManager -e reserved /var/lib/kubelet/config.yaml")
	}
	ch.Commands = append(ch.Commands, c.EditByHand(change))
	return ch
}
