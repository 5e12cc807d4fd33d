package diagnosis

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
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

// OperationSchema is what marks mean that this program writes, and the newest that it
// knows. It is raised when a program that knows the one before must leave such a node
// alone; a field that such a program may pass over is no reason.
const OperationSchema = 1

// Operation is the annotation's content.
type Operation struct {
	// Schema of the mark; 0 in one from before schemas were numbered, which says the same
	// as 1.
	Schema             int       `json:"schema,omitempty"`
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
	// Unknown are the fields that this program does not know, as JSON: they are kept.
	Unknown string `json:"-"`
}

// NewerError is that a newer unpend has marked a node: it is left alone.
type NewerError struct {
	Node   string
	Schema int // of the mark
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("node %s is marked by a newer unpend (schema %d, this one knows %d) and left alone: give it back with that version", e.Node, e.Schema, OperationSchema)
}

// Kept says whether the node is left cordoned on purpose, and nobody works on it.
func (o *Operation) Kept() bool { return o.Parked != "" || o.Quarantined != "" }

// Annotation is the mark as it stands on a node.
func (o *Operation) Annotation() (string, error) {
	as := *o
	as.Schema = OperationSchema
	text, err := json.Marshal(as)
	if err == nil && o.Unknown != "" {
		text, err = jsonpatch.MergePatch([]byte(o.Unknown), text)
	}
	if err != nil {
		return "", fmt.Errorf("write the mark: %w", err)
	}
	return string(text), nil
}

// OperationOn reads the mark of a node: nil when it has none, an error when somebody
// has written something else there, a NewerError when a newer unpend has. A person who
// opens a node that is quarantined has ended that: what is left of its mark says nothing.
func OperationOn(n *corev1.Node) (*Operation, error) {
	text, marked := n.Annotations[OperationAnnotation]
	if !marked {
		return nil, nil
	}
	var head struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal([]byte(text), &head); err == nil && head.Schema > OperationSchema {
		return nil, &NewerError{n.Name, head.Schema}
	}
	var o Operation
	if err := json.Unmarshal([]byte(text), &o); err != nil || o.ID == "" {
		return nil, fmt.Errorf("node %s: annotation %s is not one of ours: %q", n.Name, OperationAnnotation, text)
	}
	if o.Quarantined != "" && !n.Spec.Unschedulable {
		return nil, nil
	}
	o.Unknown = unknown(text)
	return &o, nil
}

// known are the fields of a mark.
var known = func() map[string]bool {
	out := map[string]bool{}
	for f := range reflect.TypeFor[Operation]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out[name] = true
	}
	return out
}()

// unknown are the fields of a mark, as JSON, that this program does not know; empty where
// there are none.
func unknown(text string) string {
	var all map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &all) != nil {
		return ""
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool { return known[name] })
	if len(all) == 0 {
		return ""
	}
	return string(MustJSON(all))
}
