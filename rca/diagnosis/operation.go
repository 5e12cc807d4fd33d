package diagnosis

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// OperationAnnotation marks a node that is being worked on, and keeps what it was
// before. It is written and removed in the same patch as the cordon, so there is no
// moment at which a cordon of ours has no owner.
const OperationAnnotation = "unpend.dev/operation"

// KeepCordoned is the annotation with which a person has a node stay cordoned after an
// operation that has cordoned it: kubectl cordon writes nothing then, and cannot be seen.
const KeepCordoned = "unpend.dev/keep-cordoned"

// Operation is the annotation's content.
type Operation struct {
	Plan               string    `json:"op"` // the Remediation's name
	ID                 types.UID `json:"id"` // and its uid, which tells one carrying out of a plan from another
	PriorUnschedulable bool      `json:"priorUnschedulable"`
	PriorMIGConfig     string    `json:"priorMigConfig"`
	Step               string    `json:"step"`
	// PriorState is nvidia.com/mig.config.state when MIG manager was last given a
	// config: the same word afterwards may still be about the config before.
	PriorState string `json:"priorState,omitempty"`
	// Parked says why the node was left cordoned.
	Parked string `json:"parked,omitempty"`
	// Quarantined says why the node is kept closed by a plan that has done so on purpose.
	Quarantined string `json:"quarantined,omitempty"`
}

// Kept says whether the node is left cordoned on purpose, and nobody works on it.
func (o *Operation) Kept() bool { return o.Parked != "" || o.Quarantined != "" }

// Annotation is the mark as it stands on a node.
func (o *Operation) Annotation() (string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", fmt.Errorf("write the mark: %w", err)
	}
	return string(text), nil
}

// OperationOn reads the mark of a node: nil when it has none, an error when somebody
// has written something else there. A person who opens a node that is quarantined has
// ended that: what is left of its mark says nothing.
func OperationOn(n *corev1.Node) (*Operation, error) {
	text, marked := n.Annotations[OperationAnnotation]
	if !marked {
		return nil, nil
	}
	var o Operation
	if err := json.Unmarshal([]byte(text), &o); err != nil || o.ID == "" {
		return nil, fmt.Errorf("node %s: annotation %s is not one of ours: %q", n.Name, OperationAnnotation, text)
	}
	if o.Quarantined != "" && !n.Spec.Unschedulable {
		return nil, nil
	}
	return &o, nil
}
