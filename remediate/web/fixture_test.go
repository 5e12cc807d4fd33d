package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/web"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noon is when the tests are.
var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// person is somebody with a token.
type person struct {
	user     string
	reads    []string // namespaces; "*": all
	nodes    bool
	approves bool
}

// api answers as an API server does to who asks who they are and what they may.
type api struct {
	*httptest.Server

	mu     sync.Mutex
	people map[string]person // by token
	asked  []string          // tokens, as they came
	down   bool
}

func newAPI(t testing.TB, people map[string]person) *api {
	a := &api{people: people}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	return a
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	a.asked = append(a.asked, token)
	who, known := a.people[token]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case a.down:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"down"}`)
	case !known:
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401,"message":"Unauthorized"}`)
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		json.NewEncoder(w).Encode(authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: who.user}}})
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review authorizationv1.SelfSubjectAccessReview
		json.NewDecoder(r.Body).Decode(&review)
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
		review.Status.Allowed = who.may(*review.Spec.ResourceAttributes)
		json.NewEncoder(w).Encode(review)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (p person) may(a authorizationv1.ResourceAttributes) bool {
	switch a.Resource {
	case "pods":
		return a.Verb == "get" && (slices.Contains(p.reads, "*") || a.Namespace != "" && slices.Contains(p.reads, a.Namespace))
	case "nodes":
		return a.Verb == "list" && p.nodes
	case "approvals":
		return a.Verb == "create" && a.Group == "unpend.dev" && p.approves
	}
	return false
}

func (a *api) as(token string) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(&rest.Config{Host: a.URL, BearerToken: token, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
}

func (a *api) change(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

// The tokens.
const (
	adas  = "ada-token-canary-7f3a"  // reads everything, and approves
	bobs  = "bob-token-canary-11bb"  // of team-b
	carls = "carl-token-canary-22cc" // of nothing
)

func people() map[string]person {
	return map[string]person{adas: {"ada@example.com", []string{"*"}, true, true}, bobs: {"bob@example.com", []string{"team-b"}, false, false}, carls: {"carl@example.com", nil, false, false}}
}

// site is a page with its API server.
type site struct {
	*web.Page
	*httptest.Server
	api *api
}

func newSite(t testing.TB, edit ...func(*web.Options)) *site {
	t.Helper()
	a := newAPI(t, people())
	o := web.Options{As: a.as, Cluster: "prod", Now: func() time.Time { return noon },
		Namespaces: func(context.Context) ([]string, error) {
			return []string{"default", "team-a", "team-b", "kube-system"}, nil
		}}
	for _, e := range edit {
		e(&o)
	}
	p, err := web.New(o)
	must(t, err)
	s := &site{Page: p, Server: httptest.NewUnstartedServer(nil), api: a}
	s.Config = p.Server()
	s.Start()
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s
}

func (s *site) tell(t testing.TB, all ...notice.Proposal) {
	t.Helper()
	for _, p := range all {
		must(t, s.Notify(t.Context(), p))
	}
}

// browser keeps cookies, and shows redirects as they are.
type browser struct {
	*http.Client
	site *site
}

func (s *site) browser(t testing.TB) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	return &browser{&http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, s}
}

// answer is what came back.
type answer struct {
	*http.Response
	body string
}

func (b *browser) do(t testing.TB, r *http.Request) answer {
	t.Helper()
	resp, err := b.Do(r)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return answer{resp, string(body)}
}

func (b *browser) get(t testing.TB, path string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.site.URL+path, nil)
	must(t, err)
	return b.do(t, r)
}

func (b *browser) post(t testing.TB, path string, form url.Values) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.site.URL+path, strings.NewReader(form.Encode()))
	must(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(t, r)
}

func (b *browser) signIn(t testing.TB, token string) *browser {
	t.Helper()
	if got := b.post(t, "/sign-in", url.Values{"token": {token}}); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("signing in: %s\n%s", got.Status, got.body)
	}
	return b
}

// scenario is the first finding of a dump.
func scenario(t testing.TB, name string) notice.Proposal {
	t.Helper()
	st, err := dump.Read([]string{filepath.Join("..", "..", "testdata", "scenarios", name)}, nil)
	must(t, err)
	found, err := rca.Diagnose(t.Context(), st, rca.Options{})
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %d findings, %v", name, len(found), err)
	}
	body, err := found[0].Message()
	must(t, err)
	var s diagnosis.Summary
	must(t, json.Unmarshal(body, &s))
	s.Pods.Since = noon.Add(-14 * time.Minute)
	return notice.Proposal{Incident: s.Incident, Finding: &s, Read: noon.Add(-3 * time.Second)}
}
