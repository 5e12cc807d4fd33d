package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// target refuses a plan that does not name, one by one and by uid, what it writes
// to. Nothing here takes an empty set, or a pattern, for "all".
func target(q *question) Verdict {
	if err := complete(q.plan); err != nil {
		return refuse(v1alpha1.Refused, "the plan is not complete: %v; nothing is written for it, ask for a new one", err)
	}
	return Verdict{}
}

func complete(plan *v1alpha1.Remediation) error {
	if plan.Name == "" || plan.UID == "" {
		return errors.New("it is not a recorded plan: it has no name or no uid")
	}
	if len(plan.Spec.Actions) == 0 {
		return errors.New("it names nothing to write to")
	}
	for _, name := range plan.Spec.Nodes {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("%q is not the name of one node", name)
		}
	}
	for i := range plan.Spec.Actions {
		if err := completeAction(&plan.Spec.Actions[i]); err != nil {
			return fmt.Errorf("action %d (%q): %w", i, plan.Spec.Actions[i].Verb, err)
		}
	}
	return nil
}

func completeAction(a *diagnosis.Action) error {
	kinds := a.Kinds()
	if kinds == nil {
		return errors.New("the verb is not known")
	}
	if err := completeTarget(a.Target, kinds...); err != nil {
		return err
	}
	for _, s := range a.Stops {
		if err := completeTarget(s, "Pod"); err != nil {
			return fmt.Errorf("a pod that stops: %w", err)
		}
		if s.Namespace != a.Target.Namespace {
			return fmt.Errorf("pod %s/%s is none of %s/%s", s.Namespace, s.Name, a.Target.Namespace, a.Target.Name)
		}
	}
	if (a.Verb == diagnosis.VerbRelayout) != (a.Relayout != nil) {
		return errors.New("a layout is part of a relayout, and only of that")
	}
	switch a.Verb {
	case diagnosis.VerbPatch, diagnosis.VerbRecreate:
		return completePatch(a.Patch)
	case diagnosis.VerbRelayout:
		return completeRelayout(a)
	}
	return nil
}

func completeTarget(t diagnosis.Target, kinds ...string) error {
	switch {
	case !slices.Contains(kinds, t.Kind):
		return fmt.Errorf("it cannot be done to a %q, only to %s", t.Kind, strings.Join(kinds, ", "))
	case len(validation.IsDNS1123Subdomain(t.Name)) > 0:
		return fmt.Errorf("%q is not the name of one object", t.Name)
	case t.Kind == "Node" && t.Namespace != "":
		return fmt.Errorf("a node is in no namespace, not in %q", t.Namespace)
	case t.Kind != "Node" && len(validation.IsDNS1123Label(t.Namespace)) > 0:
		return fmt.Errorf("%q is not the name of one namespace", t.Namespace)
	case t.UID == "" || strings.IndexFunc(t.UID, notInUID) >= 0:
		return fmt.Errorf("%q is not a uid", t.UID)
	}
	return nil
}

func notInUID(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-._:", r)
}

// completePatch wants a patch that says something, and does not replace or delete
// the object as a whole ("$patch", a directive of strategic merge patches).
func completePatch(patch json.RawMessage) error {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(patch, &doc); err != nil || len(doc) == 0 {
		return errors.New("the patch says nothing")
	}
	if _, whole := doc["$patch"]; whole {
		return errors.New("the patch is of the object as a whole")
	}
	return nil
}

// completeRelabel wants a layout that re-makes no GPU to be what they all have, by what
// the plan relies on, and to evict nobody.
func completeRelabel(a *diagnosis.Action) error {
	r := a.Relayout
	instances := 0
	for gpu, wanted := range r.Layouts {
		was, known := layout(a.Relies[fmt.Sprintf("gpu%d", gpu)])
		if !known || !maps.Equal(was, without0(wanted)) {
			return errors.New("it names no GPU")
		}
		instances += len(was)
	}
	if instances == 0 || len(r.Victims) > 0 || len(r.Entry) > 0 || r.ConfigMap != nil || r.First != "" {
		return errors.New("it names no GPU")
	}
	return nil
}

func completeRelayout(a *diagnosis.Action) error {
	r := a.Relayout
	if r.Config == "" || len(validation.IsValidLabelValue(r.Config)) > 0 {
		return fmt.Errorf("%q is not the name of a config", r.Config)
	}
	if len(validation.IsValidLabelValue(r.First)) > 0 {
		return fmt.Errorf("%q is not the name of a config", r.First)
	}
	if len(r.GPUs) == 0 {
		return completeRelabel(a)
	}
	instances := 0
	for i, gpu := range r.GPUs {
		if layout, given := r.Layouts[gpu]; gpu < 0 || !given || slices.Contains(r.GPUs[:i], gpu) {
			return fmt.Errorf("GPU %d has no layout, or comes twice", gpu)
		} else if _, bad := layout[""]; bad {
			return fmt.Errorf("GPU %d has a profile without a name", gpu)
		}
		for profile, n := range r.Layouts[gpu] {
			if n < 0 {
				return fmt.Errorf("GPU %d would have %d of %s", gpu, n, profile)
			}
			instances += n
		}
	}
	if instances == 0 {
		return errors.New("it would leave no instance on the GPUs that it re-makes")
	}
	for _, v := range r.Victims {
		if err := completeTarget(v, "Pod"); err != nil {
			return fmt.Errorf("victim: %w", err)
		}
	}
	if (len(r.Entry) > 0) != (r.ConfigMap != nil) {
		return errors.New("an entry and the ConfigMap that it goes into belong together")
	}
	if r.ConfigMap == nil {
		return nil
	}
	var rules []json.RawMessage
	if err := json.Unmarshal(r.Entry, &rules); err != nil || len(rules) == 0 {
		return errors.New("the entry has no rule")
	}
	return completeTarget(*r.ConfigMap, "ConfigMap")
}
