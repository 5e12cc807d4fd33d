package executor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// corruption is one thing of a journal that this program cannot have written.
type corruption struct {
	name  string
	spoil func(*v1alpha1.RemediationStatus) // nil: the name is the status, as only a patch can write it
	field string                            // that the message names
}

// entryAt spoils a line of the journal.
func entryAt(i int, spoil func(*v1alpha1.Entry)) func(*v1alpha1.RemediationStatus) {
	return func(st *v1alpha1.RemediationStatus) { spoil(&st.Journal[i]) }
}

// corruptions are of a journal that stands at the label of MIG manager: lock, cordon,
// three evictions and the wait have ended.
func corruptions() []corruption {
	hour := func(t metav1.MicroTime, n int) metav1.MicroTime {
		return metav1.NewMicroTime(t.Add(time.Duration(n) * time.Hour))
	}
	step := func(id v1alpha1.StepID) func(*v1alpha1.Entry) { return func(e *v1alpha1.Entry) { e.Step = id } }
	return append(ofFailures(), []corruption{
		{"an unknown step", entryAt(6, step("0/verify-links")), "status.journal[6].step"}, // also of a newer version
		{"a step without a name", entryAt(6, step("")), "status.journal[6].step"},
		{"a step of another action", entryAt(6, step("1/config")), "status.journal[6].step"},
		{"a step of no action", entryAt(6, step("-1/config")), "status.journal[6].step"},
		{"a step of another pod", entryAt(2, step("0/evict/ml/somebody")), "status.journal[2].step"},
		{"a step ahead of its turn", entryAt(6, step("0/release")), "status.journal[6].step"},
		{"a step that comes twice", entryAt(6, step("0/cordon")), "status.journal[6].step"},
		{"a step of the way back", entryAt(6, step("undo/0/config")), "status.journal[6].step"},
		{"a step is missing", func(st *v1alpha1.RemediationStatus) { st.Journal = append(st.Journal[:1], st.Journal[2:]...) }, "status.journal[1].step"},
		{"two are under way", entryAt(3, func(e *v1alpha1.Entry) { e.Ended = nil }), "status.journal[3].ended"},
		{"an end before its begin", entryAt(5, func(e *v1alpha1.Entry) { e.Ended = new(hour(e.Began, -1)) }), "status.journal[5].ended"},
		{"a begin that is to come", entryAt(6, func(e *v1alpha1.Entry) { e.Began, e.Deadline = hour(e.Began, 3), hour(e.Deadline, 3) }), "status.journal[6].began"},
		{"a deadline before its begin", entryAt(6, func(e *v1alpha1.Entry) { e.Deadline = hour(e.Began, -1) }), "status.journal[6].deadline"},
		{"a deadline in a thousand years", entryAt(6, func(e *v1alpha1.Entry) { e.Deadline = hour(e.Began, 24*365*200) }), "status.journal[6].deadline"},
		{"a grace of a day", entryAt(6, func(e *v1alpha1.Entry) { e.Grace = new(hour(e.Deadline, 24)) }), "status.journal[6].grace"},
		{"a grace before its deadline", entryAt(6, func(e *v1alpha1.Entry) { e.Grace = &e.Began }), "status.journal[6].grace"},
		{"a lease of no generation", entryAt(6, func(e *v1alpha1.Entry) { e.Generation = -4 }), "status.journal[6].generation"},
		{"a note of another step", entryAt(6, func(e *v1alpha1.Entry) { e.Note = "skip the rest" }), "status.journal[6].note"},
		{"a failure, and it runs", entryAt(5, func(e *v1alpha1.Entry) { e.Error = "no" }), "status.journal[5].error"},
		{"a failure of what is under way", entryAt(6, func(e *v1alpha1.Entry) { e.Error = "no" }), "status.journal[6].error"},
		{"negative progress", func(st *v1alpha1.RemediationStatus) { st.Progress = "-3/11" }, "status.progress"},
		{"huge progress", func(st *v1alpha1.RemediationStatus) { st.Progress = strings.Repeat("9", 400) + "/11" }, "status.progress"},
		{"no progress", func(st *v1alpha1.RemediationStatus) { st.Progress = "" }, "status.progress"},
		{"no begin", func(st *v1alpha1.RemediationStatus) { st.Began = nil }, "status.began"},
		{"a begin tomorrow", func(st *v1alpha1.RemediationStatus) { st.Began = new(hour(*st.Began, 24)) }, "status.began"},
		{"an end, and it runs", func(st *v1alpha1.RemediationStatus) { st.Ended = st.Began }, "status.ended"},
		{"fewer than no evictions", func(st *v1alpha1.RemediationStatus) { st.Evicted = -3 }, "status.evicted"},
		{"more evictions than pods", func(st *v1alpha1.RemediationStatus) { st.Evicted = 4 }, "status.evicted"},
		{"a pod that was not proved", func(st *v1alpha1.RemediationStatus) { st.Proved = st.Proved[1:] }, "status.proved"},
		{"a pod that was proved twice", func(st *v1alpha1.RemediationStatus) { st.Proved = append(st.Proved, st.Proved[0]) }, "status.proved[3]"},
		{"no journal of a marked node", func(st *v1alpha1.RemediationStatus) { st.Journal = nil }, "status.progress"},
		{"a huge journal", func(st *v1alpha1.RemediationStatus) {
			for range 5000 {
				st.Journal = append(st.Journal, st.Journal[5])
			}
		}, "status.journal[6].ended"},
	}...)
}

// ofFailures are of what a status says of a failure.
func ofFailures() []corruption {
	return []corruption{
		{"a reason to turn back, and it runs", func(st *v1alpha1.RemediationStatus) { st.Failure = "no" }, "status.failure"},
		{"how it ends, and it runs", func(st *v1alpha1.RemediationStatus) { st.EndsAs = v1alpha1.Succeeded }, "status.endsAs"},
		{"parking, and it runs", func(st *v1alpha1.RemediationStatus) { st.Parking = "undo/0/config" }, "status.parking"},
		{"undoing without a failure", func(st *v1alpha1.RemediationStatus) { st.Phase = v1alpha1.Undoing }, "status.phase"},
		{"undoing without a reason", undoing(func(st *v1alpha1.RemediationStatus) { st.Failure = "" }), "status.failure"},
		{"undoing, and ends nowhere", undoing(func(st *v1alpha1.RemediationStatus) { st.EndsAs = "" }), "status.endsAs"},
		{"undoing, and succeeds", undoing(func(st *v1alpha1.RemediationStatus) { st.EndsAs = v1alpha1.Succeeded }), "status.endsAs"},
		{"parked without a step", undoing(func(st *v1alpha1.RemediationStatus) { st.EndsAs = v1alpha1.Parked }), "status.parking"},
		{"parking at no step", undoing(func(st *v1alpha1.RemediationStatus) { st.EndsAs, st.Parking = v1alpha1.Parked, "nowhere" }), "status.parking"},
		{"parking at what went well", undoing(func(st *v1alpha1.RemediationStatus) { st.EndsAs, st.Parking = v1alpha1.Parked, "undo/0/config" }), "status.parking"},
	}
}

// undoing is the journal of a way back that has just begun, spoiled.
func undoing(spoil func(*v1alpha1.RemediationStatus)) func(*v1alpha1.RemediationStatus) {
	return func(st *v1alpha1.RemediationStatus) {
		last := &st.Journal[len(st.Journal)-1]
		last.Ended, last.Error = &last.Began, "no"
		st.Phase, st.Failure, st.EndsAs = v1alpha1.Undoing, "no", v1alpha1.Failed
		spoil(st)
	}
}

// raw are what typed clients cannot write: patches of the status. Most of it the API
// server refuses; the rest cannot be read, and is no less stopped.
var raw = map[string]string{
	`{"phase":"Verifying"}`:                      "phase",
	`{"endsAs":"Verified"}`:                      "endsAs",
	`{"evicted":"many"}`:                         "evicted",
	`{"evicted":1e30}`:                           "evicted",
	`{"observedGeneration":1e30}`:                "observedGeneration",
	`{"journal":[{"step":"0/config"}]}`:          "journal[0]",
	`{"journal":{"0/config":"done"}}`:            "journal",
	`{"began":"yesterday"}`:                      "began",
	`{"proved":[{"uid":"a","generation":1e30}]}`: "generation",
}

// promiseR28: a journal that is not one of ours stops the plan. The node that carries its
// mark is parked, which is the only write; the message names the field. Where nothing
// is marked nothing is written. As it was, the same journal is gone on with.
func promiseR28(t *testing.T, l lanes) {
	cp := <-l
	t.Cleanup(func() { l <- cp })
	c := newCellOn(t, cp)
	node, rem := c.approved(t)
	c.standAt(t, rem, "0/config")
	sound, mark := c.read(t, rem.Name).Status, c.node(t, node).Annotations[diagnosis.OperationAnnotation]
	before := c.accepted(t)
	held, of, parked, byAPI := 0, 0, 0, 0
	try := func(t *testing.T, k corruption, marked bool) {
		c.standing(t, rem, &sound, node, mark, marked)
		if k.spoil == nil && !c.takes(t, rem, k) {
			byAPI++
			return
		}
		if k.spoil != nil {
			k.spoil(&rem.Status)
			c.save(t, rem)
		}
		c.locked(t, node, rem.Name)
		c.stopped(t, rem, node, marked, k.field)
		c.noLocks(t)
		if marked {
			parked++
		}
	}
	cases := corruptions()
	for _, status := range slices.Sorted(maps.Keys(raw)) {
		cases = append(cases, corruption{name: status, field: raw[status]})
	}
	for _, marked := range []bool{true, false} {
		for _, k := range controlplane.Some(cases, 3) {
			if of++; t.Run(fmt.Sprintf("%s, marked %v", k.name, marked), func(t *testing.T) { try(t, k, marked) }) {
				held++
			}
		}
	}
	c.wrote(t, append(before, slices.Repeat([]write{{"patch", "nodes", "", 200}}, parked)...))
	t.Run("as it was", func(t *testing.T) {
		other := <-l // no other pod is there to take what is made for its own
		t.Cleanup(func() { l <- other })
		c := newCellOn(t, other)
		_, rem := c.approved(t)
		c.standAt(t, rem, "0/config")
		ended(t, c.carriedOut(t, rem.Name, c.one()), v1alpha1.Succeeded)
	})
	report(t, held, of, fmt.Sprintf("each names the field, %d parked, %d refused by the API server, 0 other writes", parked, byAPI))
}

// takes says whether the API server takes a status that typed clients cannot write; where it
// does not, its answer names the field.
func (c *cell) takes(t *testing.T, rem *v1alpha1.Remediation, k corruption) bool {
	t.Helper()
	_, err := c.Dynamic().Resource(v1alpha1.Remediations).Patch(t.Context(), rem.Name, types.MergePatchType, []byte(`{"status":`+k.name+`}`), metav1.PatchOptions{}, "status")
	if err != nil && !strings.Contains(err.Error(), k.field) {
		t.Errorf("refused, and not for %s: %v", k.field, err)
	}
	return err == nil
}

// standAt carries a plan out until a step is in the journal, and crashes.
func (c *cell) standAt(t *testing.T, rem *v1alpha1.Remediation, step string) {
	t.Helper()
	c.crash.after = `"step":"` + step + `"`
	defer func() { c.crash.after = "" }()
	x := c.executor()
	controlplane.Eventually(t, 30*time.Second, "the plan stands at "+step, func() (bool, string) {
		_, err := c.look(t, x, rem.Name)
		now := c.read(t, rem.Name)
		return strings.Contains(stepsOf(now), step), fmt.Sprint(now.Status.Phase, now.Status.Message, err)
	})
}

func (c *cell) read(t *testing.T, name string) *v1alpha1.Remediation {
	t.Helper()
	rem, err := plan.Store{Dynamic: c.Dynamic()}.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return rem
}

// standing puts a plan back to where it stood, and the mark on its node, or off it.
func (c *cell) standing(t *testing.T, rem *v1alpha1.Remediation, at *v1alpha1.RemediationStatus, node, mark string, marked bool) {
	t.Helper()
	rem.ResourceVersion = c.head(t, rem.Name).GetResourceVersion()
	rem.Status = *at.DeepCopy()
	c.save(t, rem)
	c.editNode(t, node, func(n *corev1.Node) {
		n.Spec.Unschedulable = marked
		if n.Annotations[diagnosis.OperationAnnotation] = mark; !marked {
			delete(n.Annotations, diagnosis.OperationAnnotation)
		}
	})
}

func (c *cell) head(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	u, err := c.Dynamic().Resource(v1alpha1.Remediations).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// locked has the plan hold the lock of its node, as when it was begun.
func (c *cell) locked(t *testing.T, node, name string) {
	t.Helper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "unpend-node-" + node}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &name}}
	if _, err := c.Client().CoordinationV1().Leases(c.ns).Create(t.Context(), l, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// stopped looks once, and once more, and wants the plan to have ended, and its node to
// be as it was, parked where it is marked.
func (c *cell) stopped(t *testing.T, rem *v1alpha1.Remediation, node string, marked bool, field string) {
	t.Helper()
	for range 2 {
		if _, err := c.executor().Look(t.Context(), rem.Name); err != nil {
			t.Fatal(err)
		}
	}
	phase, _, _ := unstructured.NestedString(c.head(t, rem.Name).Object, "status", "phase")
	message, _, _ := unstructured.NestedString(c.head(t, rem.Name).Object, "status", "message")
	want := v1alpha1.Failed
	if marked {
		want = v1alpha1.Parked
	}
	if phase != string(want) || !strings.Contains(message, field) {
		t.Errorf("%s, want %s and the field %s: %s", phase, want, field, message)
	}
	n := c.node(t, node)
	op, err := diagnosis.OperationOn(n)
	switch {
	case err != nil:
		t.Error(err)
	case n.Labels[nodeprobe.LabelMIGConfig] != "all-1g.5gb" || n.Spec.Unschedulable != marked || (op != nil) != marked:
		t.Errorf("unschedulable %v, config %s, mark %+v", n.Spec.Unschedulable, n.Labels[nodeprobe.LabelMIGConfig], op)
	case marked && (op.Step != "parked" || !strings.Contains(op.Parked, field)):
		t.Errorf("parked with %+v", op)
	}
}
