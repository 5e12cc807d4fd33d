package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// A plan that is approved and carried out at a terminal is on record like an executor's: the
// plan, the approval, and what the guard-rails count.
func TestTerminalIsOnRecord(t *testing.T) {
	c := newCell(t)
	runs, d, f := c.half(t, "Job")
	// What somebody said to an earlier plan of the name is nobody's to clear away here.
	earlier := plan.NewApproval(&v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: f.Plan, UID: "earlier"}}, "bob", nil, v1alpha1.Approve)
	store := plan.Store{Dynamic: c.Dynamic()}
	if _, err := store.Decide(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	c.deps.Requester = "alice"
	out, err := c.apply(t, d, f)
	if err != nil || out.Restarted != 1 {
		t.Fatal(out, err)
	}
	rem := c.read(t, f.Plan)
	if rem.Spec.Carrier != v1alpha1.Terminal || rem.Spec.Requester != "alice" || rem.Status.Phase != v1alpha1.Succeeded || !slices.Equal(rem.Status.ApprovedBy, []string{"alice"}) {
		t.Errorf("%+v", rem)
	}
	if len(rem.Status.Restarted) != 1 || rem.Status.Restarted[0].UID != runs.UID {
		t.Errorf("%v stopped, want %s", rem.Status.Restarted, runs.Name)
	}
	s, err := Stand(t.Context(), c.deps, c.ns)
	if err != nil || s.Plans["Succeeded"] != 1 || s.Figures.StoppedLastHour != 1 || s.Figures.EvictedLastHour != 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// Who carries a plan out at a terminal leaves an Approval in their name before the first step.
func TestTerminalLeavesAnApproval(t *testing.T) {
	c := newCell(t)
	_, d, f, _ := repartition(t, c)
	c.deps.Requester = "alice"
	rem := c.atTerminal(t, d, f, "")
	said, err := (plan.Store{Dynamic: c.Dynamic()}).Approvals(t.Context(), rem.Name)
	want := v1alpha1.ApprovalSpec{Plan: rem.Name, Remediation: string(rem.UID), Decision: v1alpha1.Approve, Approver: "alice", Via: "kubectl"}
	if err != nil || len(said) != 1 || fmt.Sprint(said[0].Spec) != fmt.Sprint(want) {
		t.Errorf("%+v, %v", said, err)
	}
	c.wrote(t, []write{{"create", "approvals", "", 201}})
}

// Where nothing can keep a plan on record, Events on the pod and on the node tell of its
// approval and its end.
func TestWitness(t *testing.T) {
	c := newCell(t)
	runs, d, f := c.half(t, "Job")
	waited := d.Pods.Names[0]
	c.deps = Witness(c.deps, "alice", func(err error) { t.Error(err) })
	if _, err := c.apply(t, d, f); err != nil {
		t.Fatal(err)
	}
	for ns, about := range map[string]string{c.ns: "Pod/" + waited, metav1.NamespaceDefault: "Node/" + f.Proof.Node} {
		list, err := c.Client().EventsV1().Events(ns).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, e := range list.Items {
			if strings.Contains(e.Note, "plan "+f.Plan[:12]+", approved by alice") && e.Regarding.Kind+"/"+e.Regarding.Name == about {
				reasons = append(reasons, e.Reason)
			}
		}
		slices.Sort(reasons)
		if !slices.Equal(reasons, []string{"PlanApproved", "StepDone"}) {
			t.Errorf("%s (beside %s): %q", about, runs.Name, reasons)
		}
	}
}

// An Event that cannot be made is told, and keeps nobody from anything.
func TestWitnessWithoutTheRight(t *testing.T) {
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", UID: "node"}})
	var made []string
	client.PrependReactor("create", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		e := a.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		made = append(made, e.Regarding.Kind+" "+e.Regarding.Namespace+"/"+e.Regarding.Name+" "+string(e.Regarding.UID))
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, e.Name, nil)
	})
	var untold []error
	d := Witness(Deps{Client: client, Now: time.Now}, "alice", func(err error) { untold = append(untold, err) })
	rem := &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 64)}, Spec: v1alpha1.RemediationSpec{Workload: incident.Ref{Namespace: "ml"}, Waiting: []v1alpha1.Pod{{Name: "x", UID: "x"}, {Name: "y", UID: "y"}}, Nodes: []string{"gpu-1", "gone"}, Node: "gpu-1"}}
	if err := d.Observe(t.Context(), rem, nil, audit.Approved); err != nil {
		t.Error(err)
	}
	if err := d.Observe(t.Context(), rem, &v1alpha1.Entry{}, audit.Begun); err != nil {
		t.Error(err)
	}
	if want := []string{"Pod ml/x x", "Node /gpu-1 node", "Node /gone gone"}; !slices.Equal(made, want) || len(untold) != 1 || !apierrors.IsForbidden(errors.Unwrap(untold[0])) && !strings.Contains(untold[0].Error(), "forbidden") {
		t.Errorf("%q, want %q; %v", made, want, untold)
	}
}

// Who presses Ctrl-C reads which pods were evicted, and that undoing does not bring them back.
func TestInterruptedSaysWhatStays(t *testing.T) {
	c := newCell(t)
	node, d, f, holders := repartition(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := Apply(ctx, c.deps, d.Incident, f.ID, f.Plan, func(s journal.Progress) {
		if strings.HasPrefix(s.Text, "wait until nobody holds") {
			cancel()
		}
	})
	var was []string
	for _, a := range f.Actions {
		if a.Verb == diagnosis.VerbRelayout {
			for _, v := range a.Relayout.Victims {
				was = append(was, fmt.Sprintf("pod %s/%s was evicted", v.Namespace, v.Name))
			}
		}
	}
	want := " (done before, and left so: " + strings.Join(was, ", ") + "); what else was begun has been taken back"
	if len(was) != len(holders) || !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "interrupted in step ") || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want ...%s", err, want)
	}
	c.asBefore(t, node)
	c.evictions(t, f, 3)
}
