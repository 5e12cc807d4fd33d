package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/testdata/controlplane"
)

var shared controlplane.Shared

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// churn makes, changes and deletes pods, nodes and reports, in an order that a
// seed says.
type churn struct {
	*rand.Rand
	client kubernetes.Interface
	custom dynamic.Interface
	ns     string
}

func (c *churn) step(ctx context.Context) error {
	name := fmt.Sprintf("x-%d", c.IntN(8))
	now, reports, nodes, pods := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, c.custom.Resource(nodeprobe.Resource), c.client.CoreV1().Nodes(), c.client.CoreV1().Pods(c.ns)
	node := sim.Node{Name: name, Model: "A100-40GB", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}}
	label := fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, c.Int())
	var err error
	switch c.IntN(8) {
	case 0, 1:
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: fmt.Sprintf("x-%d", c.IntN(8)), Containers: []corev1.Container{{
			Name: "main", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("1")}}}}}}
		_, err = pods.Create(ctx, pod, metav1.CreateOptions{})
	case 2:
		_, err = pods.Patch(ctx, name, types.MergePatchType, label, metav1.PatchOptions{})
	case 3:
		err = pods.Delete(ctx, name, now)
	case 4:
		u, convert := sim.Unstructured(node.Geometry(time.Now()))
		if convert != nil {
			return convert
		}
		_, err = reports.Create(ctx, u, metav1.CreateOptions{})
		if _, nerr := nodes.Create(ctx, node.Object(time.Now()), metav1.CreateOptions{}); nerr != nil && !apierrors.IsAlreadyExists(nerr) {
			return nerr
		}
	case 5:
		_, err = nodes.Patch(ctx, name, types.MergePatchType, label, metav1.PatchOptions{})
	case 6:
		report := fmt.Appendf(nil, `{"report":{"driverVersion":"580.%d"}}`, c.IntN(1000))
		_, err = reports.Patch(ctx, name, types.MergePatchType, report, metav1.PatchOptions{})
	default:
		err = errors.Join(ignore(reports.Delete(ctx, name, now)), ignore(nodes.Delete(ctx, name, now)))
	}
	return ignore(err)
}

// ignore lets pass that something is there already, or not.
func ignore(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// What is kept up to date is what reading everything again would give, whatever
// was made, changed and deleted.
func TestWhatIsKeptIsWhatIsRead(t *testing.T) {
	c := shared.Get(t)
	change := &churn{Rand: rand.New(rand.NewPCG(3, 3)), client: c.Client(), custom: c.Dynamic(), ns: c.Namespace(t)}
	clock := time.Now()
	now := func() time.Time { return clock }
	f, err := Follow(t.Context(), c.Client(), c.Dynamic(), now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	most := 0
	for round := range 8 {
		for range 40 {
			if err := change.step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		controlplane.Eventually(t, 20*time.Second, fmt.Sprintf("round %d: kept and read are the same", round), func() (bool, string) {
			fresh, err := Read(t.Context(), c.Client(), c.Dynamic(), now)
			if err != nil {
				return false, err.Error()
			}
			kept := f.State(t.Context())
			most = max(most, len(kept.Pods)+len(kept.Nodes)+len(kept.Geometries))
			got, want := written(t, kept), written(t, fresh)
			return got == want && len(kept.Geometries) == len(fresh.Geometries), fmt.Sprintf("%d bytes are kept, %d read", len(got), len(want))
		})
	}
	if most < 12 {
		t.Errorf("at most %d pods, nodes and reports: nothing was tried", most)
	}
}

func written(t *testing.T, s *cluster.State) string {
	t.Helper()
	var b bytes.Buffer
	if err := dump.Write(&b, s, "json"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A holder that is deleted takes its report's word with it, until the probe has
// looked again.
func TestADeletedHolderIsNoticed(t *testing.T) {
	c := shared.Get(t)
	ns := c.Namespace(t)
	node := sim.Node{Name: "gpu-1", Model: "A100-40GB", Layouts: [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "held"}, Spec: corev1.PodSpec{NodeName: "gpu-1", Containers: []corev1.Container{{
		Name: "main", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("1")}}}}}}
	geo := node.Geometry(time.Now().Add(time.Minute)) // later than any bind: the report alone tells
	geo.Report.GPUs[0].Instances[0].Holder = &nodeprobe.Holder{Namespace: ns, Pod: "held", Container: "main"}
	if _, err := c.Client().CoreV1().Nodes().Create(t.Context(), node.Object(time.Now()), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.AddGeometry(t, geo)
	if _, err := c.Client().CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Allow(t, "alice", "nodes", "pods", "nodegeometries.unpend.dev")
	f := followAs(t, c, "alice")
	controlplane.Eventually(t, 10*time.Second, "the holder is known", func() (bool, string) { return f.State(t.Context()).HoldersKnown("gpu-1") })
	if got := f.State(t.Context()).Unread["PodDisruptionBudget"]; got != "the right to list poddisruptionbudgets.policy is missing" {
		t.Errorf("unread: %q", got)
	}
	if err := c.Client().CoreV1().Pods(ns).Delete(t.Context(), "held", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, 10*time.Second, "the holder is gone", func() (bool, string) {
		known, why := f.State(t.Context()).HoldersKnown("gpu-1")
		return !known && why == "pod "+ns+"/held, a holder in its report, is not on it any more, so holders are unknown", why
	})
}

// followAs follows with the rights of a user.
func followAs(t *testing.T, c *controlplane.ControlPlane, user string) *Follower {
	t.Helper()
	client, custom := clientsFor(t, c.KubeconfigFor(t, user))
	f, err := Follow(t.Context(), client, custom, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func clientsFor(t *testing.T, kubeconfig string) (kubernetes.Interface, dynamic.Interface) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config)
}

// Who was told of a change finds it in the copy, or learns that it is not
// there yet.
func TestAwait(t *testing.T) {
	c := shared.Get(t)
	ns := c.Namespace(t)
	f, err := Follow(t.Context(), c.Client(), c.Dynamic(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 20 {
		name := fmt.Sprintf("p-%d", i)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "main", Image: "registry.example/x"}}}}
		made, err := c.Client().CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if !f.Await(t.Context(), made.ResourceVersion, 10*time.Second) || f.State(t.Context()).Pod(ns, name) == nil {
			t.Fatalf("%s at %s is not known", name, made.ResourceVersion)
		}
	}
	if f.Await(t.Context(), "99999999999", 50*time.Millisecond) {
		t.Error("a version that nobody has seen is known")
	}
}
