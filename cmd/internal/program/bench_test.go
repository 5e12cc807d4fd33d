package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// fleet is a cluster of nodes with A100s, all cut to 1g, and some pods on every
// one of them that hold instances.
type fleet struct {
	nodes []*corev1.Node
	geos  []*nodeprobe.NodeGeometry
	pods  []*corev1.Pod
	sets  []*appsv1.ReplicaSet
	jobs  []*batchv1.Job
}

func controller(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes}}
}

// makeFleet fills nodes with pods a node each, and has some Jobs wait, each for
// something else.
func makeFleet(nodes, gpus, podsEach, waiting int, now time.Time) *fleet {
	f := &fleet{}
	for i := range nodes {
		n := sim.Node{Name: fmt.Sprintf("gpu-%04d", i), Model: demoModel, GPUs: gpus, Config: "all-1g.5gb"}
		for range gpus {
			n.Layouts = append(n.Layouts, sim.All(demoModel, "1g.5gb"))
		}
		geo := n.Geometry(now)
		for k := range podsEach {
			name := fmt.Sprintf("serve-%d-%d", i, k)
			geo.Report.GPUs[k%gpus].Instances[k/gpus].Holder = &nodeprobe.Holder{Namespace: "ml", Pod: name, Container: "main"}
			f.pods = append(f.pods, runningPod(name, n.Name, now))
		}
		f.nodes, f.geos = append(f.nodes, n.Object(now)), append(f.geos, geo)
	}
	f.sets = append(f.sets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "serve-1", UID: "uid-serve-1", OwnerReferences: controller("Deployment", "serve")}})
	for i := range waiting {
		asks := []string{"nvidia.com/mig-2g.10gb", "nvidia.com/mig-3g.20gb", "nvidia.com/mig-4g.20gb", "nvidia.com/gpu", "nvidia.com/mig-7g.40gb"}[i%5]
		job := fmt.Sprintf("train-%d", i)
		f.jobs = append(f.jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: job, UID: types.UID("uid-" + job)}})
		f.pods = append(f.pods, pending(job, asks, now))
	}
	return f
}

// usual is a pod as an API server shows it: what every pod carries is there.
func usual(name, asks string, now time.Time) *corev1.Pod {
	limit := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourceName(asks): resource.MustParse("1")}
	seconds := int64(300)
	priority := int32(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
			Labels: map[string]string{"app.kubernetes.io/name": "serve", "app.kubernetes.io/part-of": "inference", "pod-template-hash": "799fd98bc4"}},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, ServiceAccountName: "default", Priority: &priority, RestartPolicy: corev1.RestartPolicyAlways,
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}},
			Volumes: []corev1.Volume{{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}},
			Containers: []corev1.Container{{Name: "main", Image: "registry.example/inference/serve:v1.2.3", Resources: corev1.ResourceRequirements{Limits: limit, Requests: limit},
				Env:          []corev1.EnvVar{{Name: "MODEL", Value: "llama"}, {Name: "PORT", Value: "8000"}},
				VolumeMounts: []corev1.VolumeMount{{Name: "kube-api-access", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}}}},
	}
}

func runningPod(name, node string, now time.Time) *corev1.Pod {
	p := usual(name, "nvidia.com/mig-1g.5gb", now)
	p.OwnerReferences, p.Spec.NodeName, p.Status.Phase = controller("ReplicaSet", "serve-1"), node, corev1.PodRunning
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))})
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", Ready: true, Image: p.Spec.Containers[0].Image, ContainerID: "containerd://" + strings.Repeat("0", 64)}}
	return p
}

func pending(job, asks string, now time.Time) *corev1.Pod {
	p := usual(job+"-x", asks, now)
	p.OwnerReferences, p.Status.Phase = controller("Job", job), corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(now),
		Message: "0/1000 nodes are available: 1000 Insufficient " + asks + ". preemption: 0/1000 nodes are available: 1000 Preemption is not helpful for scheduling."}}
	return p
}

// items are all objects, as a list of any kind holds them.
func (f *fleet) items() []any {
	var out []any
	for _, o := range f.nodes {
		o.APIVersion, o.Kind = "v1", "Node"
		out = append(out, o)
	}
	for _, o := range f.pods {
		o.APIVersion, o.Kind = "v1", "Pod"
		out = append(out, o)
	}
	for _, o := range f.sets {
		o.APIVersion, o.Kind = "apps/v1", "ReplicaSet"
		out = append(out, o)
	}
	for _, o := range f.jobs {
		o.APIVersion, o.Kind = "batch/v1", "Job"
		out = append(out, o)
	}
	for _, o := range f.geos {
		out = append(out, o)
	}
	return out
}

// dump writes the fleet as `unpend dump` does and returns the path and the size.
func (f *fleet) dump(b *testing.B) (path string, size int) {
	b.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": f.items()})
	if err != nil {
		b.Fatal(err)
	}
	st, err := cluster.FromFiles([]string{"-"}, bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	var out bytes.Buffer
	if err := cluster.Write(&out, st, "json"); err != nil {
		b.Fatal(err)
	}
	path = filepath.Join(b.TempDir(), "dump.json")
	if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	return path, out.Len()
}

// cpu is the processor time this process has used.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkWhyOnADump is `unpend why -A -f` on 1,000 nodes with 10,000 pods, five
// of them waiting, the reading of the dump included. On a machine that others use
// too the processor time tells more than the clock.
func BenchmarkWhyOnADump(b *testing.B) {
	for _, gpus := range []int{2, 8} {
		b.Run(fmt.Sprintf("%d-gpus", gpus), func(b *testing.B) { benchmarkWhy(b, makeFleet(1000, gpus, 10, 5, time.Now())) })
	}
	b.Run("5000-nodes", func(b *testing.B) { benchmarkWhy(b, makeFleet(5000, 8, 10, 5, time.Now())) })
}

func benchmarkWhy(b *testing.B, f *fleet) {
	path, size := f.dump(b)
	var out, errs bytes.Buffer
	before := cpu(b)
	for b.Loop() {
		out.Reset()
		if code := Run(b.Context(), []string{"unpend", "why", "-A", "-f", path, "-o", "json"}, Stdio{In: strings.NewReader(""), Out: &out, Err: &errs}); code != 0 {
			b.Fatalf("exit %d: %s", code, errs.String())
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/why")
	b.ReportMetric((cpu(b)-before).Seconds()/float64(b.N), "cpu-s/why")
	b.ReportMetric(float64(size)/(1<<20), "MiB")
	var list diagnosis.List
	if err := json.Unmarshal(out.Bytes(), &list); err != nil || len(list.Items) != len(f.jobs) {
		b.Fatalf("%d diagnoses, %v", len(list.Items), err)
	}
	for _, d := range list.Items {
		if len(d.Nodes) != len(f.nodes) || len(d.Fixes) == 0 {
			b.Fatalf("%s: %d nodes, %d fixes", d.Headline, len(d.Nodes), len(d.Fixes))
		}
	}
}
