package remediate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// actions are the plan's, in the order they are taken.
func (r *runner) actions() []diagnosis.Action { return inOrder(r.rem.Spec.Actions) }

// actionStep names the step of an action that is one step.
func actionStep(i int, a diagnosis.Action) string {
	return strings.Trim(fmt.Sprintf("%d/%s/%s/%s", i, a.Verb, a.Target.Namespace, a.Target.Name), "/")
}

// steps is all that carrying the plan out takes.
func (r *runner) steps() []step {
	var out []step
	for i, a := range r.actions() {
		if a.Relayout != nil {
			out = append(out, r.saga(i, a).steps()...)
			continue
		}
		if a.Verb == diagnosis.VerbCordon {
			out = append(out, r.quarantine(i, a).steps()...)
			continue
		}
		out = append(out, r.actionSteps(i, a))
		if restarts(a) {
			out = append(out, r.restartStep(i, a))
		}
	}
	if schedulesNobody(r.rem) {
		return out
	}
	return append(out, step{id: "run", text: "wait until the pod runs", within: r.Deadlines.Run, try: r.runs})
}

func (r *runner) actionSteps(i int, a diagnosis.Action) step {
	s := step{id: actionStep(i, a), within: contention}
	kind, t := strings.ToLower(a.Target.Kind), a.Target
	switch a.Verb {
	case diagnosis.VerbEvict:
		s.text, s.within = evictText(t), r.Deadlines.Evict
		s.try = func(ctx context.Context, e *entry) (string, error) {
			if n := r.nomination(); n != nil && a.Relies["node"] == n.node {
				if missing, err := r.nominate(ctx, n.node); err != nil || missing != "" {
					return missing, err
				}
			}
			return r.evict(ctx, t, e)
		}
	case diagnosis.VerbUncordon:
		s.text = "uncordon " + t.Name
		s.try = func(ctx context.Context, e *entry) (string, error) { return r.uncordon(ctx, a, e) }
	case diagnosis.VerbPatch:
		s.text = fmt.Sprintf("patch %s/%s", kind, t.Name)
		s.try = func(ctx context.Context, e *entry) (string, error) { return r.patch(ctx, a, e) }
	case diagnosis.VerbRecreate:
		s.text, s.within = fmt.Sprintf("make %s/%s anew", kind, t.Name), r.Deadlines.Leave+contention
		s.try = func(ctx context.Context, e *entry) (string, error) { return r.recreate(ctx, a, e) }
	default:
		s.text = fmt.Sprintf("%s %s/%s", a.Verb, kind, t.Name)
		s.try = func(context.Context, *entry) (string, error) {
			return "", fmt.Errorf("%w: action %q is not known", ErrRefused, a.Verb)
		}
	}
	return s
}

// wayBack is what takes back what was begun: nothing of what had not begun. An
// action that has been carried out and cannot be taken back is named instead.
func (r *runner) wayBack() []step {
	var out []step
	all := r.everyWayBack()
	if at := r.rem.Status.Parking; at != "" {
		prefix := at[:strings.LastIndexByte(at, '/')]
		return slices.DeleteFunc(all, func(s step) bool { return s.id != prefix+"/park" && s.id != prefix+"/unlock" })
	}
	for _, s := range all {
		if strings.HasSuffix(s.id, "/park") {
			continue
		}
		if i, ok := actionOf(s.id); !ok || r.begun(i) {
			out = append(out, s)
		}
	}
	return out
}

// everyWayBack are the steps of every way back there can be.
func (r *runner) everyWayBack() []step {
	out := []step{{id: "undo/nomination", text: "take the nomination back", within: contention, try: func(ctx context.Context, _ *entry) (string, error) {
		return r.nominate(ctx, "")
	}}}
	actions := r.actions()
	for i, a := range slices.Backward(actions) {
		switch {
		case a.Relayout != nil:
			out = append(out, r.saga(i, a).wayBack()...)
		case a.Verb == diagnosis.VerbCordon:
			out = append(out, r.quarantine(i, a).wayBack()...)
		case a.Verb == diagnosis.VerbRecreate:
			out = append(out, step{id: fmt.Sprintf("undo/%d/%s", i, diagnosis.VerbRecreate), text: "make the old " + strings.ToLower(a.Target.Kind) + " again", within: r.Deadlines.Leave + contention,
				try: func(ctx context.Context, _ *entry) (string, error) { return r.remakeOld(ctx, i, a) }})
		}
	}
	return out
}

func actionOf(id string) (int, bool) {
	var i int
	_, err := fmt.Sscanf(id, "undo/%d/", &i)
	return i, err == nil
}

// begun says whether a step of the action stands in the journal.
func (r *runner) begun(action int) bool {
	prefix := fmt.Sprintf("%d/", action)
	for _, e := range r.rem.Status.Journal {
		if strings.HasPrefix(e.Step, prefix) {
			return true
		}
	}
	return false
}
