// Package kubectl tells people where kubectl shows it: an Event on each of an incident's
// first pods, which `kubectl describe pod` lists, and the answer to who asks by an
// annotation.
//
// Begin at Notify. What an Event says is in note.go, what the API server's errors mean in
// errors.go, how a question is answered in answer.go.
//
// Rules of this package:
//   - One Event an incident and pod: news of it changes that one. The same news writes nothing.
//   - Nothing else of an object is written than the two annotations of an answer.
//   - What comes from the cluster is cleaned, and stands on one line.
package kubectl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
	"github.com/unpend/unpend/watcher/incident"
)

// Options of a Kubectl.
type Options struct {
	// Client that writes Events; required. Its transport leaves it to us when a write that the
	// API server has put off is made again.
	Client kubernetes.Interface
	// Dynamic writes the annotations of answers; required where questions are answered.
	Dynamic dynamic.Interface
	// Instance is who reports, such as the pod's name.
	Instance string
	// Load and Save keep what was told, by a key of letters, digits, "." and "-"; Load gives
	// nil for a key that was never saved. What they forget is read from the cluster.
	Load func(ctx context.Context, key string) ([]byte, error)
	Save func(ctx context.Context, key string, value []byte) error
	// Clock that is waited by; the machine's without it.
	Clock notice.Clock
}

// Kubectl is a notice.Notifier.
type Kubectl struct {
	opts  Options
	clock notice.Clock
}

// New makes one; it asks nothing of the cluster yet.
func New(o Options) (*Kubectl, error) {
	if o.Client == nil || o.Load == nil || o.Save == nil {
		return nil, errors.New("kubectl: there is no client, or nowhere to keep what was told")
	}
	if o.Clock.Now == nil {
		o.Clock = notice.System()
	}
	return &Kubectl{opts: o, clock: o.Clock}, nil
}

const (
	// named are the pods of an incident that are told of it, the oldest of those that a finding
	// names: an Event on each of thousands would be a storm of our own.
	named = 5
	// Diagnosed is the reason of every Event.
	Diagnosed  = "Diagnosed"
	action     = "Diagnose"
	controller = "unpend.dev/diagnosis"
	// IncidentLabel of an Event has the incident's id: kubectl get events -l unpend.dev/incident=ID.
	IncidentLabel = "unpend.dev/incident"
)

// Notify implements notice.Notifier. Of what is over, and of plans, it says nothing: the
// pods show the one, the executor's Events tell the other.
func (k *Kubectl) Notify(ctx context.Context, p notice.Proposal) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.Finding == nil || !p.Resolved.IsZero() || len(p.Finding.Pods.Names) == 0 {
		return nil
	}
	sum := substance(p.Finding)
	before, err := k.opts.Load(ctx, p.Incident)
	if err != nil {
		return fmt.Errorf("read what the pods of %s were told: %w", p.Incident, err)
	}
	if string(before) == sum {
		return nil
	}
	pods, err := k.pods(ctx, p.Finding)
	if err != nil {
		return err
	}
	said := note(p.Finding, len(pods))
	for _, pod := range pods {
		about := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}
		if err := k.tell(ctx, k.event(eventName(p.Incident, string(pod.UID)), p.Incident, about, said)); err != nil {
			return err
		}
	}
	if err := k.opts.Save(ctx, p.Incident, []byte(sum)); err != nil {
		return fmt.Errorf("keep what the pods of %s were told: %w", p.Incident, err)
	}
	return nil
}

// substance tells one piece of news from another: another pod under the same name waits
// since another time.
func substance(d *diagnosis.Summary) string {
	body, err := json.Marshal([]any{note(d, min(named, len(d.Pods.Names))), d.Pods.Names, d.Pods.Since})
	if err != nil {
		panic(err) // texts, and a time that has travelled as JSON
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// pods are the oldest of the incident's that are still there.
func (k *Kubectl) pods(ctx context.Context, d *diagnosis.Summary) ([]*corev1.Pod, error) {
	var out []*corev1.Pod
	for _, name := range d.Pods.Names[:min(incident.MaxPods, len(d.Pods.Names))] {
		var pod *corev1.Pod
		err := notice.Retry(ctx, k.clock, func(ctx context.Context) (err error) {
			pod, err = k.opts.Client.CoreV1().Pods(d.Workload.Namespace).Get(ctx, name, metav1.GetOptions{})
			return told("read pod "+d.Workload.Namespace+"/"+name, err)
		})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, pod)
	}
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out[:min(named, len(out))], nil
}

// eventName is the same for the same matter, so that no restart makes a second one.
func eventName(of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "\n")))
	return "unpend-" + hex.EncodeToString(sum[:16])
}

func (k *Kubectl) event(name, of string, about corev1.ObjectReference, said string) *eventsv1.Event {
	e := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: about.Namespace}, EventTime: metav1.NewMicroTime(k.clock.Now()), ReportingController: controller,
		ReportingInstance: fit(wording.Clean(k.opts.Instance), maxInstance), Action: action, Reason: Diagnosed, Type: corev1.EventTypeNormal, Regarding: about, Note: said}
	if e.ReportingInstance == "" {
		e.ReportingInstance = "unpend"
	}
	if of != "" {
		e.Labels = map[string]string{IncidentLabel: of}
	}
	return e
}

// tell has an Event there that says what it should. One that says something else is changed,
// and counts that; one that has expired is made again.
func (k *Kubectl) tell(ctx context.Context, want *eventsv1.Event) error {
	of := fmt.Sprintf("tell %s %s/%s of its diagnosis", strings.ToLower(want.Regarding.Kind), want.Namespace, want.Regarding.Name)
	events := k.opts.Client.EventsV1().Events(want.Namespace)
	err := notice.Retry(ctx, k.clock, func(ctx context.Context) error {
		is, err := events.Get(ctx, want.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			if _, err = events.Create(ctx, want, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
				return &notice.Passing{Err: err} // an earlier try came through
			}
		case err == nil && is.Note != want.Note:
			err = k.change(ctx, is, want)
		}
		return told(of, err)
	})
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // the pod goes too
	}
	return err
}

// change has an Event say something else. The API server takes that through the older API
// alone: in events.k8s.io a note never changes (pkg/apis/core/validation/events.go).
func (k *Kubectl) change(ctx context.Context, is, want *eventsv1.Event) error {
	count := int32(2)
	if is.Series != nil {
		count = is.Series.Count + 1
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": is.UID}, "message": want.Note,
		"series": corev1.EventSeries{Count: count, LastObservedTime: want.EventTime}})
	if err != nil {
		return fmt.Errorf("encode an Event: %w", err)
	}
	_, err = k.opts.Client.CoreV1().Events(is.Namespace).Patch(ctx, is.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return &notice.Passing{Err: err} // it has expired since it was read
	}
	return err
}
