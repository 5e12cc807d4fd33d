package world

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

var shared controlplane.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// conform is a cluster that the cases below are held to: the one in memory, or
// the real API server with the real controllers and scheduler.
type conform struct {
	client kubernetes.Interface
	custom dynamic.Interface
	ns     string // of this case alone
	node   string // the one node of this case
}

// What the executor relies on is the same in memory and on the API server.
func TestMemoryConforms(t *testing.T) {
	t.Parallel() // it waits
	conformance(t, func(t *testing.T) *conform {
		w, err := New(t.Context(), Options{Now: time.Now, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		c := &conform{client: w.Client(), custom: w.Dynamic(), ns: "ml", node: "gpu-1"}
		if err := w.AddNode(t.Context(), all1g(c.node), time.Now()); err != nil {
			t.Fatal(err)
		}
		return c
	})
}

func TestAPIServerConforms(t *testing.T) {
	t.Parallel() // it waits
	cp := shared.Get(t)
	conformance(t, func(t *testing.T) *conform {
		c := &conform{client: cp.Client(), custom: cp.Dynamic()}
		c.ns = cp.Namespace(t)
		c.node = c.ns + "-gpu" // pods of an earlier case may still name its node
		cp.AddNode(t, all1g(c.node))
		return c
	})
}

func all1g(name string) sim.Node {
	return sim.Node{Name: name, Model: "A100-40GB", Config: "all-1g.5gb", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}}
}

func conformance(t *testing.T, begin func(*testing.T) *conform) {
	for _, c := range []struct {
		name string
		run  func(*conform, *testing.T)
	}{
		{"a patch of another version or uid is refused", (*conform).patchPreconditions},
		{"null in a merge patch removes the key", (*conform).patchNull},
		{"only a change makes a version, only of the spec a generation", (*conform).versionsAndGenerations},
		{"status and spec are written apart", (*conform).statusApart},
		{"an eviction of another version or uid is refused", (*conform).evictPreconditions},
		{"a budget refuses an eviction, by name", (*conform).evictBudget},
		{"two budgets for a pod are an error", (*conform).evictTwoBudgets},
		{"a budget does not hold a pod that does not run", (*conform).evictPending},
		{"an allowed eviction counts, and the ReplicaSet makes another", (*conform).evictReplicaSet},
		{"an evicted pod of a Job is made again", (*conform).evictJob},
		{"a deletion of another version or uid is refused", (*conform).deletePreconditions},
		{"the absent is not found", (*conform).absent},
		{"the present already exists", (*conform).present},
		{"a dry run changes nothing", (*conform).dryRun},
		{"a report of another version is refused", (*conform).geometry},
		{"a cordon is seen by the scheduler", (*conform).cordon},
		{"what a Job owned goes with it", (*conform).ownerGone},
		{"a new template replaces the pods", (*conform).newTemplate},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(begin(t), t) })
	}
}

func (c *conform) pods() podClient { return c.client.CoreV1().Pods(c.ns) }

type podClient interface {
	Get(context.Context, string, metav1.GetOptions) (*corev1.Pod, error)
	List(context.Context, metav1.ListOptions) (*corev1.PodList, error)
	Create(context.Context, *corev1.Pod, metav1.CreateOptions) (*corev1.Pod, error)
	Update(context.Context, *corev1.Pod, metav1.UpdateOptions) (*corev1.Pod, error)
	UpdateStatus(context.Context, *corev1.Pod, metav1.UpdateOptions) (*corev1.Pod, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*corev1.Pod, error)
}

// spec is a pod for the case's node.
func (c *conform) spec(policy corev1.RestartPolicy) corev1.PodSpec {
	return corev1.PodSpec{RestartPolicy: policy, NodeSelector: map[string]string{"kubernetes.io/hostname": c.node}, Containers: []corev1.Container{{
		Name: "c", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}}
}

// holder makes a bare pod and waits until it runs.
func (c *conform) holder(t *testing.T) *corev1.Pod {
	t.Helper()
	const name = "holder"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: c.spec(corev1.RestartPolicyAlways)}
	if _, err := c.pods().Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c.await(t, name+" runs", func(p *corev1.Pod) bool { return p.Name == name && p.Status.Phase == corev1.PodRunning })
}

// idle makes a bare pod that no node takes.
func (c *conform) idle(t *testing.T) *corev1.Pod {
	t.Helper()
	const name = "idle"
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: c.spec(corev1.RestartPolicyAlways)}
	p.Spec.NodeSelector = map[string]string{"no": "node"}
	if _, err := c.pods().Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c.await(t, name+" is refused by the scheduler", func(p *corev1.Pod) bool { return p.Name == name && refused(p) })
}

func refused(p *corev1.Pod) bool {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodScheduled {
			return cond.Status == corev1.ConditionFalse && cond.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// await waits for a pod of the case's namespace.
func (c *conform) await(t *testing.T, what string, ok func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var found *corev1.Pod
	c.eventually(t, what, func() bool {
		list, err := c.pods().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if ok(&list.Items[i]) {
				found = &list.Items[i]
			}
		}
		return found != nil
	})
	return found
}

func (c *conform) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 40*time.Second, true, func(context.Context) (bool, error) { return ok(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (c *conform) deployment(t *testing.T, name string, replicas int32) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": name}
	d, err := c.client.AppsV1().Deployments(c.ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: c.spec(corev1.RestartPolicyAlways)}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (c *conform) job(t *testing.T, name string) *batchv1.Job {
	t.Helper()
	j, err := c.client.BatchV1().Jobs(c.ns).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: c.spec(corev1.RestartPolicyNever)}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// budget makes a PodDisruptionBudget for the pods of an app and waits until its
// controller has counted them.
func (c *conform) budget(t *testing.T, name, app string, min, healthy int32) {
	t.Helper()
	least := intOrString(min)
	budgets := c.client.PolicyV1().PodDisruptionBudgets(c.ns)
	if _, err := budgets.Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually(t, "the budget is counted", func() bool {
		b, err := budgets.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration == b.Generation && b.Status.CurrentHealthy == healthy && b.Status.DisruptionsAllowed == max(0, healthy-min)
	})
}

func (c *conform) evict(t *testing.T, name string, p *metav1.Preconditions, dryRun ...string) error {
	t.Helper()
	return c.client.PolicyV1().Evictions(c.ns).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: c.ns, Name: name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: p, DryRun: dryRun}})
}

// same wants the object as it was, by version.
func same(t *testing.T, was, is metav1.Object, err error) {
	t.Helper()
	if err != nil || was.GetUID() != is.GetUID() || was.GetResourceVersion() != is.GetResourceVersion() || is.GetDeletionTimestamp() != nil {
		t.Errorf("%s has changed: version %s, was %s, deleted %v, %v", was.GetName(), is.GetResourceVersion(), was.GetResourceVersion(), is.GetDeletionTimestamp(), err)
	}
}

// refusal wants an error of a status code and reason.
func refusal(t *testing.T, what string, err error, code int32, reason metav1.StatusReason) {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Code != code || status.Status().Reason != reason {
		t.Errorf("%s: %v, want %d %s", what, err, code, reason)
	}
}

func conflict(t *testing.T, what string, err error) {
	t.Helper()
	refusal(t, what, err, http.StatusConflict, metav1.StatusReasonConflict)
}

func patchWith(uid types.UID, version, rest string) []byte {
	return fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},%s}`, uid, version, rest)
}
