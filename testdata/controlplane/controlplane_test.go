package controlplane

import (
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/nodeprobe/sim"
)

var shared Shared

func TestMain(m *testing.M) {
	if os.Getenv(childMark) != "" {
		beChild()
		return
	}
	os.Exit(shared.Run(m))
}

const a100 = "A100-40GB"

func all1g(name string) sim.Node {
	return sim.Node{Name: name, Model: a100, Layouts: [][]sim.Placed{sim.All(a100, "1g.5gb")}}
}

// create makes a pod that wants one instance.
func create(t *testing.T, client kubernetes.Interface, ns, name, profile string) {
	t.Helper()
	limits := corev1.ResourceList{corev1.ResourceName("nvidia.com/mig-" + profile): resource.MustParse("1")}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "x", Resources: corev1.ResourceRequirements{Limits: limits}}}}}
	if _, err := client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestVersionAndSpeed(t *testing.T) {
	c := shared.Get(t)
	got, err := c.Client().Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got.GitVersion != Version || got.Major != "1" || got.Minor != "37" {
		t.Errorf("the server is %s (%s.%s), want %s", got.GitVersion, got.Major, got.Minor, Version)
	}
	if c.Ready > 15*time.Second {
		t.Errorf("ready after %s, promised are 15 s", c.Ready)
	}
}

func TestPodRunsAndIsEvicted(t *testing.T) {
	c := shared.Get(t)
	ctx, client, ns := t.Context(), c.Client(), c.Namespace(t)
	c.AddNode(t, all1g("evict"))
	create(t, client, ns, "plain", "1g.5gb")
	Eventually(t, 15*time.Second, "the pod runs", func() (bool, string) {
		p, err := client.CoreV1().Pods(ns).Get(ctx, "plain", metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == "evict", errText(err)
	})
	if err := client.PolicyV1().Evictions(ns).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "plain", Namespace: ns}}); err != nil {
		t.Fatal(err)
	}
	Eventually(t, 10*time.Second, "the evicted pod is gone", func() (bool, string) {
		_, err := client.CoreV1().Pods(ns).Get(ctx, "plain", metav1.GetOptions{})
		return apierrors.IsNotFound(err), errText(err)
	})
	Eventually(t, 5*time.Second, "one eviction is in the audit log", func() (bool, string) {
		evictions := 0
		for _, e := range c.AuditEvents(t) {
			if e.Verb == "create" && e.ObjectRef.Resource == "pods" && e.ObjectRef.Subresource == "eviction" && e.ObjectRef.Namespace == ns &&
				e.ObjectRef.Name == "plain" && e.ResponseStatus.Code == 201 && e.User.Username == "admin" {
				evictions++
			}
		}
		return evictions == 1, fmt.Sprint(evictions)
	})
}

func TestSchedulerRefuses(t *testing.T) {
	c := shared.Get(t)
	client, ns := c.Client(), c.Namespace(t)
	c.AddNode(t, all1g("refuse"))
	Eventually(t, 30*time.Second, "only this test's node is left", func() (bool, string) {
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 1, errText(err)
	})
	create(t, client, ns, "wide", "2g.10gb")
	const want = "0/1 nodes are available: 1 Insufficient nvidia.com/mig-2g.10gb. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	Eventually(t, 10*time.Second, "the scheduler says why", func() (bool, string) {
		p, err := client.CoreV1().Pods(ns).Get(t.Context(), "wide", metav1.GetOptions{})
		if err != nil || len(p.Status.Conditions) == 0 {
			return false, errText(err)
		}
		got := p.Status.Conditions[0]
		return got.Type == corev1.PodScheduled && got.Status == corev1.ConditionFalse && got.Reason == corev1.PodReasonUnschedulable && got.Message == want, got.String()
	})
}

func TestUserIsHeldByRBAC(t *testing.T) {
	c := shared.Get(t)
	config, err := clientcmd.BuildConfigFromFlags("", c.KubeconfigFor(t, "mallory", "team-a", "team-b"))
	if err != nil {
		t.Fatal(err)
	}
	mallory := kubernetes.NewForConfigOrDie(config).CoreV1()
	c.Allow(t, "mallory", "configmaps")
	if _, err := mallory.ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := mallory.Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("a user without the right was answered with %v", err)
	}
	Eventually(t, 5*time.Second, "the audit log names the user and the groups", func() (bool, string) {
		for _, e := range c.AuditEvents(t) {
			if e.User.Username == "mallory" && e.ObjectRef.Resource == "secrets" && e.ResponseStatus.Code == 403 {
				got := e.User.Groups
				return len(got) == 3 && got[0] == "team-a" && got[1] == "team-b" && got[2] == "system:authenticated", got[0]
			}
		}
		return false, "no such request"
	})
}
