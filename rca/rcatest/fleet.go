package rcatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
)

const fleetModel = "A100-40GB"

// Fleet is a cluster of nodes with A100s, all cut to 1g, and some pods on every
// one of them that hold instances.
type Fleet struct {
	Nodes []*corev1.Node
	Geos  []*nodeprobe.NodeGeometry
	Pods  []*corev1.Pod
	Sets  []*appsv1.ReplicaSet
	Jobs  []*batchv1.Job
}

func controller(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: &yes}}
}

// MakeFleet fills nodes with pods a node each, and has some Jobs wait, each for
// something else.
func MakeFleet(nodes, gpus, podsEach, waiting int, now time.Time) *Fleet {
	f := &Fleet{}
	for i := range nodes {
		n := sim.Node{Name: fmt.Sprintf("gpu-%04d", i), Model: fleetModel, GPUs: gpus, Config: "all-1g.5gb"}
		for range gpus {
			n.Layouts = append(n.Layouts, sim.All(fleetModel, "1g.5gb"))
		}
		geo := n.Geometry(now)
		for k := range podsEach {
			name := fmt.Sprintf("serve-%d-%d", i, k)
			geo.Report.GPUs[k%gpus].Instances[k/gpus].Holder = &nodeprobe.Holder{Namespace: "ml", Pod: name, Container: "main"}
			f.Pods = append(f.Pods, runningPod(name, n.Name, now))
		}
		f.Nodes, f.Geos = append(f.Nodes, n.Object(now)), append(f.Geos, geo)
	}
	f.Sets = append(f.Sets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "serve-1", UID: "uid-serve-1", OwnerReferences: controller("Deployment", "serve")}})
	for i := range waiting {
		asks := []string{"nvidia.com/mig-2g.10gb", "nvidia.com/mig-3g.20gb", "nvidia.com/mig-4g.20gb", "nvidia.com/gpu", "nvidia.com/mig-7g.40gb"}[i%5]
		job := fmt.Sprintf("train-%d", i)
		f.Jobs = append(f.Jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: job, UID: types.UID("uid-" + job)}})
		f.Pods = append(f.Pods, Pending(job, asks, now))
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

// Pending is a pod of a Job that waits for so much of a resource.
func Pending(job, asks string, now time.Time) *corev1.Pod {
	p := usual(job+"-x", asks, now)
	p.OwnerReferences, p.Status.Phase = controller("Job", job), corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, LastTransitionTime: metav1.NewTime(now),
		Message: "0/1000 nodes are available: 1000 Insufficient " + asks + ". preemption: 0/1000 nodes are available: 1000 Preemption is not helpful for scheduling."}}
	return p
}

// List is all of it, as JSON, as a dump holds it.
func (f *Fleet) List() ([]byte, error) {
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": f.items()})
}

func (f *Fleet) items() []any {
	var out []any
	for _, o := range f.Nodes {
		o.APIVersion, o.Kind = "v1", "Node"
		out = append(out, o)
	}
	for _, o := range f.Pods {
		o.APIVersion, o.Kind = "v1", "Pod"
		out = append(out, o)
	}
	for _, o := range f.Sets {
		o.APIVersion, o.Kind = "apps/v1", "ReplicaSet"
		out = append(out, o)
	}
	for _, o := range f.Jobs {
		o.APIVersion, o.Kind = "batch/v1", "Job"
		out = append(out, o)
	}
	for _, o := range f.Geos {
		out = append(out, o)
	}
	return out
}
