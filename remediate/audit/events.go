package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// controller of the Events.
const controller = "unpend.dev/executor"

// What the API server takes, in bytes (pkg/apis/core/validation/events.go).
const (
	maxNote = 1024
	maxName = 128 // reason, action and reportingInstance
)

// patience is how long a step may be held up by telling of it.
const patience = 5 * time.Second

// Events tells of records where kubectl describe shows it.
type Events struct {
	client   kubernetes.Interface
	instance string
	now      func() time.Time
	failures prometheus.Counter
	patience time.Duration
}

// NewEvents tells as the executor's instance (its pod) and counts in failures what
// could not be told.
func NewEvents(client kubernetes.Interface, instance string, now func() time.Time, failures prometheus.Counter) *Events {
	return &Events{client, instance, now, failures, patience}
}

// Tell makes an Event about the object that a record's step is on, and related, which
// may be nil. The record's time is the Event's, or now when it has none; the same
// record told twice is one Event. It takes no more than 5 s; an error is counted and to
// be logged, not to be heeded: Events are best effort.
func (e *Events) Tell(ctx context.Context, r Record, about corev1.ObjectReference, related *corev1.ObjectReference) error {
	ctx, cancel := context.WithTimeout(ctx, e.patience)
	defer cancel()
	event := eventFor(r, e.instance, about, related)
	if r.Time.IsZero() {
		event.EventTime = metav1.NewMicroTime(e.now())
	}
	_, err := e.client.EventsV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	e.failures.Inc()
	return fmt.Errorf("tell of step %s on %s %s: %w", r.Step, about.Kind, about.Name, err)
}

func eventFor(r Record, instance string, about corev1.ObjectReference, related *corev1.ObjectReference) *eventsv1.Event {
	e := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: eventName(r, about), Namespace: cmp.Or(about.Namespace, metav1.NamespaceDefault)},
		EventTime:           metav1.NewMicroTime(r.Time),
		ReportingController: controller,
		ReportingInstance:   cut(text(cmp.Or(instance, "unpend")), maxName),
		Action:              cut(text(action(r)), maxName),
		Reason:              cut(text(reason(r.Result)), maxName),
		Regarding:           about,
		Related:             related,
		Note:                cut(text(note(r)), maxNote),
		Type:                corev1.EventTypeNormal,
	}
	if slices.Contains([]Result{Failed, Refused, Parked}, r.Result) {
		e.Type = corev1.EventTypeWarning
	}
	return e
}

// eventName is the same for the same news, and a legal name whatever the object's is.
func eventName(r Record, about corev1.ObjectReference) string {
	r.Seq, r.Prev, r.Hash = 0, "", ""
	data, err := json.Marshal(struct {
		Record Record
		About  corev1.ObjectReference
	}{r, about})
	if err != nil {
		data = []byte(r.Plan + r.Step) // strings and numbers are always encoded
	}
	return fmt.Sprintf("unpend-%x", sha256.Sum256(data))[:len("unpend-")+32]
}

// reason is a word for programs, of a closed set.
func reason(r Result) string {
	switch r {
	case Begun, Done, Failed, Undone:
		return "Step" + title(string(r))
	}
	return "Plan" + title(string(r))
}

// action is the verb of a step's name: Evict of "0/evict/ml/web-1".
func action(r Record) string {
	for part := range strings.SplitSeq(strings.TrimPrefix(r.Step, "undo/"), "/") {
		if strings.Trim(part, "0123456789") != "" {
			return title(part)
		}
	}
	return title(string(cmp.Or(r.Result, Begun)))
}

// note is one sentence; a long one loses its middle, not the plan and who approved it.
func note(r Record) string {
	said := cmp.Or(r.Text, r.Step) + ": " + string(r.Result)
	if r.Why != "" {
		said += ": " + r.Why
	}
	var of []string
	if r.Plan != "" {
		of = append(of, "plan "+r.Plan[:min(12, len(r.Plan))])
	}
	if len(r.Approvers) > 0 {
		of = append(of, "approved by "+strings.Join(r.Approvers, " and "))
	}
	if len(of) == 0 {
		return said
	}
	tail := " (" + strings.Join(of, ", ") + ")"
	return cut(text(said), max(maxNote/2, maxNote-len(tail))) + tail
}

func title(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// text makes a string UTF-8, which the API server insists on.
func text(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }
