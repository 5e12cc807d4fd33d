package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR27: what a program from before schemas were numbered has begun is finished or
// taken back; what a newer one has written is left alone, and said; what a later one of
// the same schema has written besides is there afterwards.
func promiseR27(t *testing.T, l lanes) {
	var scenes []scene
	for _, step := range []string{"0/lock", "0/cordon", "0/empty", "0/config", "0/manager", "0/release", "undo/0/config", "undo/0/release"} {
		scenes = append(scenes, scene{"begun by an older one, at " + strings.ReplaceAll(step, "/", "-"), func(t *testing.T, c *cell) { c.finishesOlder(t, step) }})
	}
	before := len(scenes)
	for _, n := range newerPlans() {
		scenes = append(scenes, scene{"a newer one's, " + n.name, func(t *testing.T, c *cell) { c.leavesNewer(t, n) }})
	}
	newer := len(scenes) - before
	scenes = append(scenes, scene{"fields of a later one", keepsFields})
	l.play(t, scenes, func() string {
		return fmt.Sprintf("%d begun by an older version came to their end, %d of a newer one were left alone without a write, and what a later one of this schema had added was kept", before, newer)
	})
}

// finishesOlder has a plan stand at a step as a program has left it that numbered no
// schema, and goes on from there.
func (c *cell) finishesOlder(t *testing.T, step string) {
	node, rem := c.approved(t)
	want := v1alpha1.Succeeded
	if strings.HasPrefix(step, "undo/") {
		c.stack.SetFaults(node, sim.Faults{Fail: true})
		want = v1alpha1.Failed
	}
	c.standAt(t, rem, step)
	old := c.asUnnumbered(t, rem.Name, node)
	if old == rem.Name {
		t.Fatal("the older one's plan has the name of today's")
	}
	got := c.carriedOut(t, old, c.one())
	ended(t, got, want)
	if got.Status.Schema != v1alpha1.Schema || got.Spec.Schema != 0 {
		t.Errorf("schema %d of the journal, %d of the plan", got.Status.Schema, got.Spec.Schema)
	}
	if n := c.node(t, node); n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
		t.Errorf("node %s: unschedulable %v, mark %q", node, n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
	}
	if want == v1alpha1.Failed {
		c.asBefore(t, node)
	}
	c.noLocks(t)
}

// unnumbered is a plan, or a mark, as it was written before schemas were numbered: without one,
// and without the wait in the plan's name.
func unnumbered(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	unstructured.RemoveNestedField(u.Object, "spec", "since")
	unstructured.RemoveNestedField(u.Object, "spec", "schema")
	unstructured.RemoveNestedField(u.Object, "status", "schema")
	var rem v1alpha1.Remediation
	into(t, u.Object, &rem)
	u.SetName(plan.Name(rem.Spec))
}

func markOf(t *testing.T, text string) map[string]any {
	t.Helper()
	mark := map[string]any{}
	if text == "" {
		return mark
	}
	into(t, json.RawMessage(text), &mark)
	delete(mark, "schema")
	return mark
}

func into(t *testing.T, from, to any) {
	t.Helper()
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// asUnnumbered has a recorded plan, its approval, its mark and its lock be an older program's,
// and gives its name.
func (c *cell) asUnnumbered(t *testing.T, name, node string) string {
	t.Helper()
	u := c.head(t, name)
	c.forget(t)
	unnumbered(t, u)
	status := u.Object["status"]
	u.SetResourceVersion("")
	plans := c.Dynamic().Resource(v1alpha1.Remediations)
	made, err := plans.Create(t.Context(), u, metav1.CreateOptions{FieldManager: plan.FieldManager})
	if err != nil {
		t.Fatal(err)
	}
	made.Object["status"] = status
	if _, err := plans.UpdateStatus(t.Context(), made, metav1.UpdateOptions{FieldManager: plan.FieldManager}); err != nil {
		t.Fatal(err)
	}
	c.decide(t, c.read(t, u.GetName()), "alice", v1alpha1.Approve)
	c.editNode(t, node, func(n *corev1.Node) {
		if mark := markOf(t, n.Annotations[diagnosis.OperationAnnotation]); len(mark) > 0 {
			mark["op"], mark["id"] = u.GetName(), string(made.GetUID())
			n.Annotations[diagnosis.OperationAnnotation] = string(diagnosis.MustJSON(mark))
		}
	})
	c.editLocks(t, func(l *coordinationv1.Lease) { *l.Spec.HolderIdentity = u.GetName() })
	return u.GetName()
}

func (c *cell) editLocks(t *testing.T, edit func(*coordinationv1.Lease)) {
	t.Helper()
	leases := c.Client().CoordinationV1().Leases(c.ns)
	list, err := leases.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		edit(&list.Items[i])
		if _, err := leases.Update(t.Context(), &list.Items[i], metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// newerPlan is one that a newer program has written.
type newerPlan struct {
	name  string
	step  string // where it stands; empty: nobody has begun it
	edit  func(*v1alpha1.Remediation)
	phase v1alpha1.Phase // that it then has
}

func newerPlans() []newerPlan {
	asIs := func(*v1alpha1.Remediation) {}
	return []newerPlan{
		{"approved and not begun", "", asIs, ""},
		{"under way", "0/config", asIs, v1alpha1.Running},
		{"on the way back", "undo/0/config", asIs, v1alpha1.Undoing},
		{"ended long ago", "0/config", func(rem *v1alpha1.Remediation) {
			rem.Status.Phase, rem.Status.Ended = v1alpha1.Failed, new(metav1.NewMicroTime(time.Now().Add(-48*time.Hour)))
		}, v1alpha1.Failed},
	}
}

// leavesNewer wants no write about a newer program's plan, whatever there would be to do;
// that it is left alone is said; and the program that knows it goes on where it stood.
func (c *cell) leavesNewer(t *testing.T, n newerPlan) {
	node, rem := c.approved(t)
	if strings.HasPrefix(n.step, "undo/") {
		c.stack.SetFaults(node, sim.Faults{Fail: true})
	}
	if n.step != "" {
		c.standAt(t, rem, n.step)
	}
	rem = c.read(t, rem.Name)
	n.edit(rem)
	c.save(t, rem)
	c.schema(t, rem.Name, node, v1alpha1.Schema+1)
	before, marked, wrote := c.head(t, rem.Name), c.node(t, node).Annotations[diagnosis.OperationAnnotation], c.accepted(t)

	var log lines
	c.deps.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	x := c.executor()
	x.carrierGone, x.Keep = 0, time.Nanosecond
	for range 3 {
		if wait, err := x.Look(t.Context(), rem.Name); wait != 0 || err != nil {
			t.Errorf("looks again in %s, %v", wait, err)
		}
	}
	stale := rem.DeepCopy()
	stale.ResourceVersion = before.GetResourceVersion()
	if err := (plan.Store{Dynamic: c.Dynamic()}).Save(t.Context(), stale); !errors.Is(err, plan.ErrNewer) {
		t.Errorf("the journal was written: %v", err)
	}
	again := rem.DeepCopy()
	again.ResourceVersion, again.UID = "", ""
	if _, err := (plan.Store{Dynamic: c.Dynamic()}).Record(t.Context(), again); !errors.Is(err, plan.ErrNewer) {
		t.Errorf("the plan was recorded again: %v", err)
	}
	if now := c.head(t, rem.Name); now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("it was written: %v", now.Object["status"])
	}
	if now := c.node(t, node).Annotations[diagnosis.OperationAnnotation]; now != marked {
		t.Errorf("the mark is %s, it was %s", now, marked)
	}
	c.wrote(t, wrote)
	c.saysNewer(t, rem.Name, node, n, &log)
	if n.phase.Ended() {
		return
	}
	c.schema(t, rem.Name, node, v1alpha1.Schema) // its own program is back
	if got := c.carriedOut(t, rem.Name, c.one()); got.Status.Phase != v1alpha1.Succeeded && !strings.HasPrefix(n.step, "undo/") {
		t.Errorf("%s: %s", got.Status.Phase, got.Status.Message)
	}
}

// saysNewer wants it told: once in the log, in the status and its figure, and who would
// release the node is refused.
func (c *cell) saysNewer(t *testing.T, name, node string, n newerPlan, log *lines) {
	t.Helper()
	if said := log.about(t, name); len(said) != 1 || said[0].Level != "WARN" || said[0].Msg != "a plan was written by a newer unpend and is left alone" {
		t.Errorf("the log says %+v", said)
	}
	is, err := Stand(t.Context(), c.deps, c.ns)
	if err != nil {
		t.Fatal(err)
	}
	var want []Newer
	if !n.phase.Ended() {
		want = append(want, Newer{Plan: name, Phase: n.phase, Schema: 2, Way: "run the version that wrote it, which finishes it; or, as an administrator: kubectl delete remediation " + name})
	}
	if n.step != "" {
		want = append(want, Newer{Node: node, Schema: 2, Way: "run the version that marked it; its 'unpend release " + node + "' gives it back"})
		if _, err := Holding(t.Context(), c.deps, c.ns, c.node(t, node)); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), "marked by a newer unpend (schema 2, this one knows 1)") {
			t.Errorf("its node may be released: %v", err)
		}
	}
	if !slices.Equal(is.Newer, want) || len(is.Orphans) > 0 {
		t.Errorf("status says %+v, orphans %+v; want %+v", is.Newer, is.Orphans, want)
	}
	nodes, err := c.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	plans, err := plan.Store{Dynamic: c.Dynamic()}.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := newMetrics()
	m.stand(plans, nodes.Items)
	if figure := testutil.ToFloat64(m.newer); int(figure) != len(want) {
		t.Errorf("unpend_remediation_newer is %v, want %d", figure, len(want))
	}
}

// schema has a plan's journal and its mark say that they are of a schema.
func (c *cell) schema(t *testing.T, name, node string, n int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"schema":%d}}`, n)
	if _, err := c.Dynamic().Resource(v1alpha1.Remediations).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	c.editNode(t, node, func(o *corev1.Node) {
		mark := markOf(t, o.Annotations[diagnosis.OperationAnnotation])
		if mark["schema"] = n; len(mark) > 1 {
			o.Annotations[diagnosis.OperationAnnotation] = string(diagnosis.MustJSON(mark))
		}
	})
}

// keepsFields: the CRD is a later version's, and that has written fields of its own.
func keepsFields(t *testing.T, c *cell) {
	c.laterCRD(t)
	node, rem := c.approved(t)
	c.standAt(t, rem, "0/config")
	patch := []byte(`[{"op":"add","path":"/status/later","value":{"why":"x"}},{"op":"add","path":"/status/journal/0/later","value":3},{"op":"add","path":"/status/journal/6/later","value":[7]}]`)
	plans := c.Dynamic().Resource(v1alpha1.Remediations)
	controlplane.Eventually(t, 20*time.Second, "the API server takes the fields", func() (bool, string) {
		u, err := plans.Patch(t.Context(), rem.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
		if err != nil {
			return false, err.Error()
		}
		why, _, err := unstructured.NestedString(u.Object, "status", "later", "why")
		return why == "x" && err == nil, fmt.Sprint(err)
	})
	c.editNode(t, node, func(n *corev1.Node) {
		mark := markOf(t, n.Annotations[diagnosis.OperationAnnotation])
		mark["later"] = true
		n.Annotations[diagnosis.OperationAnnotation] = string(diagnosis.MustJSON(mark))
	})
	var seen string
	c.on["wait for MIG manager"] = func() { seen = c.node(t, node).Annotations[diagnosis.OperationAnnotation] }
	ended(t, c.carriedOut(t, rem.Name, c.one()), v1alpha1.Succeeded)
	status := c.head(t, rem.Name).Object["status"].(map[string]any)
	journal := status["journal"].([]any)
	got := fmt.Sprint(status["later"], journal[0].(map[string]any)["later"], journal[6].(map[string]any)["later"], journal[7].(map[string]any)["later"])
	if got != "map[why:x] 3 [7] <nil>" {
		t.Errorf("kept of the journal: %s", got)
	}
	if mark := markOf(t, seen); mark["later"] != true || !strings.HasPrefix(fmt.Sprint(mark["step"]), "config ") {
		t.Errorf("the mark was then %s", seen)
	}
}

// laterCRD has the API server take fields of the status that this version does not know.
func (c *cell) laterCRD(t *testing.T) {
	t.Helper()
	crds := c.Dynamic().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	const status = "/spec/versions/0/schema/openAPIV3Schema/properties/status"
	set := func(op string) error {
		patch := fmt.Sprintf(`[{"op":%q,"path":"%[2]s/x-kubernetes-preserve-unknown-fields","value":true},{"op":%[1]q,"path":"%[2]s/properties/journal/items/x-kubernetes-preserve-unknown-fields","value":true}]`, op, status)
		_, err := crds.Patch(context.WithoutCancel(t.Context()), "remediations.unpend.dev", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	if err := set("add"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set("remove"); err != nil {
			t.Error(err)
		}
	})
}
