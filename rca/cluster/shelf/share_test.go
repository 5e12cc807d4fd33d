package shelf

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
)

// replica is a pod of a workload as an informer decodes it: nothing is another's.
func replica(tb testing.TB, name, workload string) *corev1.Pod {
	tb.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: "u", Labels: map[string]string{"app": workload, "pod-template-hash": "5d8f"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: workload, UID: "o", Controller: new(true)}}},
		Spec: corev1.PodSpec{NodeName: "gpu-" + name, NodeSelector: map[string]string{"pool": workload}, Tolerations: []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "main", Image: "registry.example/" + workload, Env: []corev1.EnvVar{{Name: "A", Value: "B"}}, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "nvidia.com/mig-1g.5gb": resource.MustParse("1")},
				Limits:   corev1.ResourceList{"memory": resource.MustParse("16Gi"), "nvidia.com/mig-1g.5gb": resource.MustParse("1")}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	text, err := p.Marshal()
	out := &corev1.Pod{}
	if err == nil {
		err = out.Unmarshal(text)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// Pods of a workload hold in memory once what they have alike, and say the same as before;
// what differs stays each one's own, and what others hold is not written again.
func TestPodsShareWhatTheyHaveAlike(t *testing.T) {
	s := New()
	kept := func(name, workload string) *corev1.Pod {
		p := replica(t, name, workload)
		cluster.Trim(p)
		want := p.DeepCopy()
		if err := s.Share(p); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p); diff != "" {
			t.Error(diff)
		}
		return p
	}
	a, b, other := kept("a", "serve"), kept("b", "serve"), kept("c", "train")
	if &a.Spec.Containers[0] != &b.Spec.Containers[0] || &a.Spec.Tolerations[0] != &b.Spec.Tolerations[0] || &a.OwnerReferences[0] != &b.OwnerReferences[0] {
		t.Error("pods of one workload have two lists")
	}
	if &a.Spec.Containers[0] == &other.Spec.Containers[0] || &a.Spec.Tolerations[0] != &other.Spec.Tolerations[0] {
		t.Error("a pod of another workload shares its containers, or not its tolerations")
	}
	a.Labels["x"] = "y"
	if b.Labels["x"] != "y" || other.Labels["x"] != "" {
		t.Errorf("labels %v and %v", b.Labels, other.Labels)
	}
	held := &a.Spec.Containers[0]
	cluster.Trim(a) // as when a list is taken in again
	if &a.Spec.Containers[0] == held || &b.Spec.Containers[0] != held {
		t.Error("what others hold is written")
	}
}

// What pods say in the same words is in memory once, and so are a report's; too many words,
// and long ones, are not kept.
func TestWordsAreKeptOnce(t *testing.T) {
	s := New()
	a, b := replica(t, "x", "serve"), replica(t, "x", "serve")
	for _, p := range []*corev1.Pod{a, b} {
		if err := s.Share(p); err != nil {
			t.Fatal(err)
		}
	}
	same := func(what, x, y string) {
		t.Helper()
		if x == "" || x != y || unsafe.StringData(x) != unsafe.StringData(y) {
			t.Errorf("%s: %q and %q", what, x, y)
		}
	}
	same("the node", a.Spec.NodeName, b.Spec.NodeName)
	same("the namespace", a.Namespace, b.Namespace)
	same("the phase", string(a.Status.Phase), string(b.Status.Phase))
	const text = `{"metadata":{"name":"n"},"report":{"source":"nvml","gpus":[{"index":0,"healthy":true,"product":"A100","instances":[{"profile":"1g.5gb","holder":{"namespace":"ml","pod":"x","container":"main"}},{"profile":"1g.5gb","holder":{"namespace":"ml","pod":"y","container":"main"}}]}]}}`
	k := cluster.KindOf("unpend.dev/v1alpha1", "NodeGeometry")
	o, err := s.Read(k, "unpend.dev/v1alpha1", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	i := o.(*nodeprobe.NodeGeometry).Report.GPUs[0].Instances
	same("the profile", i[0].Profile, i[1].Profile)
	same("the container", i[0].Holder.Container, i[1].Holder.Container)
	same("the namespace of all", i[0].Holder.Namespace, a.Namespace)
	long := strings.Repeat("x", longestWord+1)
	once(&s.words, &long)
	for n := range 2 * keptWords {
		word := fmt.Sprint(n)
		if once(&s.words, &word); word != fmt.Sprint(n) {
			t.Fatalf("%d became %s", n, word)
		}
	}
	if n := len(s.words.known); n > keptWords || s.words.known[long] != "" {
		t.Errorf("%d words are kept", n)
	}
}

// Large parts of pods that are gone do not pile up.
func TestShelfIsBoundedInBytes(t *testing.T) {
	s := New()
	for i := range enough {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: map[string]string{"pool": fmt.Sprint(i, strings.Repeat("x", 64<<10))}}}
		if err := s.Share(p); err != nil {
			t.Fatal(err)
		}
	}
	held := 0
	for _, known := range s.known {
		for text := range known {
			held += len(text)
		}
	}
	if held > shelvedBytes || held == 0 || held != s.bytes {
		t.Errorf("%d bytes are held, %d counted", held, s.bytes)
	}
}

// BenchmarkKeepPods keeps 10,000 pods of ten workloads: KiB/pod is what one takes in memory,
// x-alone how much of what it would take alone.
func BenchmarkKeepPods(b *testing.B) {
	const n = 10_000
	grows := func(share func(cluster.Object) error) float64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		pods := make([]*corev1.Pod, n)
		for i := range pods {
			pods[i] = replica(b, fmt.Sprintf("p-%d", i), fmt.Sprintf("w-%d", i%10))
			cluster.Trim(pods[i])
			if err := share(pods[i]); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(pods)
		return float64(after.HeapAlloc-before.HeapAlloc) / n / 1024
	}
	var shared, alone float64
	for b.Loop() {
		alone = grows(func(cluster.Object) error { return nil })
		shared = grows(New().Share)
	}
	b.ReportMetric(shared, "KiB/pod")
	b.ReportMetric(shared/alone, "x-alone")
}
