package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// StepID names a step of a plan in its journal. Names are stable: what one version began,
// another goes on with. "0/cordon" and "0/evict/ml/web-1" are steps of the plan's first
// action, "undo/0/release" is one of its way back; "run" and "undo/nomination" belong to
// the plan as a whole.
type StepID string

const back = "undo/"

// StepOf names a step of an action, by the action's index in the order of carrying out.
func StepOf(action int, name string) StepID { return StepID(fmt.Sprintf("%d/%s", action, name)) }

// BackOf names a step of the way back of an action.
func BackOf(action int, name string) StepID { return back + StepOf(action, name) }

// TakesBack says whether the step is one of the way back.
func (s StepID) TakesBack() bool { return strings.HasPrefix(string(s), back) }

// Action is the index of the action that the step belongs to; false for a step of the plan
// as a whole, and for what is no step's name.
func (s StepID) Action() (int, bool) {
	index, _, of := strings.Cut(strings.TrimPrefix(string(s), back), "/")
	n, err := strconv.ParseUint(index, 10, 31)
	return int(n), of && err == nil
}
