// Package tally counts what a plan comes to: who waited and who ran before it (Before), and who does
// after it (After), held to what was said of it. It says when a pod of the workload runs (Running),
// and when what follows on that has come to rest (Calm).
//
// It reads pods, what makes them and who owns that, and writes to nothing but the plan's status: what
// plans do is remediate/act's, which knows nothing of how pods are counted. A pod is the workload's
// where the walk over its owners says so, as it did when its incident was found.
package tally

import (
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/owners"
)

// Tally is that of one plan, whose status it follows as that goes on.
type Tally struct {
	client kubernetes.Interface
	reader owners.Reader
	rem    *v1alpha1.Remediation
	// single gets owners of the kinds of reader; nil until the first is.
	single *owners.Single
}

// New makes the tally of a plan. Owners of other kinds than Kubernetes' own are read with reader:
// those that the plan was found with.
func New(client kubernetes.Interface, reader owners.Reader, rem *v1alpha1.Remediation) *Tally {
	return &Tally{client: client, reader: reader, rem: rem}
}
