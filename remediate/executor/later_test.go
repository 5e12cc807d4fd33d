package executor

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/unpend/unpend/remediate/journal"
)

// A write that the API server wants later is made once; how much later, and why, is
// in the error. Reads are made again by client-go, as ever.
func TestOneWrite(t *testing.T) {
	budget := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonTooManyRequests, Code: 429,
		Message: "not yet", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "wait"}}}}
	info, ok := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if !ok {
		t.Fatal("no protobuf")
	}
	proto, err := runtime.Encode(info.Serializer, budget)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		code         int
		contentType  string
		body         []byte
		wantsBudgets int
	}{
		"text":     {429, "text/plain", []byte("Too many requests, please try again later."), 0},
		"a budget": {429, runtime.ContentTypeProtobuf, proto, 1},
		"empty":    {503, "text/plain", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			writes, reads := 0, 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				if r.Method == http.MethodGet {
					reads++
					if reads > 1 {
						w.Header().Set("Content-Type", "application/json")
						io.WriteString(w, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`)
						return
					}
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(429)
					return
				}
				writes++
				w.Header().Set("Retry-After", "7")
				w.Header().Set("Content-Type", c.contentType)
				w.WriteHeader(c.code)
				w.Write(c.body)
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}}
			config.Wrap(OneWrite)
			client := kubernetes.NewForConfigOrDie(config)
			err := client.PolicyV1().Evictions("ns").Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
			seconds, delay := apierrors.SuggestsClientDelay(err)
			if writes != 1 || !journal.Transient(err) || !delay || seconds != 7 || len(causes(err)) != c.wantsBudgets {
				t.Errorf("%d writes; %v, after %d s (%v); budgets %v", writes, err, seconds, delay, causes(err))
			}
			var p *corev1.Pod
			if p, err = client.CoreV1().Pods("ns").Get(t.Context(), "a", metav1.GetOptions{}); err != nil || p.Name != "a" || reads != 2 {
				t.Errorf("%v after %d reads", err, reads)
			}
		})
	}
}

// causes are those that the API server gives for a refusal.
func causes(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(status.Status().Details.Causes), func(c metav1.StatusCause) bool { return c.Type != policyv1.DisruptionBudgetCause })
}

// An API server that wants to be left alone with a plan is: whatever else changes.
func TestLeavesAloneAsLongAsAsked(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(429)
		io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"TooManyRequests","code":429,"details":{"retryAfterSeconds":2}}`)
	}))
	defer server.Close()
	x := New(Options{Deps: Deps{Dynamic: dynamic.NewForConfigOrDie(&rest.Config{Host: server.URL}), Now: time.Now}})
	for n, plan := range []string{"a", "a", "b"} {
		got, err := x.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: plan}})
		if err != nil || got.RequeueAfter <= time.Second || got.RequeueAfter > 2*time.Second {
			t.Errorf("look %d, at %s: %+v, %v", n, plan, got, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want once about each plan", asked)
	}
}
