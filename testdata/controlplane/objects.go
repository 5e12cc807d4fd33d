package controlplane

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
)

// installCRDs creates every CRD of the chart and waits until they are served.
func (c *ControlPlane) installCRDs(tb testing.TB) {
	tb.Helper()
	src, err := source()
	if err != nil {
		tb.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(src, "..", "..", "deploy", "charts", "unpend", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("the chart has no CRDs: %v", err)
	}
	client := apiextensions.NewForConfigOrDie(c.Config()).ApiextensionsV1().CustomResourceDefinitions()
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			tb.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(data, &crd); err != nil {
			tb.Fatalf("%s: %v", f, err)
		}
		if _, err := client.Create(context.Background(), &crd, metav1.CreateOptions{}); err != nil {
			tb.Fatalf("%s: %v", f, err)
		}
		Eventually(tb, 10*time.Second, crd.Name+" is served", func() (bool, string) {
			got, err := client.Get(context.Background(), crd.Name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			for _, cond := range got.Status.Conditions {
				if cond.Type == apiextensionsv1.Established && cond.Status == apiextensionsv1.ConditionTrue {
					return true, ""
				}
			}
			return false, fmt.Sprint(got.Status.Conditions)
		})
	}
}

// Eventually waits until something holds; the test fails with what was seen last.
func Eventually(tb testing.TB, timeout time.Duration, what string, ok func() (bool, string)) {
	tb.Helper()
	last := ""
	err := wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		done, seen := ok()
		last = seen
		return done, nil
	})
	if err != nil {
		tb.Fatalf("%s: not within %s: %s", what, timeout, last)
	}
}

// Namespace makes a namespace of its own for the test.
func (c *ControlPlane) Namespace(tb testing.TB) string {
	tb.Helper()
	ns, err := c.Client().CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return ns.Name
}

// AddNode creates a simulated GPU node with its status and its report.
func (c *ControlPlane) AddNode(tb testing.TB, n sim.Node) {
	tb.Helper()
	ctx := context.Background()
	want := n.Object(time.Now())
	nodes := c.Client().CoreV1().Nodes()
	if _, err := nodes.Create(ctx, want, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	Eventually(tb, 10*time.Second, "status of node "+n.Name, func() (bool, string) {
		made, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
		if err == nil {
			made.Status = want.Status
			_, err = nodes.UpdateStatus(ctx, made, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err) // controllers write to a new node too
	})
	c.AddGeometry(tb, n.Geometry(time.Now()))
	Eventually(tb, 20*time.Second, "node "+n.Name+" is open for pods", func() (bool, string) {
		got, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, t := range got.Spec.Taints {
			if t.Key == corev1.TaintNodeNotReady { // admission puts it on every new node
				return false, t.ToString()
			}
		}
		return true, ""
	})
}

// AddGeometry creates a report.
func (c *ControlPlane) AddGeometry(tb testing.TB, geo *nodeprobe.NodeGeometry) {
	tb.Helper()
	u, err := sim.Unstructured(geo)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := c.Dynamic().Resource(nodeprobe.Resource).Create(context.Background(), u, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
}

// AuditEvent is one request the API server answered.
type AuditEvent struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource, Namespace, Name, Subresource string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// AuditEvents reads the API server's audit log.
func (c *ControlPlane) AuditEvents(tb testing.TB) []AuditEvent {
	tb.Helper()
	f, err := os.Open(c.path("audit.log"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var out []AuditEvent
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e AuditEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // the line that is being written
		}
		out = append(out, e)
	}
	return out
}

// WaitForServiceAccount waits until pods may be made in the namespace: its
// ServiceAccount comes a moment after it.
func (c *ControlPlane) WaitForServiceAccount(tb testing.TB, namespace string) {
	tb.Helper()
	Eventually(tb, 20*time.Second, "the ServiceAccount of "+namespace, func() (bool, string) {
		_, err := c.Client().CoreV1().ServiceAccounts(namespace).Get(context.Background(), "default", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// Allow lets a user get, list and watch resources of the core group, and nothing
// else.
func (c *ControlPlane) Allow(tb testing.TB, user string, resources ...string) {
	tb.Helper()
	ctx, rbac := context.Background(), c.Client().RbacV1()
	name := "allow-" + user
	if _, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: resources, Verbs: []string{"get", "list", "watch"}}}}, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
	if _, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}}}, metav1.CreateOptions{}); err != nil {
		tb.Fatal(err)
	}
}
