package program

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// fleetServer is an API server that has the nodes, pods and reports of a fleet, and lets
// nobody read anything else. It tells of them by watches, as one of today does.
type fleetServer struct {
	*httptest.Server
	fleet  *rcatest.Fleet
	queued int // Workloads of Kueue, and as many training jobs of Kubeflow
}

func serveFleet(b *testing.B, f *rcatest.Fleet, queued int) *fleetServer {
	b.Helper()
	for _, p := range f.Pods {
		heavy(p)
	}
	s := &fleetServer{fleet: f, queued: queued}
	s.Server = httptest.NewServer(http.HandlerFunc(s.answer))
	b.Cleanup(s.Close)
	b.Cleanup(s.CloseClientConnections)
	return s
}

// heavy gives a pod what kubelets and admission add to one that is of no use here.
func heavy(p *corev1.Pod) {
	c := &p.Spec.Containers[0]
	for i := range 20 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", i), Value: strings.Repeat("v", 40)})
	}
	p.Annotations = map[string]string{"checksum/config": strings.Repeat("0", 64), "prometheus.io/scrape": "true"}
	for _, by := range []string{"kube-controller-manager", "kube-scheduler", "kubelet"} {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: by, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{` + strings.TrimSuffix(strings.Repeat(`"f:some-label":{},`, 60), ",") + `}}}`)})
	}
}

// ended tells a client that it has been told everything that is there.
var ended = metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}

func (s *fleetServer) answer(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api/v1/nodes":
		w.Header().Set("Content-Type", apiruntime.ContentTypeProtobuf+";stream=watch")
		for _, n := range s.fleet.Nodes {
			tell(w, "ADDED", n)
		}
		tell(w, "BOOKMARK", &corev1.Node{ObjectMeta: ended})
	case "/api/v1/pods":
		w.Header().Set("Content-Type", apiruntime.ContentTypeProtobuf+";stream=watch")
		for _, p := range s.fleet.Pods {
			tell(w, "ADDED", p)
		}
		tell(w, "BOOKMARK", &corev1.Pod{ObjectMeta: ended})
	case "/apis/unpend.dev/v1alpha1/nodegeometries":
		w.Header().Set("Content-Type", "application/json")
		for _, g := range s.fleet.Geos {
			tellJSON(w, "ADDED", *g)
		}
		tellJSON(w, "BOOKMARK", nodeprobe.NodeGeometry{ObjectMeta: ended})
	case "/apis/kueue.x-k8s.io/v1beta1/workloads":
		w.Header().Set("Content-Type", "application/json")
		for i := range s.queued {
			tellAny(w, "ADDED", queuedWorkload(s.fleet.Pods[0], i))
		}
		tellAny(w, "BOOKMARK", map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload", "metadata": ended})
	case "/apis/kubeflow.org/v1/pytorchjobs":
		w.Header().Set("Content-Type", "application/json")
		for i := range s.queued {
			tellAny(w, "ADDED", trainingJob(s.fleet.Pods[0], i))
		}
		tellAny(w, "BOOKMARK", map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": ended})
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		return
	}
	http.NewResponseController(w).Flush() //nolint:errcheck // who has gone reads nothing
	<-r.Context().Done()
}

// tell writes one event of a watch in protobuf. What cannot be written the client misses,
// and a benchmark then counts too few.
func tell(w http.ResponseWriter, kind string, o apiruntime.Object) {
	gvks, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		return
	}
	other := o.DeepCopyObject()
	other.GetObjectKind().SetGroupVersionKind(gvks[0])
	var text bytes.Buffer
	if protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(other, &text) != nil {
		return
	}
	event, err := (&metav1.WatchEvent{Type: kind, Object: apiruntime.RawExtension{Raw: text.Bytes()}}).Marshal()
	if err == nil {
		w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event...)) //nolint:errcheck // as above
	}
}

func tellJSON(w http.ResponseWriter, kind string, g nodeprobe.NodeGeometry) {
	g.APIVersion, g.Kind = nodeprobe.Kind.GroupVersion().String(), nodeprobe.Kind.Kind
	tellAny(w, kind, g)
}

func tellAny(w http.ResponseWriter, kind string, o any) {
	json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": o}) //nolint:errcheck // as above
}

// queuedWorkload is Kueue's Workload of a Job of 20 pods like this one, admitted.
func queuedWorkload(pod *corev1.Pod, i int) map[string]any {
	name := fmt.Sprintf("job-%d", i)
	condition := func(kind string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": kind, "message": "Quota reserved in ClusterQueue team", "lastTransitionTime": "2026-11-20T10:00:00Z"}
	}
	return map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
		"metadata": metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("workload-" + name), ManagedFields: pod.ManagedFields, OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, UID: types.UID(name), Controller: new(true)}}},
		"spec":     map[string]any{"queueName": "team", "podSets": []any{map[string]any{"name": "main", "count": podsQueued, "template": map[string]any{"metadata": map[string]any{"labels": pod.Labels}, "spec": pod.Spec}}}},
		"status": map[string]any{"conditions": []any{condition("QuotaReserved"), condition("Admitted")}, "admission": map[string]any{"clusterQueue": "team", "podSetAssignments": []any{
			map[string]any{"name": "main", "count": podsQueued, "flavors": map[string]any{"cpu": "default", "nvidia.com/gpu": "a100"}, "resourceUsage": map[string]any{"cpu": "20", "nvidia.com/gpu": "20"}}}}}}
}

// trainingJob is a PyTorchJob of 20 pods like this one, which runs.
func trainingJob(pod *corev1.Pod, i int) map[string]any {
	name := fmt.Sprintf("train-%d", i)
	replicas := func(count int) map[string]any {
		return map[string]any{"replicas": count, "restartPolicy": "OnFailure", "template": map[string]any{"metadata": map[string]any{"labels": pod.Labels}, "spec": pod.Spec}}
	}
	condition := func(kind, status string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "PyTorchJob" + kind, "message": "PyTorchJob " + name + " is so", "lastUpdateTime": "2026-11-20T10:00:00Z", "lastTransitionTime": "2026-11-20T10:00:00Z"}
	}
	return map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
		"metadata": metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(name), ManagedFields: pod.ManagedFields},
		"spec":     map[string]any{"runPolicy": map[string]any{"cleanPodPolicy": "None"}, "pytorchReplicaSpecs": map[string]any{"Master": replicas(1), "Worker": replicas(podsQueued - 1)}},
		"status":   map[string]any{"conditions": []any{condition("Created", "True"), condition("Running", "True")}, "replicaStatuses": map[string]any{"Master": map[string]any{"active": 1}, "Worker": map[string]any{"active": podsQueued - 1}}}}
}

// podsQueued are the pods of each Workload, and of each training job.
const podsQueued = 20

// kubeconfig names the server.
func (s *fleetServer) kubeconfig(b *testing.B) string {
	path := filepath.Join(b.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: \"" + s.URL + "\"}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// plainly fills informers as client-go makes them with all that the server has.
func (s *fleetServer) plainly(b *testing.B, config *rest.Config) (keep any) {
	client, custom, err := live.Clients(config)
	if err != nil {
		b.Fatal(err)
	}
	typed, generic := informers.NewSharedInformerFactory(client, 0), dynamicinformer.NewDynamicSharedInformerFactory(custom, 0)
	pods := typed.Core().V1().Pods().Informer()
	typed.Core().V1().Nodes().Informer()
	generic.ForResource(nodeprobe.Resource)
	if s.queued > 0 {
		generic.ForResource(schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: "workloads"})
		generic.ForResource(schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"})
	}
	ctx, stop := context.WithCancel(b.Context())
	typed.Start(ctx.Done())
	generic.Start(ctx.Done())
	typed.WaitForCacheSync(ctx.Done())
	generic.WaitForCacheSync(ctx.Done())
	stop()
	typed.Shutdown()
	generic.Shutdown()
	if n := len(pods.GetStore().ListKeys()); n != len(s.fleet.Pods) {
		b.Fatalf("%d pods of %d", n, len(s.fleet.Pods))
	}
	return []any{typed, generic}
}

// keeps is how many bytes of memory what fill returns holds.
func keeps(fill func() any) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := fill()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

// BenchmarkWhyLive is `unpend why -A`, where one Job waits, on an API server in this process,
// whose own work is in the time, against informers that are filled with the same objects and
// keep them as they are: x-sync how many times as long it takes to the verdict (P11: at most
// 1.5), x-sync-cpu the same in processor time, x-plain how much of their memory the copy of
// the cluster takes (P10: at most a sixth). In the last a queue has a Workload, and Kubeflow a
// training job, for every 20 pods.
// With UNPEND_SOAK=1 there are 100,000 pods, too, which takes some GB.
func BenchmarkWhyLive(b *testing.B) {
	type size struct{ nodes, podsEach, queued int }
	sizes := []size{{1000, 10, 0}, {5000, 10, 0}, {1000, 10, 1000 * 10 / podsQueued}}
	if os.Getenv("UNPEND_SOAK") == "1" {
		sizes = append(sizes, size{5000, 20, 0}, size{5000, 20, 5000 * 20 / podsQueued})
	}
	for _, of := range sizes {
		b.Run(fmt.Sprintf("%d-nodes-%d-pods-%d-queued", of.nodes, of.nodes*of.podsEach, of.queued), func(b *testing.B) {
			f := rcatest.MakeFleet(of.nodes, 8, of.podsEach, 1, time.Now())
			s := serveFleet(b, f, of.queued)
			config, path := &rest.Config{Host: s.URL, QPS: 1000, Burst: 1000}, s.kubeconfig(b)
			var whole, bare, wholeCPU, bareCPU time.Duration
			for b.Loop() {
				runtime.GC()
				began, used := time.Now(), cpu(b)
				s.plainly(b, config)
				bare, bareCPU = bare+time.Since(began), bareCPU+cpu(b)-used
				runtime.GC()
				began, used = time.Now(), cpu(b)
				whyLive(b, path, len(f.Jobs))
				whole, wholeCPU = whole+time.Since(began), wholeCPU+cpu(b)-used
			}
			plain, ours := keeps(func() any { return s.plainly(b, config) }), keeps(func() any { return followed(b, config, len(f.Pods)) })
			b.ReportMetric(whole.Seconds()/float64(b.N), "s/why")
			b.ReportMetric(whole.Seconds()/bare.Seconds(), "x-sync")
			b.ReportMetric(wholeCPU.Seconds()/bareCPU.Seconds(), "x-sync-cpu")
			b.ReportMetric(ours/(1<<20), "MiB")
			b.ReportMetric(ours/plain, "x-plain")
		})
	}
}

// whyLive asks once, and wants so many answers.
func whyLive(b *testing.B, kubeconfig string, want int) {
	var out, errs bytes.Buffer
	if code := Run(b.Context(), []string{"unpend", "why", "-A", "-o", "json", "--kubeconfig", kubeconfig}, console.Stdio{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 0 {
		b.Fatalf("exit %d: %s", code, errs.String())
	}
	var list diagnosis.List
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list.Items) != want {
		b.Fatalf("%d answers, %v", len(list.Items), err)
	}
}

// followed is a copy of the cluster that is kept up to date.
func followed(b *testing.B, config *rest.Config, pods int) any {
	client, custom, err := live.Clients(config)
	if err != nil {
		b.Fatal(err)
	}
	f, err := live.Follow(b.Context(), client, custom, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(f.Close)
	if n := len(f.State(b.Context()).Pods); n != pods {
		b.Fatalf("%d pods of %d", n, pods)
	}
	return f
}
