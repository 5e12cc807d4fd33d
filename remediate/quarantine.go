package remediate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// untold is the note of a step whose Event could not be made.
const untold = "untold"

// maxNote is what the API server takes of an Event's note, in bytes
// (pkg/apis/core/validation/events.go).
const maxNote = 1024

// quarantine closes a node for good: until a person, or a plan that says so, opens it.
// The mark says so in the same write as the cordon.
type quarantine struct {
	*saga
	ticket string
}

func (r *runner) quarantine(i int, a diagnosis.Action) *quarantine {
	return &quarantine{saga: r.saga(i, a), ticket: a.Note}
}

func (q *quarantine) steps() []step {
	var out []step
	if q.Locks != "" && !q.DryRun {
		out = append(out, step{id: q.id("lock"), text: "lock " + q.target.Name, within: contention, try: q.lock})
	}
	out = append(out,
		step{id: q.id("cordon"), text: "cordon " + q.target.Name + " until it is mended", within: contention, try: q.cordon},
		step{id: q.id("ticket"), text: "write the hardware ticket's text into an Event of " + q.target.Name, within: contention, try: q.tell},
		step{id: q.id("closed"), text: "see that " + q.target.Name + " is closed", within: contention, try: q.closed})
	if q.Locks != "" && !q.DryRun {
		out = append(out, step{id: q.id("unlock"), text: "unlock " + q.target.Name, within: contention, try: q.unlock})
	}
	return out
}

// cordon closes and marks the node in one write, unless somebody has closed it since.
func (q *quarantine) cordon(ctx context.Context, _ *entry) (string, error) {
	n, err := q.node(ctx, q.target)
	if err != nil {
		return "", err
	}
	if q.markOf(n) != nil { // also when an answer was lost, or we were
		return "", nil
	}
	if err := unmarked(n); err != nil {
		return "", err
	}
	if err := drift(n.Name, q.relies, map[string]string{"unschedulable": fmt.Sprint(n.Spec.Unschedulable)}); err != nil {
		return "", err
	}
	mark := q.newMark(n)
	mark.Step, mark.Quarantined = "quarantined", q.rem.Spec.Title
	return q.write(ctx, n, map[string]any{"unschedulable": true}, nil, mark)
}

// tell leaves the ticket's text where kubectl describe shows it. Events are best effort:
// that it could not be made is said in the end, and no reason to open the node.
func (q *quarantine) tell(ctx context.Context, e *entry) (string, error) {
	events := q.Client.EventsV1().Events(metav1.NamespaceDefault)
	if e.again {
		if _, err := events.Get(ctx, q.eventName(), metav1.GetOptions{}); err == nil {
			return "", nil // made before a crash
		}
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: q.eventName(), Namespace: metav1.NamespaceDefault},
		EventTime:  metav1.NewMicroTime(q.Now()), ReportingController: "unpend.dev/executor", ReportingInstance: fieldManager,
		Action: "Quarantine", Reason: "Quarantined", Type: corev1.EventTypeWarning, Note: strings.ToValidUTF8(q.ticket[:min(len(q.ticket), maxNote)], ""),
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: q.target.Name, UID: types.UID(q.target.UID)},
	}
	_, err := events.Create(ctx, event, metav1.CreateOptions{FieldManager: fieldManager, DryRun: q.dryRun()})
	switch {
	case err == nil || apierrors.IsAlreadyExists(err):
	case transient(err):
		return "", err
	default:
		e.Note = untold
		q.Logger.WarnContext(ctx, "the ticket's text could not be made an Event", "node", q.target.Name, "error", err)
	}
	return "", nil
}

func (q *quarantine) eventName() string {
	return "unpend-ticket-" + q.rem.Name[:min(16, len(q.rem.Name))]
}

// closed holds the node to what the plan is for.
func (q *quarantine) closed(ctx context.Context, _ *entry) (string, error) {
	n, err := q.node(ctx, q.target)
	if err == nil && q.markOf(n) == nil && !q.DryRun {
		err = fmt.Errorf("%w: somebody opened node %s meanwhile, or took its mark; it is left as it is", ErrStale, n.Name)
	}
	return "", err
}

// wayBack opens the node, if it is ours.
func (q *quarantine) wayBack() []step {
	id := func(name string) string { return "undo/" + q.id(name) }
	out := []step{{id: id("release"), text: "uncordon " + q.target.Name, within: contention, try: q.giveBack}}
	if q.Locks != "" {
		out = append(out, step{id: id("unlock"), text: "unlock " + q.target.Name, within: contention, try: q.unlock})
	}
	return out
}

// mends says of a fix that it puts a node right, or out of the way, whether that brings
// the pod to run or not: such a fix may be applied without a proof that it does.
func mends(kinds []diagnosis.FixKind) bool {
	return len(kinds) == 1 && slices.Contains([]diagnosis.FixKind{diagnosis.QuarantineGPU, diagnosis.RevertMIGConfig}, kinds[0])
}

// schedulesNobody says of a plan that no pod was proved to run by it, so that none is
// waited for.
func schedulesNobody(rem *v1alpha1.Remediation) bool {
	return rem.Spec.Node == "" && mends(rem.Spec.Kinds)
}

// achieved says what a plan that has come to its end has done. Nobody files a ticket here,
// and it does not sound so.
func (m *machine) achieved() string {
	if !schedulesNobody(m.rem) {
		return m.status().Pod + " runs"
	}
	var says []string
	for i, a := range m.actions() {
		switch {
		case a.Verb == diagnosis.VerbCordon:
			q := m.quarantine(i, a)
			text := "its text is Event " + metav1.NamespaceDefault + "/" + q.eventName()
			if e := m.entry(q.id("ticket")); e != nil && e.Note == untold {
				text = "its text could not be made an Event; it is in the plan"
			}
			says = append(says, fmt.Sprintf("%s is quarantined: cordoned until somebody opens it; no hardware ticket was filed, %s", a.Target.Name, text))
		case a.Relayout != nil:
			says = append(says, fmt.Sprintf("%s has the layout %q", a.Target.Name, a.Relayout.Config))
		}
	}
	return strings.Join(append(says, "the pod still waits"), "; ")
}
