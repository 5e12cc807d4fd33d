package retry

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
)

const few = "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected"

// halves is node n with two whole GPUs, and m with as many.
func halves(w *world) {
	for _, name := range []string{"n", "m"} {
		w.AddNode(sim.Node{Name: name, GPUs: 2, MIGOff: []int{0, 1}})
	}
}

// also adds pods of node n that its kubelet refused.
func also(w *world, count int) {
	for i := range count {
		p := w.Wait.DeepCopy()
		p.Name, p.UID = fmt.Sprint("other", i), types.UID(fmt.Sprint(i))
		at := metav1.NewTime(rcatest.Noon)
		p.Spec.NodeName, p.Status = "n", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError", StartTime: &at}
		p.Namespace = string(rune('a' + i%2))
		p.OwnerReferences = rcatest.Victim("x", 0, 0, 0, "x").OwnerReferences
		w.Pods = append(w.Pods, p)
	}
}

// told is changes in lines: on which node each would be no proof, what is done behind it, and how
// long it takes.
func told(all []edit.Change) string {
	var out []string
	for _, ch := range all {
		text := fmt.Sprintf("%s in %d: %s", ch.Kind, ch.Minutes, ch.Title)
		if ch.Manual {
			text += ", by hand"
		}
		if ch.Not != "" {
			text += ", not on " + ch.Not
		}
		for _, k := range ch.With {
			text += " + " + k.Title
		}
		for _, v := range ch.Victims {
			text += ", waits for " + v.Name
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n")
}

// What stands behind a refusal decides what helps, in which order, and whether to come to the same
// node again is any proof.
func TestWhatHelpsByWhatStoodBehind(t *testing.T) {
	const bare, waits = "RecreatePod in 1: make pod/w again, which the kubelet of n has refused", "Wait in 1: wait until replicaset/rs makes another pod, by hand"
	const plugin, kubelet = "RestartDevicePlugin in 1: restart the device plugin on n, by hand", "RestartKubelet in 3: restart the kubelet of n, by hand"
	const boot = "RebootNode in 15: reboot n, or reset its GPUs, by hand"
	const behind = " + make pod/w again, which the kubelet of n has refused"
	beside := func(w *world, edit func(*corev1.Pod)) {
		edit(w.AddHolder("x", "n", "nvidia.com/gpu", 0))
	}
	leaves := func(w *world) {
		beside(w, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon} })
	}
	running := func(w *world, since time.Duration) {
		beside(w, func(p *corev1.Pod) {
			p.OwnerReferences[0].Kind, p.Spec.Containers[0].Name = "DaemonSet", "nvidia-device-plugin"
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nvidia-device-plugin", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(rcatest.Noon.Add(since))}}}}
		})
	}
	for name, tc := range map[string]struct {
		kind, reason, message string
		fill                  func(*world)
		want                  []string
	}{
		"placed by hand, of nobody": {"Pod", "", few, func(w *world) {
			w.Wait.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"spec":{"nodeName":"n"}}`}
		}, []string{"RecreatePod in 1: make pod/w again without nodeName n: the scheduler chooses"}},
		"the operator's trial": {"DaemonSet", "", few, func(w *world) {
			w.Wait.Labels = map[string]string{"app": "nvidia-device-plugin-validator"}
			for _, name := range []string{"x", "y"} {
				w.AddHolder(name, "n", "nvidia.com/gpu", 0)
			}
		}, []string{"Manual in 5: let the GPU Operator leave out the trial of its device plugin, or wait until a GPU of n is free for it, by hand"}},
		"an init container asks": {"Pod", "", few, func(w *world) {
			w.Nodes[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
			w.Wait.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", "1")}}}
		}, []string{"ChangeRequest in 1: ask for no GPU in init container i of pod/w", bare}},
		"one is leaving":              {"Pod", "", few, leaves, []string{"Wait in 1: wait until a/x has given its devices back, by hand + make pod/w again, which the kubelet of n has refused, waits for x", bare + ", not on n", plugin + behind, kubelet + behind}},
		"one is leaving, of an owner": {"ReplicaSet", "", few, leaves, []string{"Wait in 1: wait until a/x has given its devices back, by hand, waits for x", waits + ", not on n", plugin, kubelet}},
		"the kubelet is behind": {"Pod", "", few, func(w *world) {
			w.Nodes[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
		}, []string{bare, plugin, kubelet}},
		"its own count":                {"Pod", "OutOfcpu", "", nil, []string{bare, kubelet}},
		"two schedulers":               {"Pod", "", few, func(w *world) { beside(w, func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" }) }, []string{bare, "Manual in 10: give n to one scheduler alone, by hand"}},
		"sick devices":                 {"Pod", "", "unhealthy devices", func(w *world) { w.Geometries["n"].Report.GPUs[0].Healthy = false }, []string{bare + ", not on n", plugin + " + make pod/w again, which the kubelet of n has refused", "QuarantineGPU in 2: quarantine n, which refuses every such pod: cordon it, and have GPU 0 seen to + make pod/w again, which the kubelet of n has refused", boot + behind}},
		"sick, and no room elsewhere":  {"Pod", "", "unhealthy devices", func(w *world) { w.Geometries["n"].Report.GPUs[0].Healthy = false; w.Nodes = w.Nodes[:1] }, []string{bare + ", not on n", plugin + " + make pod/w again, which the kubelet of n has refused", "QuarantineGPU in 2: quarantine n, which refuses every such pod: cordon it, and have GPU 0 seen to", boot + behind}},
		"sick, and nobody names it":    {"Pod", "", "unhealthy devices", func(w *world) { w.Nodes = w.Nodes[:1] }, []string{bare, plugin + " + make pod/w again, which the kubelet of n has refused", boot}},
		"sick until a restart":         {"Pod", "", "unhealthy devices", func(w *world) { running(w, time.Minute) }, []string{bare}},
		"on no NUMA node":              {"Pod", "TopologyAffinityError", "", nil, []string{bare + ", not on n", bare + ": nobody else holds GPUs there now, or CPUs of its own", "ChangeRequest in 2: ask for no more GPUs and CPUs than one NUMA node of n has, in pod/w, by hand"}},
		"a storm":                      {"Pod", "OutOfcpu", "", func(w *world) { also(w, 2) }, []string{bare + ", not on n", kubelet + behind, "Manual in 1: cordon n as first aid: it has refused 3 pods, by hand"}},
		"a plugin's own words":         {"ReplicaSet", "", "Allocate failed due to rpc error: code = Unknown desc = no slot", func(w *world) { also(w, 2); w.Nodes = w.Nodes[:1] }, []string{waits + ", not on n", "Manual in 5: see why the device plugin on n does not give it its device; replicaset/rs makes another pod meanwhile, by hand"}},
		"a bare pod's, room elsewhere": {"Pod", "", "Allocate failed due to rpc error: code = Unknown desc = no slot", func(w *world) { also(w, 2) }, []string{bare + ", not on n", "Manual in 5: see why the device plugin on n does not give it its device, by hand", "Manual in 1: cordon n as first aid: it has refused 3 pods, by hand"}},
		"a forbidden sysctl":           {"Pod", "SysctlForbidden", "", nil, []string{"ChangeRequest in 2: make pod/w without the sysctl in securityContext.sysctls that is refused, by hand", "Manual in 10: allow that sysctl in allowedUnsafeSysctls on n, by hand" + behind}},
		"another OS":                   {"Pod", "PodOSSelectorNodeLabelDoesNotMatch", "", nil, []string{"ChangeRequest in 2: make pod/w with the operating system of its image in nodeSelector kubernetes.io/os, by hand"}},
		"no storm":                     {"Pod", "OutOfcpu", "", func(w *world) { also(w, 1) }, []string{bare, kubelet}},
		"told by the node":             {"Pod", "OutOfcpu", "", func(w *world) { w.Nodes[0].Spec.Unschedulable = true }, []string{bare}},
		"lost, told by the node":       {"Pod", "", "GPU is lost", func(w *world) { w.Nodes[0].Spec.Unschedulable = true }, []string{bare + ", not on n", "QuarantineGPU in 1: quarantine n, which refuses every such pod: cordon it, and have its GPUs seen to + make pod/w again, which the kubelet of n has refused", boot + behind, "RestartDevicePlugin in 2: restart the device plugin on n, by hand" + behind}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			halves(w)
			w.Asking(list("nvidia.com/gpu", "1"))
			if tc.fill != nil {
				tc.fill(w)
			}
			reason := cmp.Or(tc.reason, "UnexpectedAdmissionError")
			if got, want := told(Again(refusedAs(t, w, tc.kind, reason, tc.message))), strings.Join(tc.want, "\n"); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Who makes another pod for one that was refused is waited for; a Job that has given up is made
// again, and of other operators' Jobs a person has to see.
func TestWhoMakesAnotherPod(t *testing.T) {
	yes := true
	job := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) func(*world) {
		return func(w *world) {
			w.Jobs = []*batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "j", UID: "j"}, Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: kind, Status: status}}}}}
		}
	}
	const waits = "Wait in 1: wait until job/j makes another pod, by hand"
	for name, tc := range map[string]struct {
		api, kind string
		fill      func(*world)
		want      string
	}{
		"a Job":                    {"batch/v1", "Job", job(batchv1.JobSuspended, corev1.ConditionTrue), waits},
		"a Job that gave up":       {"batch/v1", "Job", job(batchv1.JobFailed, corev1.ConditionTrue), "Manual in 1: make job/j again: it gave up after such refusals, by hand"},
		"a Job that did not":       {"batch/v1", "Job", job(batchv1.JobFailed, corev1.ConditionFalse), waits},
		"one that is not read":     {"batch/v1", "Job", func(*world) {}, waits},
		"Volcano's":                {"batch.volcano.sh/v1alpha1", "Job", func(*world) {}, "Manual in 1: see whether job/j makes another pod, and make it again where it does not, by hand"},
		"an operator's":            {"kubeflow.org/v1", "PyTorchJob", func(*world) {}, "Manual in 1: see whether pytorchjob/j makes another pod, and make it again where it does not, by hand"},
		"another's":                {"x/v1", "Set", func(*world) {}, "Wait in 1: wait until set/j makes another pod, by hand"},
		"another's, which has not": {"x/v1", "Set", func(w *world) { w.Now = w.Now.Add(time.Hour) }, "Manual in 1: see whether set/j makes another pod, and make it again where it does not, by hand"},
		"a Job, which has not yet": {"batch/v1", "Job", func(w *world) { w.Now = w.Now.Add(time.Hour) }, waits},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			halves(w)
			tc.fill(w)
			w.Wait.OwnerReferences = []metav1.OwnerReference{{APIVersion: tc.api, Kind: tc.kind, Name: "j", UID: "j", Controller: &yes}}
			c := refused(t, w, "Pod", "something")
			if got, _, _ := strings.Cut(told(Again(c)), "\n"); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// An init container asks for none of the devices any more; the others keep theirs.
func TestDevicesAreAskedForOnce(t *testing.T) {
	w := newWorld()
	halves(w)
	w.Nodes[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
	asks := corev1.ResourceRequirements{Requests: list("nvidia.com/gpu", "1", "cpu", "1"), Limits: list("nvidia.com/gpu", "1")}
	w.Wait.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: asks}}
	c := refused(t, w, "Pod", few)
	p := w.Wait.DeepCopy()
	Again(c)[0].Pod(p)
	init, main := p.Spec.InitContainers[0].Resources, p.Spec.Containers[0].Resources
	if len(init.Limits) != 0 || len(init.Requests) != 1 || main.Limits.Name("nvidia.com/gpu", "").Value() != 1 {
		t.Errorf("%+v, %+v", init, main)
	}
}

// To free a socket a person needs to know who holds GPUs there; of a storm what is to be cleared
// away is said once a namespace, where owners make pods again.
func TestWhatAPersonIsTold(t *testing.T) {
	w := newWorld()
	halves(w)
	w.AddHolder("h", "n", "nvidia.com/gpu", 0)
	w.AddHolder("plain", "n", "cpu", 0)
	all := Again(refusedAs(t, w, "Pod", "TopologyAffinityError", ""))
	if got := strings.Join(all[1].Steps, "; "); got != "see which GPUs and CPUs of n lie on one NUMA node, and who holds them; a/h holds GPUs there" || !all[1].StopsUnknown || len(all[1].Commands) != 4 {
		t.Errorf("%s, %q", got, all[1].Commands)
	}
	w = newWorld()
	halves(w)
	all = Again(refusedAs(t, w, "Pod", "TopologyAffinityError", ""))
	if len(all) != 3 || all[2].Kind != diagnosis.ChangeRequest || len(all[2].Commands) != 4 {
		t.Errorf("nobody is there to leave: %+v", all)
	}
	w.NodeTopologies = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "n"}, "zones": []any{map[string]any{"type": "Node", "resources": []any{map[string]any{"name": "nvidia.com/gpu", "allocatable": "1"}}}}}}}
	w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, corev1.Container{Name: "more", Resources: corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", "2")}})
	w.AddHolder("h", "n", "nvidia.com/gpu", 0)
	all = Again(refusedAs(t, w, "Pod", "TopologyAffinityError", ""))
	if len(all) != 2 || all[1].Title != "have pod/w ask for at most 1 nvidia.com/gpu: no NUMA node of n has more" {
		t.Errorf("whoever leaves, it does not fit: %+v", all)
	}
	w = newWorld()
	halves(w)
	also(w, 4)
	all = Again(refusedAs(t, w, "Pod", "OutOfcpu", ""))
	const clear = "delete pods --field-selector status.phase=Failed,spec.nodeName=n  # what was refused stays behind"
	if got := strings.Join(all[len(all)-1].Commands, "; "); got != "kubectl cordon n; kubectl -n a "+clear+"; kubectl -n b "+clear {
		t.Error(got)
	}
	if edittest.Told(all[0]) == "" || all[0].Cause != diagnosis.KubeletAdmissionRefused {
		t.Errorf("%+v", all[0])
	}
}
