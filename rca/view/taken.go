package view

import (
	"errors"
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Operation is unpend's own mark on the node; the zero value where there is none.
func (n *Node) Operation() diagnosis.Operation {
	if mark, err := diagnosis.OperationOn(n.Node); err == nil && mark != nil {
		return *mark
	}
	return diagnosis.Operation{}
}

// Taken says, to complete "the node is", why nothing is planned with a node and nobody is
// counted on to come to it: unpend has left it closed, a plan works on it, or nobody knows
// what is written where unpend marks it. Empty: it is nobody's.
func (n *Node) Taken() string {
	if len(n.Annotations) == 0 {
		return ""
	}
	mark, err := diagnosis.OperationOn(n.Node)
	newer, ok := errors.AsType[*diagnosis.NewerError](err)
	switch {
	case ok:
		return fmt.Sprintf("marked by a newer unpend (schema %d)", newer.Schema)
	case err != nil:
		return "marked by somebody else: annotation " + diagnosis.OperationAnnotation + " is not one of ours"
	case mark == nil:
		return ""
	case mark.Parked != "":
		return "parked by unpend: " + mark.Parked
	case mark.Quarantined != "":
		return "quarantined by unpend: " + mark.Quarantined
	}
	return fmt.Sprintf("worked on by plan %.8s of unpend", mark.Plan)
}
