package executor

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/testdata/controlplane"
)

// quota limits the namespace to so many of a MIG profile, and waits until that is in
// force.
func (c *cell) quota(t *testing.T, hard string) {
	t.Helper()
	quotas := c.Client().CoreV1().ResourceQuotas(c.ns)
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "mig"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.nvidia.com/mig-1g.5gb": resource.MustParse(hard)}}}
	if _, err := quotas.Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, 20*time.Second, "the quota is in force", func() (bool, string) {
		got, err := quotas.Get(t.Context(), "mig", metav1.GetOptions{})
		return err == nil && len(got.Status.Used) > 0, "no status"
	})
}

func (c *cell) hard(t *testing.T) string {
	t.Helper()
	q, err := c.Client().CoreV1().ResourceQuotas(c.ns).Get(t.Context(), "mig", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := q.Spec.Hard["requests.nvidia.com/mig-1g.5gb"]
	return n.String()
}

// A quota is raised by what the refused replicas need; the API server then takes
// them, and they run.
func TestQuotaIsRaised(t *testing.T) {
	c := newCell(t)
	c.gpuNode(t, 1)
	c.quota(t, "1")
	c.deployment(t, "serving", 3, spec("1g.5gb", ""))
	c.running(t, "serving", 1)
	d, f := c.finds(t, diagnosis.RaiseQuota)
	if d.Causes[0].ID != diagnosis.QuotaExceeded || d.Causes[0].Certainty != diagnosis.Proven || d.Workload.Kind != "Deployment" || d.Pods.Waiting != 2 || len(d.Pods.Names) != 0 {
		t.Errorf("%+v of %v, pods %+v", d.Causes[0], d.Workload, d.Pods)
	}
	out, err := c.apply(t, d, f)
	if err != nil || out.Pod == "" || out.Evicted != 0 {
		t.Errorf("outcome %+v, %v", out, err)
	}
	c.running(t, "serving", 3)
	if n := c.hard(t); n != "3" {
		t.Errorf("the quota allows %s, want 3", n)
	}
	c.wrote(t, []write{{"patch", "resourcequotas", "", 200}, {"patch", "replicasets", "", 200}})
	c.evictions(t, f, 0)
}

// What somebody else allowed since the re-proof is not taken back.
func TestRaisedQuotaIsLeftAlone(t *testing.T) {
	c := newCell(t)
	c.gpuNode(t, 1)
	c.quota(t, "0")
	c.deployment(t, "serving", 1, spec("1g.5gb", ""))
	d, f := c.finds(t, diagnosis.RaiseQuota)
	c.on["patch resourcequota/mig"] = func() {
		controlplane.Eventually(t, 10*time.Second, "somebody raises the quota", func() (bool, string) {
			q, err := c.Client().CoreV1().ResourceQuotas(c.ns).Get(t.Context(), "mig", metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			q.Spec.Hard["requests.nvidia.com/mig-1g.5gb"] = resource.MustParse("7")
			_, err = c.Client().CoreV1().ResourceQuotas(c.ns).Update(t.Context(), q, metav1.UpdateOptions{})
			return err == nil, "not written"
		})
	}
	if _, err := c.apply(t, d, f); !errors.Is(err, plan.ErrStale) || !strings.Contains(err.Error(), `is "7", the plan relies on "0"`) {
		t.Error(err)
	}
	if n := c.hard(t); n != "7" {
		t.Errorf("the quota allows %s, want 7", n)
	}
	c.wrote(t, nil)
}

// What a change of requests does not speak of stays in the workload as it is: of env
// the diagnosis knows no values.
func TestChangedRequestsLeaveTheRest(t *testing.T) {
	c := newCell(t)
	c.gpuNode(t, 1)
	lr := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "limits"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
		Max: corev1.ResourceList{"nvidia.com/mig-1g.5gb": resource.MustParse("2")}}}}}
	if _, err := c.Client().CoreV1().LimitRanges(c.ns).Create(t.Context(), lr, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s := spec("1g.5gb", "")
	s.Containers[0].Resources.Limits["nvidia.com/mig-1g.5gb"] = resource.MustParse("3")
	s.Containers[0].Env = []corev1.EnvVar{{Name: "MODEL", Value: "resnet"}}
	c.deployment(t, "serving", 1, s)
	d, f := c.finds(t, diagnosis.ChangeRequest)
	if out, err := c.apply(t, d, f); err != nil || out.Pod == "" {
		t.Fatalf("outcome %+v, %v", out, err)
	}
	for _, p := range c.running(t, "serving", 1) {
		k := p.Spec.Containers[0]
		n := k.Resources.Limits["nvidia.com/mig-1g.5gb"]
		if len(k.Env) != 1 || k.Env[0].Value != "resnet" || n.Value() != 2 || k.Image != s.Containers[0].Image {
			t.Errorf("container %+v", k)
		}
	}
}
