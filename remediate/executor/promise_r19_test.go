package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// spoilers are the fields of a plan, and what each is set to besides anything.
var spoilers = map[string]struct {
	path   []any
	values []any
}{
	"actions":         {[]any{"actions"}, []any{nil, []any{}, []any{map[string]any{}}, "all", map[string]any{}}},
	"verb":            {[]any{"actions", 0, "verb"}, []any{nil, "", "*", "delete", "drain", "Relayout", "evict"}},
	"kind":            {[]any{"actions", 0, "target", "kind"}, []any{nil, "", "*", "NodeList", "Namespace", "Secret"}},
	"name":            {[]any{"actions", 0, "target", "name"}, []any{nil, "", "*", "gpu-*", "a,b", "../x"}},
	"uid":             {[]any{"actions", 0, "target", "uid"}, []any{nil, "", "*", "another", " "}},
	"namespace":       {[]any{"actions", 0, "target", "namespace"}, []any{"default", "*"}},
	"relies":          {[]any{"actions", 0, "relies"}, []any{nil, map[string]any{}, map[string]any{"unschedulable": "*"}}},
	"patch":           {[]any{"actions", 0, "patch"}, []any{map[string]any{"spec": nil}, "*", []any{}}},
	"relayout":        {[]any{"actions", 0, "relayout"}, []any{nil, map[string]any{}, "*"}},
	"config":          {[]any{"actions", 0, "relayout", "config"}, []any{nil, "", "*", "all-disabled"}},
	"gpus":            {[]any{"actions", 0, "relayout", "gpus"}, []any{nil, []any{}, []any{int64(-1)}, []any{int64(0), int64(0)}, "all"}},
	"layouts":         {[]any{"actions", 0, "relayout", "layouts"}, []any{nil, map[string]any{}, "all", map[string]any{"all": map[string]any{"1g.5gb": int64(7)}}, map[string]any{"0": "1g.5gb"}, map[string]any{"0": map[string]any{"1g.5gb": int64(-7)}}}},
	"victims":         {[]any{"actions", 0, "relayout", "victims"}, []any{nil, []any{}, []any{map[string]any{}}, "all"}},
	"victim's name":   {[]any{"actions", 0, "relayout", "victims", 0, "name"}, []any{nil, "", "*"}},
	"victim's uid":    {[]any{"actions", 0, "relayout", "victims", 0, "uid"}, []any{nil, "", "*", "another"}},
	"victim's kind":   {[]any{"actions", 0, "relayout", "victims", 0, "kind"}, []any{nil, "", "Namespace"}},
	"entry":           {[]any{"actions", 0, "relayout", "entry"}, []any{[]any{}, "x", map[string]any{}}},
	"configMap":       {[]any{"actions", 0, "relayout", "configMap"}, []any{map[string]any{}, map[string]any{"kind": "Secret", "name": "x", "namespace": "kube-system", "uid": "y"}}},
	"a second action": {[]any{"actions", 1}, []any{map[string]any{"verb": "evict", "target": map[string]any{"kind": "Pod", "namespace": "kube-system", "name": "*", "uid": "x"}}}},
	"a priority":      {[]any{"priority"}, []any{int64(1) << 40, "high", 1e300}},
	"the number":      {[]any{"fix"}, []any{int64(0), int64(-1), 1e300}},
	"the incident":    {[]any{"incident"}, []any{"", "*", "gpu-*"}},
	"the requester":   {[]any{"requester"}, []any{nil, ""}},
	"when it expires": {[]any{"expires"}, []any{nil, "never", ""}},
	"the kinds":       {[]any{"kinds"}, []any{nil, []any{}}},
	"the workload":    {[]any{"workload"}, []any{nil, map[string]any{}}},
	"the nodes":       {[]any{"nodes"}, []any{[]any{"*"}, []any{""}, "all"}},
}

// anything is a value of JSON.
func anything() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.SampledFrom([]any{nil, "", "*", true, int64(-1), int64(0), int64(1) << 62, 1e300, []any{}, []any{"*"}, map[string]any{}, map[string]any{"*": "*"}, []any{map[string]any{}}}),
		rapid.Map(rapid.String(), func(s string) any { return strings.ToValidUTF8(s, "") }),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,5}`), rapid.Int64(), 0, 3), func(m map[string]int64) any {
			out := map[string]any{}
			for k, v := range m {
				out[k] = v
			}
			return out
		}),
	)
}

// spoiled plays spoiled plans.
type spoiled struct {
	c                     *cell
	ctx                   context.Context
	whole                 *v1alpha1.Remediation
	of, byAPI, byExecutor int
}

// failer is a test, or a property's.
type failer interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// made is a plan with one field set: under the name that its actions have now, or had
// before. It is nil when that changed nothing.
func (s *spoiled) made(t failer, path []any, value any, oldName bool) *unstructured.Unstructured {
	text, err := json.Marshal(s.whole)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(text); err != nil {
		t.Fatalf("%v", err)
	}
	before, err := json.Marshal(u.Object["spec"])
	if err != nil {
		t.Fatalf("%v", err)
	}
	u.Object["spec"] = set(u.Object["spec"], path, value)
	after, err := json.Marshal(u.Object["spec"])
	if err != nil || bytes.Equal(before, after) {
		return nil
	}
	var spec v1alpha1.RemediationSpec
	if err := json.Unmarshal(after, &spec); err == nil {
		is := plan.Name(spec)
		if path[0] == "actions" && is == s.whole.Name {
			return nil // written in another way
		}
		if !oldName {
			u.SetName(is)
		}
	}
	return &u
}

// set is a document with the value at a path.
func set(doc any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	switch at := path[0].(type) {
	case string:
		m, _ := doc.(map[string]any)
		if m[at] = set(m[at], path[1:], value); m[at] == nil {
			delete(m, at)
		}
		return m
	default:
		list, _ := doc.([]any)
		if i := at.(int); i < len(list) {
			list[i] = set(list[i], path[1:], value)
			return list
		}
		return append(list, value)
	}
}

// try records a spoiled plan, approves it, and has it looked at.
func (s *spoiled) try(t failer, u *unstructured.Unstructured) {
	plans := s.c.Dynamic().Resource(v1alpha1.Remediations)
	s.of++
	made, err := plans.Create(s.ctx, u, metav1.CreateOptions{})
	if err != nil {
		if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			t.Fatalf("%v", err)
		}
		s.byAPI++
		return
	}
	rem := &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: made.GetName(), UID: made.GetUID()}}
	defer func() { // also what is offered in its place
		err := plans.DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		if err := cmp.Or(err, plan.Store{Dynamic: s.c.Dynamic()}.Forget(s.ctx, rem)); err != nil {
			t.Errorf("%v", err)
		}
	}()
	for _, who := range []string{"alice", "bob"} { // it may take two
		if err == nil {
			_, err = plan.Store{Dynamic: s.c.Dynamic()}.Decide(s.ctx, plan.NewApproval(rem, who, nil, v1alpha1.Approve))
		}
	}
	if err == nil {
		_, err = s.c.executor().Look(s.ctx, rem.Name)
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	now, err := plans.Get(s.ctx, rem.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	status, _ := now.Object["status"].(map[string]any)
	switch phase := status["phase"]; phase {
	case "Refused", "Stale", "Expired":
		if status["message"] == "" || status["journal"] != nil {
			t.Errorf("status %v", status)
		}
		s.byExecutor++
	default:
		t.Errorf("%v of %v: %v", phase, u.Object["spec"], status)
	}
}

// promiseR19: plans with something emptied, made a pattern or made up: the API server
// does not take them, or the executor refuses them, before anything is written. What the
// API server takes and nobody can read is in no other plan's way.
func promiseR19(t *testing.T, l lanes) {
	cp := <-l
	t.Cleanup(func() { l <- cp })
	c := newCellOn(t, cp)
	node, d, f, holders := repartition(t, c)
	s := &spoiled{c: c, ctx: t.Context(), whole: plan.Propose(plan.Found{State: c.state(t), Diagnosis: d, Fix: f}, "somebody", time.Now())}
	names := slices.Sorted(maps.Keys(spoilers))
	for _, name := range names {
		for _, value := range spoilers[name].values {
			if u := s.made(t, spoilers[name].path, value, false); u != nil {
				t.Run(fmt.Sprintf("%s %v", name, value), func(t *testing.T) { s.try(t, u) })
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return spoilers[name].path[0] != "actions" }) // of the others much is as good
	t.Run("anything", rapid.MakeCheck(func(r *rapid.T) {
		path := spoilers[rapid.SampledFrom(names).Draw(r, "field")].path
		if u := s.made(r, path, anything().Draw(r, "value"), rapid.Bool().Draw(r, "old name")); u != nil {
			s.try(r, u)
		}
	}))
	for _, name := range []string{"all", strings.Repeat("*", 64), strings.Repeat("0", 64)} {
		u := object(t, s.whole)
		u.SetName(name)
		t.Run("named "+name, func(t *testing.T) { s.try(t, u) })
	}
	c.wrote(t, nil)
	c.untouched(t, holders...)
	c.asBefore(t, node)
	s.unread(t, d, f)
	report(t, s.byAPI+s.byExecutor, s.of, fmt.Sprintf("%d by the API server, %d by the executor, 0 writes", s.byAPI, s.byExecutor))
}

// unread has a plan that nobody can read stand beside a whole one, which is carried out.
func (s *spoiled) unread(t *testing.T, d diagnosis.Diagnosis, f diagnosis.Fix) {
	t.Helper()
	u := s.made(t, spoilers["layouts"].path, "all", true)
	u.SetName(strings.Repeat("a", 64))
	if _, err := s.c.Dynamic().Resource(v1alpha1.Remediations).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	rem := s.c.recorded(t, d, f)
	s.c.decide(t, rem, "alice", v1alpha1.Approve)
	ended(t, s.c.carriedOut(t, rem.Name, s.c.one()), v1alpha1.Succeeded)
}
