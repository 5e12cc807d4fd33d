package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/remediate/plan"
)

func shelved(_ context.Context, place, _ string, _ int) ([]knowledge.Hit, error) {
	if place != settings.OnMCP && place != "slack/C7" {
		return nil, fmt.Errorf("searched for %q", place)
	}
	return []knowledge.Hit{{Source: "slack", Title: "2g\npending", Where: "gpu-oncall", Quote: "split  it", URL: "https://acme.slack.com/1", At: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)},
		{Source: "outcome", Title: "of team-b"}, {Source: "doc", Title: "Layouts", Quote: "q", URL: "javascript:alert(1)"}}, nil
}

// Who may read all pods sees all that is found, who may read those of a namespace no outcomes,
// and who may read none nothing.
func TestSearchAs(t *testing.T) {
	s := &Service{client: fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-b"}})}
	as := func(may ...string) *fake.Clientset {
		c := fake.NewClientset()
		c.PrependReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
			review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
			what := review.Spec.ResourceAttributes
			for _, namespace := range may {
				review.Status.Allowed = review.Status.Allowed || what.Namespace == namespace && what.Verb == "get" && what.Resource == "pods"
			}
			return true, review, nil
		})
		return c
	}
	if _, err := s.SearchAs(t.Context(), as(""), "x", 3); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), "knowledge.folder") {
		t.Errorf("nothing is read: %v", err)
	}
	s.bindSearch(shelved)
	for name, tc := range map[string]struct {
		may  []string
		want []string
	}{"everything": {[]string{""}, []string{"slack", "outcome", "doc"}}, "one namespace": {[]string{"team-b"}, []string{"slack", "doc"}}, "none": {nil, nil}} {
		hits, err := s.SearchAs(t.Context(), as(tc.may...), "x", 3)
		var got []string
		for _, h := range hits {
			got = append(got, h.Source)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || (tc.want == nil) != errors.Is(err, plan.ErrRefused) || tc.want != nil && err != nil {
			t.Errorf("who may read %s: %v %s", name, err, diff)
		}
	}
}

// In Slack it is a few lines, without what plans of whatever namespace came to.
func TestSearchInSlack(t *testing.T) {
	s := &Service{}
	if _, err := s.searchInSlack(t.Context(), "C7", "x"); !errors.Is(err, plan.ErrRefused) {
		t.Error(err)
	}
	s.bindSearch(shelved)
	says, err := s.searchInSlack(t.Context(), "C7", "x")
	must(t, err)
	if want := "• “2g pending” (slack, gpu-oncall, 2026-03-01)\n    split it\n    https://acme.slack.com/1\n• “Layouts” (doc)\n    q"; says != want {
		t.Errorf("%s", says)
	}
	s.bindSearch(func(context.Context, string, string, int) ([]knowledge.Hit, error) { return nil, nil })
	if says, err := s.searchInSlack(t.Context(), "C7", "x"); err != nil || says != "Nothing that the team has said is like it." {
		t.Errorf("%q %v", says, err)
	}
}
