package incident

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

func TestTopmost(t *testing.T) {
	no := false
	cases := []struct {
		name  string
		owner []metav1.OwnerReference
		known incidenttest.Owners
		want  Ref
	}{
		{"a bare pod", nil, nil, Ref{"Pod", "ml", "p"}},
		{"a mirror pod", incidenttest.Owned("Node", "gpu-1"), nil, Ref{"Pod", "ml", "p"}},
		{"an owner that does not control", []metav1.OwnerReference{{Kind: "Job", Name: "j", Controller: &no}}, nil, Ref{"Pod", "ml", "p"}},
		{"ReplicaSet to Deployment", incidenttest.Owned("ReplicaSet", "d-1"), incidenttest.Owners{"ReplicaSet/ml/d-1": incidenttest.Owned("Deployment", "d")}, Ref{"Deployment", "ml", "d"}},
		{"Job to CronJob", incidenttest.Owned("Job", "c-1"), incidenttest.Owners{"Job/ml/c-1": incidenttest.Owned("CronJob", "c"), "CronJob/ml/c": nil}, Ref{"CronJob", "ml", "c"}},
		{"ReplicaSet to Deployment to a custom kind", incidenttest.Owned("ReplicaSet", "d-1"), incidenttest.Owners{"ReplicaSet/ml/d-1": incidenttest.Owned("Deployment", "d"), "Deployment/ml/d": incidenttest.Owned("InferenceService", "i")}, Ref{"InferenceService", "ml", "i"}},
		{"StatefulSet on its own", incidenttest.Owned("StatefulSet", "s"), incidenttest.Owners{"StatefulSet/ml/s": nil}, Ref{"StatefulSet", "ml", "s"}},
		{"StatefulSet of a custom kind", incidenttest.Owned("StatefulSet", "s"), incidenttest.Owners{"StatefulSet/ml/s": incidenttest.Owned("Cluster", "c")}, Ref{"Cluster", "ml", "c"}},
		{"a CronJob that is gone keeps its name", incidenttest.Owned("Job", "c-1"), incidenttest.Owners{"Job/ml/c-1": incidenttest.Owned("CronJob", "c")}, Ref{"CronJob", "ml", "c"}},
		{"a kind that nobody reads", incidenttest.Owned("PyTorchJob", "t"), incidenttest.Owners{"Job/ml/t": incidenttest.Owned("CronJob", "c")}, Ref{"PyTorchJob", "ml", "t"}},
		{"the controller among several owners", append([]metav1.OwnerReference{{Kind: "Queue", Name: "q"}}, incidenttest.Owned("Job", "j")...), incidenttest.Owners{"Job/ml/j": nil}, Ref{"Job", "ml", "j"}},
		{"a missing owner ends the chain", incidenttest.Owned("ReplicaSet", "d-1"), incidenttest.Owners{}, Ref{"ReplicaSet", "ml", "d-1"}},
		{"an owner in another namespace is none", incidenttest.Owned("ReplicaSet", "d-1"), incidenttest.Owners{"ReplicaSet/other/d-1": incidenttest.Owned("Deployment", "d")}, Ref{"ReplicaSet", "ml", "d-1"}},
		{"owners in a circle", incidenttest.Owned("Job", "a"), incidenttest.Owners{"Job/ml/a": incidenttest.Owned("Job", "b"), "Job/ml/b": incidenttest.Owned("Job", "a")}, Ref{"Job", "ml", "a"}},
		{"an owner of itself", incidenttest.Owned("Job", "a"), incidenttest.Owners{"Job/ml/a": incidenttest.Owned("Job", "a")}, Ref{"Job", "ml", "a"}},
	}
	for _, c := range cases {
		if got := Topmost(incidenttest.WaitingPod("p", "nvidia.com/gpu", c.owner), c.known.Find); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWaiting(t *testing.T) {
	bound := func(p *corev1.Pod) { p.Spec.NodeName = "gpu-1" }
	failed := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			bound(p)
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason}
		}
	}
	rejected := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			failed(reason)(p)
			p.Status.Message = message
		}
	}
	cases := []struct {
		name   string
		change func(*corev1.Pod)
		reason string // empty: it does not wait
	}{
		{"unschedulable", func(*corev1.Pod) {}, "Unschedulable"},
		{"gated", func(p *corev1.Pod) { p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated }, "SchedulingGated"},
		{"not looked at yet", func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }, "NoCondition"},
		{"scheduled, not bound yet", func(p *corev1.Pod) { p.Status.Conditions = nil }, "NoCondition"},
		{"bound, images being pulled", bound, ""},
		{"running", func(p *corev1.Pod) { bound(p); p.Status.Phase = corev1.PodRunning }, ""},
		{"succeeded", func(p *corev1.Pod) { bound(p); p.Status.Phase = corev1.PodSucceeded }, ""},
		{"deleted", func(p *corev1.Pod) { now := metav1.NewTime(incidenttest.Start); p.DeletionTimestamp = &now }, ""},
		{"no device left", failed("UnexpectedAdmissionError"), "Failed/UnexpectedAdmissionError"},
		{"no NUMA fit", failed("TopologyAffinityError"), "Failed/TopologyAffinityError"},
		{"no room", failed("OutOfnvidia.com/gpu"), "Failed/OutOfnvidia.com/gpu"},
		{"a predicate", rejected("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed"), "Failed/NodeAffinity"},
		{"an old kubelet's predicate", rejected("NodeAffinity", "Pod Predicate NodeAffinity failed"), "Failed/NodeAffinity"},
		{"an old kubelet's pressure", rejected("Evicted", "Pod The node had condition: [DiskPressure]. "), "Failed/Evicted"},
		{"evicted later", rejected("Evicted", "The node was low on resource: memory."), ""},
		{"evicted", failed("Evicted"), ""},
		{"crashed", failed(""), ""},
		{"refused and deleted", func(p *corev1.Pod) {
			failed("UnexpectedAdmissionError")(p)
			now := metav1.NewTime(incidenttest.Start)
			p.DeletionTimestamp = &now
		}, ""},
	}
	for _, c := range cases {
		p := incidenttest.WaitingPod("p", "nvidia.com/gpu", nil)
		c.change(p)
		reason, since, ok := Waiting(p)
		if ok != (c.reason != "") || ok && reason != c.reason || !since.Equal(incidenttest.Start) {
			t.Errorf("%s: %q, %v, %v, want %q", c.name, reason, since, ok, c.reason)
		}
	}
}

func TestIncidentID(t *testing.T) {
	w := Ref{"Deployment", "ml", "train"}
	requests := map[string]string{"nvidia.com/gpu": "1", "cpu": "4"}
	const want = "gpu-16a039422a" // sha256 of "Deployment/ml/train\ncpu=4,nvidia.com/gpu=1"
	for range 20 {
		if got := ID(w, maps.Clone(requests)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	seen := map[string]bool{want: true}
	for _, other := range []string{
		ID(Ref{"StatefulSet", "ml", "train"}, requests),
		ID(Ref{"Deployment", "other", "train"}, requests),
		ID(Ref{"Deployment", "ml", "serve"}, requests),
		ID(w, map[string]string{"nvidia.com/gpu": "2", "cpu": "4"}),
		ID(w, nil),
	} {
		if seen[other] {
			t.Errorf("%s stands for two incidents", other)
		}
		seen[other] = true
	}
}

// 10,000 pods of one Job are one incident that names 20 of them.
func TestManyPodsFold(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 10_000 {
		p := incidenttest.WaitingPod(fmt.Sprintf("train-%05d", 9_999-i), "nvidia.com/gpu", incidenttest.Owned("Job", "train"))
		p.ResourceVersion = strconv.Itoa(i + 1)
		p.CreationTimestamp = metav1.NewTime(incidenttest.Start.Add(-time.Duration(i) * time.Second))
		pods = append(pods, p)
	}
	got := Group(pods, incidenttest.Owners{}.Find)
	if len(got) != 1 {
		t.Fatalf("%d incidents", len(got))
	}
	i := got[0]
	if i.Waiting != 10_000 || len(i.Pods) != MaxPods || i.Newest != "10000" || !i.Since.Equal(incidenttest.Start.Add(-9_999*time.Second)) || i.Workload != (Ref{"Job", "ml", "train"}) {
		t.Errorf("waiting %d, pods %d, newest %s, since %v, workload %v", i.Waiting, len(i.Pods), i.Newest, i.Since, i.Workload)
	}
	if first := (PodRef{"train-00000", "uid-train-00000", "Unschedulable"}); i.Pods[0] != first {
		t.Errorf("first pod %v, want %v", i.Pods[0], first)
	}
	if !slices.IsSortedFunc(i.Pods, cmpNames) {
		t.Errorf("names out of order: %v", i.Pods)
	}
	if _, body, err := i.Message(); err != nil || len(body) > 4096 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	slices.Reverse(pods)
	a, _, _ := i.Message()
	if b, _, _ := Group(pods, incidenttest.Owners{}.Find)[0].Message(); a != b {
		t.Errorf("the order of the pods changes the message: %s, %s", a, b)
	}
}

func cmpNames(a, b PodRef) int {
	if a.Name < b.Name {
		return -1
	}
	return 1
}

// Two request shapes of one workload are two incidents; what does not wait is in none.
func TestShapesAreApart(t *testing.T) {
	big, small := incidenttest.WaitingPod("big", "nvidia.com/mig-3g.20gb", incidenttest.Owned("Job", "j")), incidenttest.WaitingPod("small", "nvidia.com/mig-1g.5gb", incidenttest.Owned("Job", "j"))
	runs := incidenttest.WaitingPod("runs", "nvidia.com/mig-1g.5gb", incidenttest.Owned("Job", "j"))
	runs.Spec.NodeName = "gpu-1"
	got := Group([]*corev1.Pod{big, runs, small}, incidenttest.Owners{}.Find)
	if len(got) != 2 || got[0].ID >= got[1].ID {
		t.Fatalf("incidents %+v", got)
	}
	shapes := map[string]string{}
	for _, i := range got {
		if i.Waiting != 1 || i.Workload != (Ref{"Job", "ml", "j"}) || len(i.Requests) != 1 {
			t.Errorf("incident %+v", i)
		}
		for name := range i.Requests {
			shapes[name] = i.Pods[0].Name
		}
	}
	if want := map[string]string{"nvidia.com/mig-3g.20gb": "big", "nvidia.com/mig-1g.5gb": "small"}; !maps.Equal(shapes, want) {
		t.Errorf("got %v, want %v", shapes, want)
	}
}

// One request written in two ways is one shape.
func TestQuantitiesAreCanonical(t *testing.T) {
	a, b := incidenttest.WaitingPod("a", "nvidia.com/gpu", incidenttest.Owned("Job", "j")), incidenttest.WaitingPod("b", "nvidia.com/gpu", incidenttest.Owned("Job", "j"))
	a.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("1024Mi"), "cpu": resource.MustParse("1000m")}
	b.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"memory": resource.MustParse("1Gi"), "cpu": resource.MustParse("1")}
	got := Group([]*corev1.Pod{a, b}, incidenttest.Owners{}.Find)
	want := map[string]string{"memory": "1Gi", "cpu": "1", "nvidia.com/gpu": "1"}
	if len(got) != 1 || !maps.Equal(got[0].Requests, want) {
		t.Errorf("incidents %+v, want one of %v", got, want)
	}
}

// The same facts again are no news; back to former facts is news.
func TestMessage(t *testing.T) {
	at := func(reason, version string) string {
		p := incidenttest.WaitingPod("p", "nvidia.com/gpu", nil)
		p.Status.Conditions[0].Reason, p.ResourceVersion = reason, version
		i := Group([]*corev1.Pod{p}, incidenttest.Owners{}.Find)[0]
		id, body, err := i.Message()
		if err != nil {
			t.Fatal(err)
		}
		var back Incident
		if err := json.Unmarshal(body, &back); err != nil || back.Newest != version || back.ID != i.ID {
			t.Errorf("travelled as %s: %+v, %v", body, back, err)
		}
		return id
	}
	a, b, again := at("Unschedulable", "9"), at("SchedulingGated", "10"), at("Unschedulable", "11")
	if a == b || b == again || a == again {
		t.Errorf("A, B, A: %s, %s, %s", a, b, again)
	}
	if a != at("Unschedulable", "9") {
		t.Error("the same facts make two messages")
	}
}

func TestNewerComparesNumbers(t *testing.T) {
	for _, c := range [][2]string{{"10", "9"}, {"2", "1"}, {"1", ""}, {"18446744073709551615", "9999999999999999999"}} {
		if !Newer(c[0], c[1]) || Newer(c[1], c[0]) || Newer(c[0], c[0]) {
			t.Errorf("%s and %s", c[0], c[1])
		}
	}
}

// A manifest that leaves requests out asks its limits, of each container, as what the API
// server makes of it does.
func TestLimitsStandInForRequests(t *testing.T) {
	ask := func(name string, requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	gpus := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers:     []corev1.Container{ask("a", nil, gpus(2)), ask("b", corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, gpus(6)), ask("c", nil, nil)},
		InitContainers: []corev1.Container{ask("before", nil, gpus(4))},
	}}
	if got, want := Requests(pod), map[string]string{"nvidia.com/gpu": "8", "cpu": "1"}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if r := pod.Spec.Containers[0].Resources.Requests; r != nil {
		t.Errorf("the pod's own requests are %v now", r)
	}
}
