package queues

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
)

// A Deployment answers to a scheduler's name by its own, as charts write them.
func TestWhoAnswersToASchedulerName(t *testing.T) {
	for _, tc := range []struct {
		namespace, deployment, scheduler string
		want                             bool
	}{
		{"koordinator-system", "koord-scheduler", "koord-scheduler", true},
		{"volcano-system", "volcano-scheduler", "volcano", true},
		{"hub", "user-scheduler", "hub-user-scheduler", true},
		{"team", "scheduler", "team", true},
		{"kube-system", "scheduler-plugins-scheduler", "scheduler-plugins", true},
		{"kube-system", "gpu-scheduler-main", "gpu-scheduler", true},
		{"yunikorn", "gpu-scheduler-admission-controller", "gpu-scheduler", false},
		{"volcano-system", "volcano-admission", "volcano", false},
		{"a", "scheduler", "b", false},
		{"a", "other-scheduler", "volcano", false},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: tc.deployment}}
		if got := answersTo(d, tc.scheduler); got != tc.want {
			t.Errorf("%s/%s answers to %q: %v", tc.namespace, tc.deployment, tc.scheduler, got)
		}
	}
}

// Why a pod of a scheduler's is not ready is what its container says; one that is says nothing.
func TestWhyASchedulerIsNotReady(t *testing.T) {
	waiting := func(reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "s", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
	}
	runs := corev1.ContainerStatus{Name: "s", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ready := runs
	ready.Ready = true
	for name, tc := range map[string]struct {
		of   corev1.ContainerStatus
		want string
	}{
		"it ends":          {waiting("CrashLoopBackOff"), "container s ends again and again"},
		"no image":         {waiting("ImagePullBackOff"), "container s: ImagePullBackOff"},
		"no reason":        {waiting(""), ""},
		"runs, not ready":  {runs, "container s runs and is not ready"},
		"ready":            {ready, ""},
		"nothing is known": {corev1.ContainerStatus{Name: "s"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{tc.of}}}
			r := notReady(&appsv1.Deployment{}, []*corev1.Pod{p})
			got := ""
			if r != nil {
				got = r.Why
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A scheduler that runs, and has said nothing of any pod, is not one that does not answer.
func TestASchedulerThatRunsAndSaysNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		scheduler, deployment string
		ready                 corev1.ConditionStatus
		want                  string
	}{
		"it runs":            {"yunikorn", "yunikorn-scheduler", corev1.ConditionTrue, `likely: s/p, which schedules for "yunikorn" by its name, runs, and has said nothing of any pod`},
		"it is not ready":    {"yunikorn", "yunikorn-scheduler", corev1.ConditionFalse, `proven: no scheduler answers to schedulerName "yunikorn"`},
		"another one's runs": {"yunikorn", "volcano-scheduler", corev1.ConditionTrue, `proven: no scheduler answers to schedulerName "yunikorn"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				w.AddNode(sim.Node{Name: "n"})
				w.Wait.Spec.SchedulerName = tc.scheduler
				owner := func(kind, of string) []metav1.OwnerReference {
					return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: of, Controller: new(true)}}
				}
				w.Deployments = append(w.Deployments, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: tc.deployment}})
				w.ReplicaSets = append(w.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "r", OwnerReferences: owner("Deployment", tc.deployment)}})
				w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "p", OwnerReferences: owner("ReplicaSet", "r")}, Spec: corev1.PodSpec{NodeName: "n"},
					Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: tc.ready}}}})
			})
			got := ""
			if f := c.Unanswered(); f != nil {
				got = string(f.Certainty) + ": " + f.Says
			}
			if got != tc.want {
				t.Errorf("%s\nwant %s", got, tc.want)
			}
		})
	}
}

// What Volcano's queues are guaranteed is held against all nodes together; it is the first by name that is told.
func TestGuaranteesOfMoreThanThereIs(t *testing.T) {
	for name, tc := range map[string]struct {
		scheduler, b, a, want string
	}{
		"more than there is":  {"volcano", "3", "1", "b 3 nvidia.com/gpu of 2"},
		"as much":             {"volcano", "2", "2", ""},
		"two, first by name":  {"volcano", "5", "4", "a 4 nvidia.com/gpu of 2"},
		"of another one":      {"koord-scheduler", "3", "1", ""},
		"nothing is promised": {"volcano", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				for _, node := range []string{"m", "n"} {
					w.AddNode(sim.Node{Name: node, MIGOff: []int{0}})
				}
				queue := func(name, gpus string) *unstructured.Unstructured {
					spec := map[string]any{}
					if gpus != "" {
						spec["guarantee"] = map[string]any{"resource": map[string]any{gpu: gpus}}
					}
					return object("", name, map[string]any{"spec": spec})
				}
				w.Queues.Volcano = []*unstructured.Unstructured{queue("b", tc.b), queue("a", tc.a)}
				w.Wait.Spec.SchedulerName = tc.scheduler
			})
			got := ""
			if g := Overguaranteed(c); g != nil {
				got = g.Queue + " " + g.Guarantees.String() + " " + string(g.Resource) + " of " + g.Has.String()
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
