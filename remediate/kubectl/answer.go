package kubectl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

// The annotations of a question and of its answer. The question stays where it is; which one
// was answered stands beside it, so that nobody answers twice, whatever is restarted.
const (
	Why       = "unpend.dev/why"
	Diagnosis = "unpend.dev/diagnosis"
	Answered  = "unpend.dev/answered"
)

// Question is an object about which somebody asks why it waits.
type Question struct {
	Object schema.GroupVersionKind
	About  corev1.ObjectReference
	Value  string // of the annotation: any other one is another question
}

// Asked reads the question on an object; false where there is none, or it was answered.
func Asked(kind schema.GroupVersionKind, o metav1.Object) (Question, bool) {
	value, asked := o.GetAnnotations()[Why]
	answered, ever := o.GetAnnotations()[Answered]
	if !asked || ever && answered == value || o.GetDeletionTimestamp() != nil {
		return Question{}, false
	}
	return Question{kind, corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}, value}, true
}

// Answer is what is said to a question.
type Answer struct {
	Incident string // empty where nothing waits
	Headline string
	Note     string
}

// Explained is the answer where something waits; others are the further incidents of the
// same object.
func Explained(d diagnosis.Summary, others []string) Answer {
	said := note(&d, d.Pods.Waiting)
	if len(others) > 0 {
		said = fit(said, maxNote-64) + fmt.Sprintf("; %d more incidents of it: kubectl unpend incidents", len(others))
	}
	return Answer{d.Incident, wording.Clean(d.Headline), said}
}

// Waitless is the answer where nothing is known to wait; says is what is known, of the object.
func Waitless(q Question, says string) Answer {
	of := strings.ToLower(q.About.Kind) + "/" + q.About.Name
	headline := part(of + " " + says)
	return Answer{"", headline, line([]string{headline}, fmt.Sprintf("kubectl unpend why %s -n %s", of, q.About.Namespace))}
}

// Answer says it by an Event on the object, and by annotations of it, which say too that the
// question was answered. What it did before it failed is not done again. An object that is
// gone, or was made again under its name, is not answered.
func (k *Kubectl) Answer(ctx context.Context, q Question, a Answer) error {
	if err := k.tell(ctx, k.event(eventName(string(q.About.UID), q.Value), a.Incident, q.About, a.Note)); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": q.About.UID, "annotations": map[string]string{Diagnosis: a.Headline, Answered: q.Value}}})
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	resource, _ := meta.UnsafeGuessKindToResource(q.Object)
	err = notice.Retry(ctx, k.clock, func(ctx context.Context) error {
		_, err := k.opts.Dynamic.Resource(resource).Namespace(q.About.Namespace).Patch(ctx, q.About.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsConflict(err) {
			return nil // another object has the name
		}
		return told(fmt.Sprintf("answer on %s %s/%s", strings.ToLower(q.About.Kind), q.About.Namespace, q.About.Name), err)
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
