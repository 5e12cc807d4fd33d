package desk

import (
	"errors"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/remediate/plan"
)

// Who asks why a pod waits is told the finding of its incident where they may read pods; where
// they may not, the answer is that of a pod that is not there.
func TestWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		readable  []string
		pod       string // of the scenario's, without one
		says      string // of an error
	}{
		"their own":                   {"default", []string{"default"}, "", ""},
		"without a namespace":         {"", []string{"default"}, "", ""},
		"of another":                  {"default", nil, "", "no pod training-x waits that you may read"},
		"of another, no namespace":    {"", []string{"kube-system"}, "", "no pod training-x waits that you may read"},
		"there is none":               {"default", []string{"default"}, "nothing", "no pod nothing waits that you may read"},
		"not in a namespace of ours ": {"kube-system", []string{"kube-system"}, "", "no pod training-x waits that you may read"},
	} {
		m := newMemory(t)
		var asked []string
		m.client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
			r, ok := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
			if !ok || r.Spec.User != "ada" || !slices.Equal(r.Spec.Groups, []string{"system:authenticated", "admins"}) || r.Spec.ResourceAttributes.Resource != "pods" || r.Spec.ResourceAttributes.Verb != "get" {
				t.Errorf("%s: %+v", name, a)
			}
			asked = append(asked, r.Spec.ResourceAttributes.Namespace)
			r.Status.Allowed = slices.Contains(tc.readable, r.Spec.ResourceAttributes.Namespace)
			return true, r, nil
		})
		pod := tc.pod
		if pod == "" {
			pod = m.waiting(t)
		}
		got, err := m.slack(t, "U0ADA").Why(t.Context(), pod, tc.namespace)
		if tc.says != "" {
			if says := strings.ReplaceAll(tc.says, "training-x", pod); !errors.Is(err, plan.ErrRefused) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || got.Incident != m.id || len(got.Fixes) == 0 || got.Fixes[0].Plan != m.best.Plan {
			t.Fatalf("%s: %+v, %v", name, got.Diagnosis, err)
		}
		if len(asked) != 1 {
			t.Errorf("%s: asked of %q", name, asked)
		}
		victim := got.Fixes[0].Cost.Evictions[0]
		text := "evict " + victim.Namespace + "/" + victim.Name
		if got.Hide(text) != text {
			t.Errorf("%s: %s", name, got.Hide(text))
		}
		if w := m.written(); len(w) != 0 {
			t.Errorf("%s: written %q", name, w)
		}
	}
}

// A text names no pod in a namespace that its reader may not read: S9.
func TestS09Hidden(t *testing.T) {
	m := newMemory(t)
	st := m.state(t)
	text := ""
	for _, p := range st.Pods {
		text += p.Namespace + "/" + p.Name + " "
	}
	none := hide(st, func(string) (bool, error) { return false, nil })(text)
	if strings.Contains(none, "/") || strings.Count(none, "a pod in another namespace") != len(st.Pods) {
		t.Errorf("%s", none)
	}
	if unknown := hide(st, func(string) (bool, error) { return true, errors.New("no answer") })(text); unknown != none {
		t.Errorf("unknown is taken for allowed: %s", unknown)
	}
	if all := hide(st, func(string) (bool, error) { return true, nil })(text); all != text {
		t.Errorf("%s", all)
	}
}
