package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/remediate/audit"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Trail writes what the executor does into the audit trail, and tells of it by Events.
// The file has one writer: the leader opens it, at the first line.
type Trail struct {
	Path   string // no trail without it
	Events *audit.Events
	Self   string // the executor's user name
	Now    func() time.Time
	Logger *slog.Logger

	mu   sync.Mutex
	file *audit.Trail
}

// Observe writes a line about a step, or about the plan as a whole. When it cannot be
// written, the error says so: nothing is begun that would not be on record.
func (t *Trail) Observe(ctx context.Context, rem *v1alpha1.Remediation, e *v1alpha1.Entry, result audit.Result) error {
	r := audit.Record{Time: t.Now(), Plan: rem.Name, Incident: rem.Spec.Incident, Step: "plan", Text: rem.Spec.Title, Result: result, Why: rem.Status.Message,
		Actor: t.Self, Approvers: rem.Status.ApprovedBy}
	if e != nil {
		r.Step, r.Text, r.Why, r.Leader, r.Generation, r.Time = string(e.Step), e.Text, e.Error, e.Leader, e.Generation, e.Began.Time
		if e.Ended != nil {
			r.Time = e.Ended.Time
		}
	}
	if len(rem.Spec.Nodes) > 0 {
		r.Node = rem.Spec.Nodes[0]
	}
	if err := t.write(rem, r); err != nil {
		return fmt.Errorf("write the audit trail: %w", err)
	}
	t.tell(ctx, rem, r)
	return nil
}

func (t *Trail) write(rem *v1alpha1.Remediation, r audit.Record) error {
	if t.Path == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == nil {
		file, err := audit.Open(t.Path, t.Now)
		if err != nil {
			return err
		}
		t.file = file
	}
	head, err := t.file.Append(r)
	if err != nil {
		return errors.Join(err, t.closeFile()) // it is read again from its beginning the next time
	}
	rem.Status.AuditHead = head
	return nil
}

// tell makes the Event: on the node that is worked on, or on the pod that waits.
func (t *Trail) tell(ctx context.Context, rem *v1alpha1.Remediation, r audit.Record) {
	if t.Events == nil {
		return
	}
	about := corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation", Name: rem.Name, UID: rem.UID}
	var pod *corev1.ObjectReference
	if len(rem.Spec.Waiting) > 0 {
		w := rem.Spec.Waiting[0]
		pod = &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: rem.Spec.Workload.Namespace, Name: w.Name, UID: w.UID}
	}
	for _, a := range rem.Spec.Actions {
		if a.Target.Kind == "Node" && strings.Contains(r.Step, "/") {
			about = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: a.Target.Name, UID: types.UID(a.Target.UID)}
		}
	}
	if r.Step == "plan" && pod != nil {
		about, pod = *pod, nil
	}
	if err := t.Events.Tell(ctx, r, about, pod); err != nil {
		t.Logger.WarnContext(ctx, "an Event could not be made", "step", r.Step, "error", err)
	}
}

// Close closes the file.
func (t *Trail) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closeFile()
}

func (t *Trail) closeFile() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}
