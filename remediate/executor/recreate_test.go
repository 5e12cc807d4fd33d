package executor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// Who may write Jobs in the namespace has nothing made by the approver's rights but what
// the plan says: a copy that is not the one that was kept is no copy.
func TestCopyOfAnother(t *testing.T) {
	const keptNew = "unpend.dev/new"
	mine := func(c *cell) map[string]string {
		pod := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"intruder","namespace":%q},"spec":{"containers":[{"name":"x","image":"registry.example/x"}]}}`, c.ns)
		return map[string]string{"unpend.dev/old": pod, keptNew: pod}
	}
	for _, tc := range []struct {
		name          string
		before, after func(t *testing.T, c *cell, kept string) // the deletion of the pod
		says          string
		stays         bool
	}{
		{"made before", func(t *testing.T, c *cell, kept string) { c.intrude(t, kept, mine(c)) }, nil, "nothing was deleted, for no copy can be kept: job NS/COPY is there already, and is not one", true},
		{"edited since", nil, func(t *testing.T, c *cell, kept string) { c.editCopy(t, kept, mine(c)) }, "pod NS/notebook is gone, and its copy, job NS/COPY, is not as it was kept: nothing is made from it", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCell(t)
			c.gpuNode(t, 1)
			s := spec("1g.5gb", "")
			s.NodeSelector = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
			pod := c.pod(t, "notebook", s)
			c.finalizer(t, pod.Name, "example.com/wait")
			d, f := c.finds(t, diagnosis.FixSelector)
			m := c.machine(t, d, f, f.Actions[0])
			kept := "unpend-" + m.rem.Name[:10]
			if tc.before != nil {
				tc.before(t, c, kept)
			}
			if _, err := m.Advance(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tc.after != nil {
				tc.after(t, c, kept)
				c.finalizer(t, pod.Name)
			}
			controlplane.Eventually(t, 20*time.Second, "the plan ends", func() (bool, string) {
				if _, err := m.Advance(t.Context()); err != nil {
					t.Fatal(err)
				}
				return m.Phase().Ended(), fmt.Sprintf("%+v", m.rem.Status)
			})
			says := strings.NewReplacer("NS", c.ns, "COPY", kept).Replace(tc.says)
			if st := m.rem.Status; st.Phase != v1alpha1.Failed || !strings.Contains(st.Message, says) {
				t.Errorf("%s: %s", st.Phase, st.Message)
			}
			is, err := c.Client().CoreV1().Pods(c.ns).Get(t.Context(), "notebook", metav1.GetOptions{})
			if stays := err == nil && is.UID == pod.UID && is.DeletionTimestamp == nil; stays != tc.stays || !stays && !apierrors.IsNotFound(err) {
				t.Errorf("the pod stays: %v (%v), want %v", stays, err, tc.stays)
			}
			if list := c.pods(t); len(list) > 1 || len(list) == 1 && list[0].Name != "notebook" {
				t.Errorf("%d pods, the first is %s", len(list), list[0].Name)
			}
			job, err := c.Client().BatchV1().Jobs(c.ns).Get(t.Context(), kept, metav1.GetOptions{})
			if err != nil || job.Annotations[keptNew] != mine(c)[keptNew] {
				t.Errorf("another's job is not as it was: %v", err)
			}
			c.finalizer(t, pod.Name)
		})
	}
}

// intrude makes a Job as somebody else would.
func (c *cell) intrude(t *testing.T, name string, notes map[string]string) {
	t.Helper()
	yes := true
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: notes}, Spec: batchv1.JobSpec{Suspend: &yes, Template: corev1.PodTemplateSpec{
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "x", Image: "registry.example/x"}}}}}}
	if _, err := c.Client().BatchV1().Jobs(c.ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// editCopy changes a Job as somebody else would.
func (c *cell) editCopy(t *testing.T, name string, notes map[string]string) {
	t.Helper()
	controlplane.Eventually(t, 10*time.Second, "job "+name+" is changed", func() (bool, string) {
		job, err := c.Client().BatchV1().Jobs(c.ns).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			job.Annotations = notes
			_, err = c.Client().BatchV1().Jobs(c.ns).Update(t.Context(), job, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
}

// finalizer sets those of a pod that is there.
func (c *cell) finalizer(t *testing.T, name string, finalizers ...string) {
	t.Helper()
	controlplane.Eventually(t, 10*time.Second, "pod "+name+" has its finalizers", func() (bool, string) {
		p, err := c.Client().CoreV1().Pods(c.ns).Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, ""
		}
		if err == nil {
			p.Finalizers = finalizers
			_, err = c.Client().CoreV1().Pods(c.ns).Update(t.Context(), p, metav1.UpdateOptions{})
		}
		return err == nil, fmt.Sprint(err)
	})
}
