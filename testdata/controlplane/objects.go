package controlplane

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
)

// Eventually waits until something holds; the test fails with what was seen last. It looks
// every 50 ms, and less often the longer it takes: looking costs the API server time too.
func Eventually(tb testing.TB, timeout time.Duration, what string, ok func() (bool, string)) {
	tb.Helper()
	patience := time.After(timeout)
	for pause := 50 * time.Millisecond; ; pause = min(pause*21/20, 200*time.Millisecond) {
		done, seen := ok()
		if done {
			return
		}
		select {
		case <-time.After(pause):
			continue
		case <-patience:
			tb.Fatalf("%s: not within %s: %s", what, timeout, seen)
		case <-tb.Context().Done():
			tb.Fatalf("%s: not before the test ended: %s", what, seen)
		}
		return
	}
}

// cleanup deletes something that the test made. Nobody waits for it to be gone.
func cleanup(tb testing.TB, remove func(context.Context) error) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context()) // a test's own has ended by then
	tb.Cleanup(func() {
		if err := remove(ctx); err != nil && !apierrors.IsNotFound(err) {
			tb.Errorf("clean up: %v", err)
		}
	})
}

// Namespace makes a namespace of its own for the test, ready for pods. It is
// deleted when the test ends.
func (c *ControlPlane) Namespace(tb testing.TB) string {
	tb.Helper()
	namespaces := c.Client().CoreV1().Namespaces()
	ns, err := namespaces.Create(tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	cleanup(tb, func(ctx context.Context) error { return c.deleteNamespace(ctx, ns.Name) })
	c.WaitForServiceAccount(tb, ns.Name)
	return ns.Name
}

// deleteNamespace deletes it and its pods at once. Their nodes are gone by now, and nobody
// would end them before the garbage collector does, 40 s later: each such end has the
// scheduler try every pod that waits, in the tests that run by then.
func (c *ControlPlane) deleteNamespace(ctx context.Context, name string) error {
	if err := c.Client().CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return c.Client().CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{})
}

// WaitForServiceAccount waits until pods may be made in the namespace: its
// ServiceAccount comes a moment after it.
func (c *ControlPlane) WaitForServiceAccount(tb testing.TB, namespace string) {
	tb.Helper()
	accounts := c.Client().CoreV1().ServiceAccounts(namespace)
	Eventually(tb, 20*time.Second, "the ServiceAccount of "+namespace, func() (bool, string) {
		_, err := accounts.Get(tb.Context(), "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// AddNode creates a simulated GPU node with its status and its report, and waits
// until pods may land on it. All is deleted when the test ends.
func (c *ControlPlane) AddNode(tb testing.TB, n sim.Node) {
	tb.Helper()
	c.AddGeometry(tb, n.Geometry(time.Now())) // first: the stack looks when the node comes
	c.addNode(tb, n.Object(time.Now()))
	c.waitOpen(tb, n.Name)
}

// AddNodeObject creates a node with its status, and waits until the scheduler may
// look at it. It is deleted when the test ends.
func (c *ControlPlane) AddNodeObject(tb testing.TB, n *corev1.Node) {
	tb.Helper()
	c.addNode(tb, n)
	if Ready(n) {
		c.waitOpen(tb, n.Name)
	}
}

// Ready is false for a node that is said not to be; of one of which nothing is said the
// simulated kubelet makes a ready one.
func Ready(n *corev1.Node) bool {
	return !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue
	})
}

func (c *ControlPlane) addNode(tb testing.TB, want *corev1.Node) {
	tb.Helper()
	nodes := c.Client().CoreV1().Nodes()
	if _, err := nodes.Create(tb.Context(), want, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	cleanup(tb, func(ctx context.Context) error { return nodes.Delete(ctx, want.Name, metav1.DeleteOptions{}) })
	Eventually(tb, 10*time.Second, "status of node "+want.Name, func() (bool, string) {
		made, err := nodes.Get(tb.Context(), want.Name, metav1.GetOptions{})
		if err == nil {
			made.Status = want.Status
			_, err = nodes.UpdateStatus(tb.Context(), made, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err) // controllers write to a new node too
	})
}

// waitOpen waits until admission's taint, which it puts on every new node, is gone.
func (c *ControlPlane) waitOpen(tb testing.TB, name string) {
	tb.Helper()
	Eventually(tb, 20*time.Second, "node "+name+" is open for pods", func() (bool, string) {
		got, err := c.Client().CoreV1().Nodes().Get(tb.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, t := range got.Spec.Taints {
			if t.Key == corev1.TaintNodeNotReady {
				return false, t.ToString()
			}
		}
		return true, ""
	})
}

// AddGeometry creates a report. It is deleted when the test ends.
func (c *ControlPlane) AddGeometry(tb testing.TB, geo *nodeprobe.NodeGeometry) {
	tb.Helper()
	u, err := sim.Unstructured(geo)
	if err != nil {
		tb.Fatal(err)
	}
	reports := c.Dynamic().Resource(nodeprobe.Resource)
	if _, err := reports.Create(tb.Context(), u, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	cleanup(tb, func(ctx context.Context) error { return reports.Delete(ctx, geo.Name, metav1.DeleteOptions{}) })
}
