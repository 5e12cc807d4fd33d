package executor

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Newer is a plan, or a marked node, that a newer unpend has written and this one leaves
// alone: after a downgrade, say.
type Newer struct {
	Plan   string         `json:"plan,omitempty"`
	Phase  v1alpha1.Phase `json:"phase,omitempty"`
	Node   string         `json:"node,omitempty"`
	Schema int            `json:"schema"`
	// Way says who can go on with it.
	Way string `json:"way"`
}

// newerOf are the plans that have not ended, and the marks, of a newer schema than is
// known here.
func newerOf(nodes []*corev1.Node, plans []v1alpha1.Remediation) []Newer {
	out := []Newer{}
	for i := range plans {
		if rem := &plans[i]; rem.Newer() && !rem.Status.Phase.Ended() {
			out = append(out, Newer{Plan: rem.Name, Phase: rem.Status.Phase, Schema: rem.Written(),
				Way: fmt.Sprintf("run the version that wrote it, which finishes it; or, as an administrator: kubectl delete remediation %s", rem.Name)})
		}
	}
	for _, n := range nodes {
		_, err := diagnosis.OperationOn(n)
		if newer, ok := errors.AsType[*diagnosis.NewerError](err); ok {
			out = append(out, Newer{Node: n.Name, Schema: newer.Schema, Way: "run the version that marked it; its 'unpend release " + n.Name + "' gives it back"})
		}
	}
	return out
}
