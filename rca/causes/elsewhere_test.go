package causes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/rcatest"
)

func gated(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}}
		for _, name := range names {
			p.Spec.SchedulingGates = append(p.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: name})
		}
	}
}

func by(scheduler string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulerName = scheduler }
}

// silent is a pod that no scheduler has spoken of.
func silent(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} }

func (w *world) queued(name, owner string, spec map[string]any, conditions ...any) {
	meta := map[string]any{"namespace": "ml", "name": name}
	if owner != "" {
		meta["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "w", "uid": owner}}
	}
	w.QueuedWorkloads = append(w.QueuedWorkloads, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": meta, "spec": spec, "status": map[string]any{"conditions": conditions}}})
}

func unmet(kind, message string) map[string]any {
	return map[string]any{"type": kind, "status": "False", "reason": "Pending", "message": message}
}

// Gates and queues hold a pod before a scheduler sees it.
func TestGatesAndQueues(t *testing.T) {
	const queue = "kueue.x-k8s.io/admission"
	start := func(w *world) { w.gpuNode(l4("n1", 1)) }
	rows{
		"gates by name": {func(w *world) {
			start(w)
			w.pod("w", "", "nvidia.com/gpu", 1, gated("a", "b"))
		}, `
SchedulingGated proven : held by scheduling gates: a, b
  Pod/ml/w: spec.schedulingGates: a, b
`},
		"a queue that nothing is known of": {func(w *world) {
			start(w)
			w.queued("other", "other", nil, unmet("QuotaReserved", "no"))
			w.queued("nobody's", "", nil, unmet("QuotaReserved", "no"))
			w.pod("w", "", "nvidia.com/gpu", 1, gated(queue))
		}, `
QueueNotAdmitted proven : its queue (Kueue) has not admitted it
  Pod/ml/w: gate kueue.x-k8s.io/admission
`},
		"a queue with its gate of places": {func(w *world) {
			start(w)
			w.pod("w", "", "nvidia.com/gpu", 1, gated(queues.TopologyGate, queue))
		}, `
QueueNotAdmitted proven : its queue (Kueue) has not admitted it
  Pod/ml/w: gate kueue.x-k8s.io/admission
`},
		"its gate of places is left": {func(w *world) {
			start(w)
			w.pod("w", "", "nvidia.com/gpu", 1, gated(queues.TopologyGate))
		}, `
SchedulingGated proven : held by scheduling gates: kueue.x-k8s.io/topology
  Pod/ml/w: spec.schedulingGates: kueue.x-k8s.io/topology
`},
		"a queue beside another gate": {func(w *world) {
			start(w)
			w.queued("mine", "w", nil, unmet("Admitted", "The workload has no reservation"), unmet("Evicted", "never"), unmet("QuotaReserved", "couldn't assign flavors to pod set main: insufficient quota\n for nvidia.com/gpu"))
			w.pod("w", "", "nvidia.com/gpu", 1, gated(queue, "a"), func(p *corev1.Pod) { p.Labels["kueue.x-k8s.io/queue-name"] = "team" })
		}, `
SchedulingGated proven : held by scheduling gates: a
  Pod/ml/w: spec.schedulingGates: a
QueueNotAdmitted proven : its queue (Kueue) has not admitted it: insufficient quota for nvidia.com/gpu
  Pod/ml/w: gate kueue.x-k8s.io/admission
  Pod/ml/w: queue team
  Workload/ml/mine: QuotaReserved=False, Pending: couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu
`},
	}.run(t)
}

// Who schedules, and whether anybody does.
func TestSchedulers(t *testing.T) {
	start := func(w *world) {
		w.gpuNode(l4("n1", 1))
		w.pod("h", "n1", "nvidia.com/gpu", 1)
	}
	event := func(w *world, of, by, reason, message string, edits ...func(*corev1.Event)) {
		e := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: of}, Reason: reason, Message: message, ReportingController: by, LastTimestamp: metav1.Time{Time: rcatest.Noon}}
		for _, edit := range edits {
			edit(e)
		}
		w.Events = append(w.Events, e)
	}
	rows{
		"nobody answers to the name": {func(w *world) {
			start(w)
			w.pod("w", "", "nvidia.com/gpu", 1, by("mine"), silent)
		}, `
GPUsInUse likely n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
SchedulerMissing proven : no scheduler answers to schedulerName "mine"
  Pod/ml/w: schedulerName "mine", no PodScheduled condition
  Pod/ml/w: no pod of that schedulerName was ever bound or judged, no event is from it
`},
		"pods were not read, so perhaps somebody does": {func(w *world) {
			start(w)
			w.Unread["Pod"] = "some were left out"
			w.pod("w", "", "nvidia.com/gpu", 1, by("mine"), silent)
		}, `
GPUsInUse likely n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
SchedulerMissing likely : no scheduler answers to schedulerName "mine"
  Pod/ml/w: schedulerName "mine", no PodScheduled condition
  Pod/ml/w: no pod of that schedulerName was ever bound or judged, no event is from it
`},
		"it has judged another": {func(w *world) {
			start(w)
			w.pod("other", "", "nvidia.com/gpu", 1, by("mine"))
			w.pod("w", "", "nvidia.com/gpu", 1, by("mine"), silent)
		}, `
GPUsInUse likely n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"a gate of another is no word": {func(w *world) {
			start(w)
			w.pod("other", "", "nvidia.com/gpu", 2, by("mine"), gated("a"))
			w.pod("w", "", "nvidia.com/gpu", 1, by("mine"), silent)
		}, `
GPUsInUse likely n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
SchedulerMissing proven : no scheduler answers to schedulerName "mine"
  Pod/ml/w: schedulerName "mine", no PodScheduled condition
  Pod/ml/w: no pod of that schedulerName was ever bound or judged, no event is from it
`},
		"it has written an event": {func(w *world) {
			start(w)
			event(w, "other", "", "Scheduled", "", func(e *corev1.Event) { e.Source.Component = "mine" })
			w.pod("w", "", "nvidia.com/gpu", 1, by("mine"), silent)
		}, `
GPUsInUse likely n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"what is only possible is no likelier under another's name": {func(w *world) {
			w.unreported(sim.Node{Name: "n1", Model: a100, GPUs: 2, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb"), sim.All(a100, "1g.5gb")}})
			w.pod("h", "n1", "nvidia.com/mig-1g.5gb", 2)
			w.pod("w", "", "nvidia.com/mig-2g.10gb", 1, by("mine"), silent)
		}, `
MIGLayoutMismatch possible n1: does not offer 2g.10gb
  Node/n1: advertises nvidia.com/mig-1g.5gb=14
  Node/n1: no NodeGeometry, so positions are unknown
SchedulerMissing proven : no scheduler answers to schedulerName "mine"
  Pod/ml/w: schedulerName "mine", no PodScheduled condition
  Pod/ml/w: no pod of that schedulerName was ever bound or judged, no event is from it
`},
		"a dump of manifests has no word of the default scheduler": {func(w *world) {
			start(w)
			w.pod("w", "", "nvidia.com/gpu", 1, silent)
		}, `
GPUsInUse proven n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
`},
		"on a live cluster it is given a minute": {func(w *world) {
			start(w)
			w.Live = true
			w.Pods = nil
			w.pod("w", "", "nvidia.com/gpu", 2, silent).CreationTimestamp = metav1.Time{Time: rcatest.Noon.Add(-time.Minute + time.Second)}
		}, `
GPURequestTooLarge proven n1: has fewer GPUs than one pod asks for
  Node/n1: capacity nvidia.com/gpu=1, one pod asks for 2
`},
		"and no more": {func(w *world) {
			start(w)
			w.Live = true
			w.Pods = nil
			w.pod("w", "", "nvidia.com/gpu", 2, silent).CreationTimestamp = metav1.Time{Time: rcatest.Noon.Add(-time.Minute)}
		}, `
GPURequestTooLarge proven n1: has fewer GPUs than one pod asks for
  Node/n1: capacity nvidia.com/gpu=1, one pod asks for 2
SchedulerMissing likely : no scheduler answers to schedulerName "default-scheduler"
  Pod/ml/w: schedulerName "default-scheduler", no PodScheduled condition
  Pod/ml/w: no pod of that schedulerName was ever bound or judged, no event is from it
`},
		"what the kubelet refused was scheduled": {func(w *world) {
			start(w)
			w.pod("w", "n1", "nvidia.com/gpu", 1, by("mine")).Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}
		}, `
GPUsInUse likely n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
KubeletAdmissionRefused proven : the kubelet refused it at admission: OutOfcpu on n1: scheduler mine chose the node, and default-scheduler chose it for ml/h: neither waits for the other (now 95 of 96 cpu are free)
  Pod/ml/w: OutOfcpu: 
  Node/n1: nvidia.com/gpu: capacity 1, allocatable 1, 0 free by the requests of its pods
  Node/n1: cpu: allocatable 96, 95 free by the requests of its pods
  Node/n1: Ready since 2026-11-20 11:00:00 UTC
  Pod/ml/h: asks for the same there, and schedulerName is default-scheduler
`},
		"another decides, and what it said is quoted": {func(w *world) {
			start(w)
			w.pod("w", "", "nvidia.com/gpu", 1, by("volcano"))
			w.Pods[1].Status.Conditions[0].Message = "all\nnodes\x1b[31m are unavailable"
			event(w, "w", "volcano", "FailedScheduling", "older", func(e *corev1.Event) { e.LastTimestamp.Time = rcatest.Noon.Add(-time.Minute) })
			event(w, "w", "volcano", "FailedScheduling", "newer")
			event(w, "w", "volcano", "FailedScheduling", "the older", func(e *corev1.Event) { e.LastTimestamp.Time = rcatest.Noon.Add(-time.Hour) })
			event(w, "w", "volcano", "Scheduled", "no refusal")
			event(w, "w", "default-scheduler", "FailedScheduling", "its own filters say so")
			event(w, "w", "", "FailedScheduling", "nobody's")
			event(w, "w", "karpenter", "FailedScheduling", strings.Repeat("long ", 60))
			event(w, "v", "volcano", "Unschedulable", "of another")
			event(w, "w", "volcano", "NotReady", "of the one before", func(e *corev1.Event) { e.InvolvedObject.UID = "before" })
			event(w, "w", "volcano", "NotReady", "of another namespace", func(e *corev1.Event) { e.InvolvedObject.Namespace = "x" })
		}, `
GPUsInUse possible n1: all whole GPUs are held
  Node/n1: allocatable nvidia.com/gpu=1, requested 1
  Pod/ml/w: karpenter says FailedScheduling: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long…
  Pod/ml/w: volcano says FailedScheduling: newer
  Pod/ml/w: volcano says Unschedulable: all nodes[31m are unavailable
SchedulerRefused proven : volcano decides, and says Unschedulable: all nodes[31m are unavailable
  Pod/ml/w: volcano says Unschedulable: all nodes[31m are unavailable
AutoscalerCannotHelp likely : Karpenter looked and brings no node: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long…
  Pod/ml/w: karpenter says FailedScheduling: long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long long
`},
		"another decides, and could": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("w", "", "nvidia.com/gpu", 1, by("volcano"))
		}, `
Unknown possible : the default scheduler's filters accept n1 now; volcano decides by its own
  Pod/ml/w: schedulerName volcano, waits, although the default scheduler would take n1
`},
		"the scheduler fails behind its filters": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.pod("w", "", "nvidia.com/gpu", 1)
			w.Pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodInitialized, Reason: corev1.PodReasonSchedulerError, Message: "other"}, {Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError, Message: "binding  volumes: timed out"}}
		}, `
Unknown possible : the scheduler fails on it: binding volumes: timed out; the scheduler's filters accept n1 now
  Pod/ml/w: PodScheduled: SchedulerError: binding volumes: timed out
`},
		"it fails, and another node lacks something": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.gpuNode(l4("n2", 1))
			w.pod("h", "n2", "nvidia.com/gpu", 1)
			w.pod("w", "", "nvidia.com/gpu", 1)
			w.Pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError, Message: "timed out"}}
		}, `
GPUsInUse proven n2: all whole GPUs are held
  Node/n2: allocatable nvidia.com/gpu=1, requested 1
Unknown possible : the scheduler fails on it: timed out; the scheduler's filters accept n1 now
  Pod/ml/w: PodScheduled: SchedulerError: timed out
`},
		"nothing blocks it": {func(w *world) {
			w.gpuNode(l4("n1", 1))
			w.gpuNode(l4("n2", 1))
			w.pod("w", "", "nvidia.com/gpu", 1)
		}, `
Unknown possible : the scheduler's filters accept n1 now; ruled out: every filter on it
  Pod/ml/w: waits, although n1, n2 would take it
`},
	}.run(t)
}

// Whose word counts more than the default scheduler's plugins.
func TestElsewhere(t *testing.T) {
	for name, c := range map[string]struct {
		scheduler, message, want string
		speaks                   bool
	}{
		"the default":                            {"", "all nodes are unavailable", "", true},
		"the default by name":                    {"default-scheduler", "all nodes are unavailable", "", true},
		"one whose code is another":              {"volcano", "", "volcano", true},
		"one that speaks like the default":       {"mine", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", "", true},
		"one that speaks otherwise":              {"mine", "no quota", "mine", true},
		"one that says nothing":                  {"mine", "", "", true},
		"one that nobody has ever heard of else": {"volcano", "", "", false},
	} {
		w := newWorld()
		w.gpuNode(l4("n1", 1))
		w.pod("h", "n1", "nvidia.com/gpu", 1)
		p := w.pod("w", "", "nvidia.com/gpu", 1, by(c.scheduler))
		if c.speaks {
			p.Status.Conditions[0].Message = c.message
		} else {
			silent(p)
		}
		k := w.open(t)
		k.Judge()
		if got := k.Elsewhere(p); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
