package executor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// forgetful is an executor that forgets a plan as soon as it has ended.
func (c *cell) forgetful() *Executor {
	x := c.executor()
	x.Keep = time.Nanosecond
	return x
}

// keeps wants the entry and its plan to be there still, after a look.
func (c *cell) keeps(t *testing.T, x *Executor, name, layouts string) {
	t.Helper()
	if again, err := x.Look(t.Context(), name); again != sweepAgain || err != nil {
		t.Errorf("looks again in %s, %v", again, err)
	}
	if is := c.layouts(t); is != layouts {
		t.Errorf("the layouts are\n%s", is)
	}
	c.read(t, name)
}

func (c *cell) forgotten(t *testing.T, name string) {
	t.Helper()
	if _, err := (plan.Store{Dynamic: c.Dynamic()}).Get(t.Context(), name); !apierrors.IsNotFound(err) {
		t.Errorf("the plan is there: %v", err)
	}
}

// An entry of ours goes when its plan is forgotten, once nobody needs it: no node, none on
// its way back, no plan that has not ended. What the team has written stays to the byte.
func TestEntryIsSwept(t *testing.T) {
	c := newCell(t)
	node, f, rem := c.mended(t)
	config, with := f.Actions[0].Relayout.Config, c.layouts(t)
	x := c.forgetful()
	t.Run("the node asks for it", func(t *testing.T) { c.keeps(t, x, rem.Name, with) })
	t.Run("the node would go back to it", func(t *testing.T) {
		c.editNode(t, node, func(n *corev1.Node) {
			n.Labels[nodeprobe.LabelMIGConfig], n.Annotations[diagnosis.OperationAnnotation] = "all-1g.5gb", `{"op":"x","id":"y","priorMigConfig":"`+config+`"}`
		})
		c.keeps(t, x, rem.Name, with)
		c.editNode(t, node, func(n *corev1.Node) { delete(n.Annotations, diagnosis.OperationAnnotation) })
	})
	t.Run("a plan is about it", func(t *testing.T) {
		other := rem.DeepCopy()
		other.ObjectMeta, other.Status = metav1.ObjectMeta{}, v1alpha1.RemediationStatus{}
		other.Spec.Actions[0].Relayout.ConfigMap, other.Spec.Actions[0].Relayout.Entry = nil, nil
		other.Name = plan.Name(other.Spec)
		other, err := plan.Store{Dynamic: c.Dynamic()}.Record(t.Context(), other)
		if err != nil {
			t.Fatal(err)
		}
		c.keeps(t, x, rem.Name, with)
		if err := (plan.Store{Dynamic: c.Dynamic()}).Forget(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the kill switch", func(t *testing.T) {
		maps := c.Client().CoreV1().ConfigMaps(c.ns)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: guard.ConfigMap}, Data: map[string]string{guard.PausedKey: "true"}}
		if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.keeps(t, x, rem.Name, with)
		if err := maps.Delete(t.Context(), guard.ConfigMap, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("another leads", func(t *testing.T) {
		x := c.forgetful()
		x.Leads = func(context.Context) (string, int64, error) { return "", 0, errors.New("another leads now") }
		if _, err := x.Look(t.Context(), rem.Name); err == nil || c.layouts(t) != with {
			t.Errorf("%v\n%s", err, c.layouts(t))
		}
	})
	t.Run("off the record", func(t *testing.T) {
		x := c.forgetful()
		x.Observe = func(context.Context, *v1alpha1.Remediation, *v1alpha1.Entry, audit.Result) error {
			return errors.New("the disk is full")
		}
		if _, err := x.Look(t.Context(), rem.Name); err == nil || c.layouts(t) != with {
			t.Errorf("%v\n%s", err, c.layouts(t))
		}
	})
	t.Run("nobody needs it", func(t *testing.T) {
		var record []string
		x := c.forgetful()
		x.Observe = func(_ context.Context, _ *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) error {
			record = append(record, string(e.Step)+" "+string(result))
			return nil
		}
		if _, err := x.Look(t.Context(), rem.Name); err != nil {
			t.Fatal(err)
		}
		if is := c.layouts(t); is != teamsLayouts {
			t.Errorf("the layouts are\n%s", is)
		}
		if want := []string{"sweep/" + config + " " + string(audit.Begun), "sweep/" + config + " " + string(audit.Done)}; !slices.Equal(record, want) {
			t.Errorf("on record %q, want %q", record, want)
		}
		c.forgotten(t, rem.Name)
	})
}

// An entry that somebody has written to, be it a comment, is theirs: it stays, and its plan
// is forgotten. Where the layouts cannot be read, nothing is done.
func TestEntryOfOthersStays(t *testing.T) {
	c := newCell(t)
	node, f, rem := c.mended(t)
	c.editNode(t, node, relabelled("all-1g.5gb"))
	config, with := f.Actions[0].Relayout.Config, c.layouts(t)
	c.editConfig(t, func(string) string { return "mig-configs: [" })
	c.keeps(t, c.forgetful(), rem.Name, "mig-configs: [")
	theirs := strings.Replace(with, config+":\n", config+": # we use this one too\n", 1)
	c.editConfig(t, func(string) string { return theirs })
	if _, err := c.forgetful().Look(t.Context(), rem.Name); err != nil {
		t.Fatal(err)
	}
	if is := c.layouts(t); is != theirs {
		t.Errorf("the layouts are\n%s", is)
	}
	c.forgotten(t, rem.Name)
}
