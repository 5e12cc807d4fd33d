package fixes

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
)

// needless says that another fix brings as much by a part of what this one does: what it does
// besides, to make room on a node that is not needed, helps nobody; what that adds is not even proved where the
// other is. Where another scheduler decides, nothing is proved: then what its filters take both of, and who is waited for in the one alone,
// tells the same. So it is of two that cannot be tried for one and the same reason: that is open either way. Guard-rails that keep the
// other from being begun keep this one's reason to be.
func (f *candidate) needless(all []*candidate) bool {
	verdict, why := f.fix.Proof.Verdict, f.fix.Proof.Why
	if verdict == diagnosis.Refuted {
		return false
	}
	return slices.ContainsFunc(all, func(o *candidate) bool {
		tried := o.fix.Proof.Verdict
		settles := tried == verdict && verdict != diagnosis.Unproven || verdict == diagnosis.Unproven && (tried == diagnosis.Schedules || tried == diagnosis.Waits) ||
			tried == diagnosis.Unproven && (o.accepted && f.accepted || verdict == tried && why != "" && o.fix.Proof.Why == why)
		return settles && (!o.held || f.held) && o.runs() >= f.runs() && o.partOf(f)
	})
}

// dear says that a Job would be made again, which begins all of its work anew, and more of its pods stop for it
// than come to run, where they come to run as well once somebody ends: nobody who knows that would do it.
func (f *candidate) dear(all []*candidate) bool {
	lost := 0
	for _, p := range f.restarts {
		if by := metav1.GetControllerOfNoCopy(p); by != nil && by.Kind == "Job" {
			lost++
		}
	}
	return lost > max(1, f.runs()) && slices.ContainsFunc(all, func(o *candidate) bool {
		return o.fix.Proof.Verdict == diagnosis.Waits && o.fix.Kind == diagnosis.Wait
	})
}

// outdone leaves out of what was proved what nobody would do who is offered something beside the nodes, as what an autoscaler
// says that it lacks, or another way to roll: to ask less for all pods of a workload while as many wait in the end, and to have
// them elsewhere than they ask, though nodes that they ask for are there, if that takes less as well or serves only some of
// them. That a pod is placed that asks less than half of its memory is no proof that it can do with it, either.
func outdone(proved, besides []*candidate) []*candidate {
	if len(besides) == 0 {
		return proved
	}
	proved = slices.DeleteFunc(proved, func(f *candidate) bool {
		some := f.fix.Effect != nil && f.fix.Effect.Runs < f.fix.Effect.Of
		return f.cut > 0 && f.stays() || f.astray && (f.cut > 0 || some)
	})
	for _, f := range proved {
		if f.halves && f.fix.Proof.Verdict == diagnosis.Schedules {
			f.fix.Proof, f.fix.Effect = diagnosis.Proof{Verdict: diagnosis.Unproven, Why: "that is less than half of the memory or disk that it asked: whether it can do with it only its owner knows"}, nil
		}
	}
	return proved
}

// partOf says that the other fix does all that this one does, and more.
func (f *candidate) partOf(o *candidate) bool {
	mine, theirs := f.does(), o.does()
	return len(mine) > 0 && len(mine) < len(theirs) && !slices.ContainsFunc(mine, func(title string) bool { return !slices.Contains(theirs, title) })
}

// does is what the changes do, each once.
func (f *candidate) does() []string {
	var out []string
	for _, ch := range f.changes {
		if !slices.Contains(out, ch.Title) {
			out = append(out, ch.Title)
		}
	}
	return out
}

// runs is how many pods of the incident run afterwards; 0 where it is not known.
func (f *candidate) runs() int {
	if f.fix.Effect == nil {
		return 0
	}
	return f.fix.Effect.Runs
}
