package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/cmd/internal/world"
	"github.com/unpend/unpend/nodeprobe/sim"
)

// The cluster of the demo: 8 nodes with 8 GPUs each, partitioned into 1g
// instances, with serving pods on every GPU.
const (
	demoNodes = 8
	demoGPUs  = 8
	demoModel = "A100-40GB"
)

// furnish builds the demo's cluster; the seed decides how busy it is.
func furnish(ctx context.Context, w *world.World, seed uint64) (pods int, err error) {
	r := rand.New(rand.NewPCG(seed, seed))
	for i := 1; i <= demoNodes; i++ {
		n := sim.Node{Name: fmt.Sprintf("gpu-%02d", i), Model: demoModel, GPUs: demoGPUs, Config: "all-1g.5gb"}
		for range demoGPUs {
			n.Layouts = append(n.Layouts, sim.All(demoModel, "1g.5gb"))
		}
		if err := w.AddNode(ctx, n, time.Now()); err != nil {
			return 0, err
		}
	}
	cm := sim.ConfigMap(world.ConfigNamespace, world.ConfigName, demoModel)
	if _, err := w.Client().CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("create the MIG config: %w", err)
	}
	for _, ns := range []string{"ml", "serving", cm.Namespace} {
		if _, err := w.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{}); err != nil {
			return 0, fmt.Errorf("create namespace %s: %w", ns, err)
		}
	}
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "cluster-policy"},
		"spec": map[string]any{"migManager": map[string]any{"config": map[string]any{"name": world.ConfigName}}},
	}}
	policies := schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}
	if _, err := w.Dynamic().Resource(policies).Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("create the cluster policy: %w", err)
	}
	for _, name := range []string{"chat", "embed", "rank"} {
		replicas := int32(40 + r.IntN(12))
		pods += int(replicas)
		if _, err := w.Client().AppsV1().Deployments("serving").Create(ctx, demoDeployment(name, replicas), metav1.CreateOptions{}); err != nil {
			return 0, fmt.Errorf("create deployment %s: %w", name, err)
		}
	}
	return pods, nil
}

// close the last two nodes, as people do: one cordoned, one reserved.
func closeNodes(ctx context.Context, client kubernetes.Interface) error {
	for i, edit := range []func(*corev1.Node){
		func(n *corev1.Node) { n.Spec.Unschedulable = true },
		func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "gpu", Value: "reserved", Effect: corev1.TaintEffectNoSchedule})
		},
	} {
		name := fmt.Sprintf("gpu-%02d", demoNodes-1+i)
		n, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("read node %s: %w", name, err)
		}
		n = n.DeepCopy()
		edit(n)
		if _, err := client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("change node %s: %w", name, err)
		}
	}
	return nil
}

func demoTemplate(name, profile string, count int64) corev1.PodTemplateSpec {
	amount := *resource.NewQuantity(count, resource.DecimalSI)
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "registry.example/" + name, Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
			Limits:   corev1.ResourceList{corev1.ResourceName("nvidia.com/mig-" + profile): amount},
		}}}}}
}

func demoDeployment(name string, replicas int32) *appsv1.Deployment {
	template := demoTemplate(name, "1g.5gb", 1)
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "serving", Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}
}

func demoJob() *batchv1.Job {
	one := int32(1)
	template := demoTemplate("llama-70b", "3g.20gb", 2)
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "llama-70b"}, Spec: batchv1.JobSpec{Parallelism: &one, Completions: &one, Template: template}}
}
