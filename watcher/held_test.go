package watcher

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/watcher/incident"
)

var (
	workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
	groups    = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}
	jobs      = schema.GroupVersionResource{Group: "batch.volcano.sh", Version: "v1alpha1", Resource: "jobs"}
	clusters  = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}
)

// queueing is an API server that serves the kinds of queues, with objects of them.
func queueing(t *testing.T, served []schema.GroupVersionResource, objects ...string) (*api, *dynamicfake.FakeDynamicClient) {
	t.Helper()
	a := newAPI()
	kinds := map[schema.GroupVersionResource]string{workloads: "Workload", groups: "PodGroup", jobs: "Job", clusters: "RayCluster"}
	for _, r := range served {
		a.Resources = append(a.Resources, &metav1.APIResourceList{GroupVersion: r.GroupVersion().String(), APIResources: []metav1.APIResource{{Name: r.Resource, Kind: kinds[r], Namespaced: true}}})
	}
	var all []runtime.Object
	for _, text := range objects {
		all = append(all, queued(t, text))
	}
	return a, dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{workloads: "WorkloadList", groups: "PodGroupList", jobs: "JobList", clusters: "RayClusterList"}, all...)
}

func queued(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

const (
	workload = `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {namespace: ml, name: raycluster-llm, resourceVersion: "%s", creationTimestamp: "2026-11-20T10:00:00Z", ownerReferences: [{apiVersion: ray.io/v1, kind: RayCluster, name: llm, uid: r, controller: true}]},
  spec: {queueName: team, podSets: [{name: worker, count: 2, template: {spec: {containers: [{name: main, image: nobody-keeps-this, resources: {limits: {nvidia.com/gpu: "8"}}}]}}}]}, status: {conditions: [{type: Admitted, status: "%s"}, {type: QuotaReserved, status: "False", message: "%s"}]}}`
	volcanoJob = `{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {namespace: ml, name: train, uid: j, resourceVersion: "20", ownerReferences: [{apiVersion: flow.volcano.sh/v1alpha1, kind: JobFlow, name: flow, uid: f, controller: true}]},
  spec: {tasks: [{name: worker, replicas: 2, template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: "1"}}}]}}}]}, status: {state: {phase: Pending}}}`
	rayCluster = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {namespace: ml, name: sweep-rc, uid: r, resourceVersion: "%s", creationTimestamp: "2026-11-20T10:00:00Z", ownerReferences: [{apiVersion: ray.io/v1, kind: RayJob, name: sweep, uid: s, controller: true}]},
  spec: {headGroupSpec: {template: {spec: {}}}, workerGroupSpecs: [{groupName: gpu, replicas: 2, template: {spec: {containers: [{name: main, image: nobody-keeps-this, resources: {limits: {nvidia.com/gpu: "1"}}}]}}}]},
  status: {conditions: [{type: ReplicaFailure, status: "%s", reason: FailedCreateWorkerPod, message: "%s", lastTransitionTime: "2026-11-20T10:00:00Z"}]}}`
	volcanoPodGroup = `{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {namespace: ml, name: train-j, resourceVersion: "21", creationTimestamp: "2026-11-20T10:00:00Z", ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: train, uid: j, controller: true}]},
  spec: {queue: team, minMember: 2}, status: {phase: %s}}`
)

// Who waits in a queue without a pod is told once, resolved when the queue lets it begin, and told
// again when that takes it back; what the queue says of it meanwhile is no news.
func TestAQueuedWorkloadIsToldAndResolved(t *testing.T) {
	a, d := queueing(t, []schema.GroupVersionResource{workloads}, fmt.Sprintf(workload, "10", "False", "2 more needed"))
	write := func(version, admitted, says string) {
		if _, err := d.Resource(workloads).Namespace("ml").Update(t.Context(), queued(t, fmt.Sprintf(workload, version, admitted, says)), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	watchingWith(t, a, nil, func(o *Options) { o.Dynamic = d }, func(t *testing.T, p *taken) {
		first := p.one(t)
		w, requests := incident.Ref{Kind: "RayCluster.ray.io", Namespace: "ml", Name: "llm"}, map[string]string{"nvidia.com/gpu": "8"}
		want := incident.Incident{ID: incident.ID(w, requests), Workload: w, Requests: requests, Pods: []incident.PodRef{}, Waiting: 2, Missing: 2, Since: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Newest: "10"}
		if first.Since = first.Since.UTC(); !reflect.DeepEqual(first, want) {
			t.Errorf("got %+v\nwant %+v", first, want)
		}
		write("30", "False", "3 more needed")
		p.none(t, "other words")
		pass(10 * time.Minute)
		p.none(t, "sweeps")
		write("40", "True", "")
		if last := p.one(t); !reflect.DeepEqual(last, incident.Incident{ID: want.ID, Workload: w, Requests: requests, Pods: []incident.PodRef{}, Newest: "40", Resolved: true}) {
			t.Errorf("admitted: %+v", last)
		}
		write("50", "False", "evicted")
		if again := p.one(t); again.Resolved || again.ID != want.ID || again.Newest != "50" {
			t.Errorf("evicted: %+v", again)
		}
		if err := d.Resource(workloads).Namespace("ml").Delete(t.Context(), "raycluster-llm", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if last := p.one(t); !last.Resolved || last.ID != want.ID {
			t.Errorf("deleted: %+v", last)
		}
	})
}

// A Job of Volcano waits as what owns it, for the kind of the Job is read whole.
func TestAVolcanoJobIsTold(t *testing.T) {
	a, d := queueing(t, []schema.GroupVersionResource{groups, jobs}, volcanoJob, fmt.Sprintf(volcanoPodGroup, "Pending"))
	watchingWith(t, a, nil, func(o *Options) { o.Dynamic = d }, func(t *testing.T, p *taken) {
		i := p.one(t)
		if want := (incident.Ref{Kind: "JobFlow.flow.volcano.sh", Namespace: "ml", Name: "flow"}); i.Workload != want || i.Missing != 2 || i.Requests["nvidia.com/gpu"] != "1" || i.Newest != "21" {
			t.Errorf("%+v", i)
		}
		if _, err := d.Resource(groups).Namespace("ml").Update(t.Context(), queued(t, fmt.Sprintf(volcanoPodGroup, "Running")), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if last := p.one(t); !last.Resolved || last.ID != i.ID {
			t.Errorf("%+v", last)
		}
	})
}

// A RayCluster whose workers are refused waits as what owns it, and no more once KubeRay could make them.
func TestARefusedRayClusterIsTold(t *testing.T) {
	a, d := queueing(t, []schema.GroupVersionResource{clusters}, fmt.Sprintf(rayCluster, "30", "True", "nobody-keeps-this"))
	write := func(version, status, says string) {
		if _, err := d.Resource(clusters).Namespace("ml").Update(t.Context(), queued(t, fmt.Sprintf(rayCluster, version, status, says)), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	watchingWith(t, a, nil, func(o *Options) { o.Dynamic = d }, func(t *testing.T, p *taken) {
		i := p.one(t)
		if want := (incident.Ref{Kind: "RayJob.ray.io", Namespace: "ml", Name: "sweep"}); i.Workload != want || i.Missing != 2 || i.Requests["nvidia.com/gpu"] != "1" || i.Newest != "30" {
			t.Errorf("%+v", i)
		}
		write("31", "True", "another pod's name")
		p.none(t, "it is tried again")
		write("32", "False", "")
		if last := p.one(t); !last.Resolved || last.ID != i.ID || last.Newest != "32" {
			t.Errorf("%+v", last)
		}
	})
}

// Where the API server serves no queue, nothing is asked of one; one that may not be read stops
// nothing else from being told.
func TestQueuesThatAreNotThere(t *testing.T) {
	a, d := queueing(t, nil)
	watchingWith(t, a, nil, func(o *Options) { o.Dynamic = d }, func(t *testing.T, p *taken) {
		p.none(t, "nothing waits")
		if asked := d.Actions(); len(asked) > 0 {
			t.Errorf("asked for %v", asked)
		}
	})
	a, d = queueing(t, []schema.GroupVersionResource{workloads, groups, jobs}, fmt.Sprintf(workload, "10", "False", ""), volcanoJob, fmt.Sprintf(volcanoPodGroup, "Pending"))
	d.PrependReactor("list", "workloads", func(act clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(act.GetResource().GroupResource(), "", fmt.Errorf("no role"))
	})
	watchingWith(t, a, nil, func(o *Options) { o.Dynamic = d }, func(t *testing.T, p *taken) {
		if i := p.one(t); i.Workload.Name != "flow" {
			t.Errorf("%+v", i)
		}
	})
}

// Of a queue's object as much is kept as an incident is made from, however often it is trimmed.
func TestQueuesAreTrimmed(t *testing.T) {
	for _, text := range []string{fmt.Sprintf(workload, "10", "False", "nobody-keeps-this"), volcanoJob, fmt.Sprintf(volcanoPodGroup, "Pending"), fmt.Sprintf(rayCluster, "30", "True", "nobody-keeps-this")} {
		o := queued(t, text)
		once, err := trim(o)
		if err != nil {
			t.Fatal(err)
		}
		h, ok := once.(*incident.Held)
		if twice, err := trim(once); !ok || err != nil || twice != once || h.GetName() != o.GetName() || h.GetResourceVersion() != o.GetResourceVersion() {
			t.Errorf("%T %+v, then %T, %v", once, once, twice, err)
		}
		if kept := fmt.Sprintf("%+v", h); strings.Contains(kept, "nobody-keeps-this") {
			t.Errorf("kept %s", kept)
		}
	}
}
