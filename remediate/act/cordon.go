package act

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
)

// maxNote is what the API server takes of an Event's note, in bytes
// (pkg/apis/core/validation/events.go).
const maxNote = 1024

// cordon closes a node for good: until a person, or a plan that says so, opens it. The mark
// says so in the same write. Its action's note is the hardware ticket's text.
type cordon struct{ marked }

func newCordon(a action) verb { return &cordon{marked{a}} }

func (v *cordon) steps() []journal.Step {
	return v.underLock([]journal.Step{
		{ID: v.id("cordon"), Text: "cordon " + v.Target.Name + " until it is mended", Within: pace.Contention, Try: v.close},
		{ID: v.id("ticket"), Text: "write the hardware ticket's text into an Event of " + v.Target.Name, Within: pace.Contention, Try: v.tell},
		{ID: v.id("closed"), Text: "see that " + v.Target.Name + " is closed", Within: pace.Contention, Try: v.closed},
	})
}

// wayBack opens the node, if it is ours.
func (v *cordon) wayBack() []journal.Step {
	return append([]journal.Step{{ID: v.backID("release"), Text: "uncordon " + v.Target.Name, Within: pace.Contention, Try: v.giveBack}}, v.unlockBack()...)
}

// left is nothing: the node is opened again.
func (v *cordon) left() string { return "" }

func (v *cordon) achieved() string {
	text := "its text is Event " + metav1.NamespaceDefault + "/" + v.eventName()
	if e := v.entry(v.id("ticket")); e != nil && e.Note == journal.Untold {
		text = "its text could not be made an Event; it is in the plan"
	}
	return fmt.Sprintf("%s is quarantined: cordoned until somebody opens it; no hardware ticket was filed, %s", v.Target.Name, text)
}

func (v *cordon) rights() []right { return []right{v.repartition()} }

// close closes and marks the node in one write, unless somebody has closed it since.
func (v *cordon) close(ctx context.Context, _ *journal.Entry) (string, error) {
	n, err := v.node(ctx, v.Target)
	if err != nil {
		return "", err
	}
	if v.markOf(n) != nil { // also when an answer was lost, or we were
		return "", nil
	}
	if err := unmarked(n); err != nil {
		return "", err
	}
	if err := drift(n.Name, v.Relies, map[string]string{"unschedulable": fmt.Sprint(n.Spec.Unschedulable)}); err != nil {
		return "", err
	}
	mark := v.newMark(n)
	mark.Step, mark.Quarantined = "quarantined", v.rem.Spec.Title
	return v.write(ctx, n, map[string]any{"unschedulable": true}, nil, mark)
}

// tell leaves the ticket's text where kubectl describe shows it. Events are best effort:
// that it could not be made is said in the end, and no reason to open the node.
func (v *cordon) tell(ctx context.Context, e *journal.Entry) (string, error) {
	events := v.Client.EventsV1().Events(metav1.NamespaceDefault)
	if e.Again {
		if _, err := events.Get(ctx, v.eventName(), metav1.GetOptions{}); err == nil {
			return "", nil // made before a crash
		}
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: v.eventName(), Namespace: metav1.NamespaceDefault},
		EventTime:  metav1.NewMicroTime(v.Now()), ReportingController: "unpend.dev/executor", ReportingInstance: plan.FieldManager,
		Action: "Quarantine", Reason: "Quarantined", Type: corev1.EventTypeWarning, Note: strings.ToValidUTF8(v.Note[:min(len(v.Note), maxNote)], ""),
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: v.Target.Name, UID: types.UID(v.Target.UID)},
	}
	_, err := events.Create(ctx, event, metav1.CreateOptions{FieldManager: plan.FieldManager, DryRun: v.dryRun()})
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
	case journal.Transient(err):
		return "", err
	default:
		e.Note = journal.Untold
		v.Logger.WarnContext(ctx, "the ticket's text could not be made an Event", "node", v.Target.Name, "error", err)
	}
	return "", nil
}

func (v *cordon) eventName() string {
	return "unpend-ticket-" + v.rem.Name[:min(16, len(v.rem.Name))]
}

// closed holds the node to what the plan is for.
func (v *cordon) closed(ctx context.Context, _ *journal.Entry) (string, error) {
	n, err := v.node(ctx, v.Target)
	if err == nil && v.markOf(n) == nil && !v.DryRun {
		err = notOurs(n)
	}
	return "", err
}
