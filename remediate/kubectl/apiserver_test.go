package kubectl_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/remediate/kubectl"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
)

const secret = "a-token-of-a-service-account"

// apiServer is as much of one as Events, pods and a patch of an annotation take; what it is
// really like, the acceptance tests see.
type apiServer struct {
	*httptest.Server
	clock *notifytest.Clock

	mu      sync.Mutex
	faults  []notifytest.Fault
	writes  int
	pods    map[string]time.Time // when they were made; missing ones are not there
	events  map[string]*eventsv1.Event
	order   []string
	patched []string // bodies, of other objects than Events
	kept    map[string][]byte
}

func newAPIServer(t *testing.T, c *notifytest.Clock) *apiServer {
	t.Helper()
	a := &apiServer{clock: c, pods: map[string]time.Time{"training-0": c.Now()}, events: map[string]*eventsv1.Event{}, kept: map[string][]byte{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	t.Cleanup(a.CloseClientConnections)
	return a
}

// New is a process that starts.
func (a *apiServer) New(t *testing.T, c *notifytest.Clock, _ *slog.Logger) notice.Notifier {
	t.Helper()
	return a.kubectl(t, c)
}

func (a *apiServer) kubectl(t *testing.T, c *notifytest.Clock) *kubectl.Kubectl {
	t.Helper()
	config := &rest.Config{Host: a.URL, BearerToken: secret, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	k, err := kubectl.New(kubectl.Options{Client: kubernetes.NewForConfigOrDie(config), Dynamic: dynamic.NewForConfigOrDie(config), Instance: "unpend-0", Clock: notice.Clock{Now: c.Now, Sleep: c.Sleep},
		Load: func(_ context.Context, key string) ([]byte, error) {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.kept[key], nil
		},
		Save: func(_ context.Context, key string, value []byte) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.kept[key] = value
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (a *apiServer) Secrets() []string { return []string{secret} }

func (a *apiServer) Fail(faults ...notifytest.Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.faults = slices.Clone(faults)
}

func (a *apiServer) Writes() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writes
}

func (a *apiServer) Messages() []notifytest.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []notifytest.Message
	for _, name := range a.order {
		out = append(out, notifytest.Message{Incident: a.events[name].Labels[kubectl.IncidentLabel], Text: a.events[name].Note})
	}
	return out
}

// forget has what was kept, or the Events, be gone.
func (a *apiServer) forget(kept, events bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if kept {
		clear(a.kept)
	}
	if events {
		clear(a.events)
		a.order = nil
	}
}

func (a *apiServer) fault() (f notifytest.Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.writes++
	if len(a.faults) > 0 {
		f, a.faults = a.faults[0], a.faults[1:]
	}
	return f
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+secret {
		a.status(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if r.Method == http.MethodGet {
		a.handle(w, r, body)
		return
	}
	switch f := a.fault(); f.Kind {
	case "":
		a.handle(w, r, body)
	case notifytest.TooMany:
		// As the transport of the service leaves it: the hint in the body, not in the header
		// that has client-go wait by itself.
		a.status(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, f.After)
	case notifytest.Broken, notifytest.Soft: // it says nothing in a 200
		a.status(w, http.StatusInternalServerError, metav1.StatusReasonInternalError)
	case notifytest.Bad:
		a.status(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case notifytest.BadToken:
		a.status(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case notifytest.Hangs:
		<-r.Context().Done()
	case notifytest.LostOut:
		a.handle(httptest.NewRecorder(), r, body)
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

func (a *apiServer) handle(w http.ResponseWriter, r *http.Request, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	name := path[len(path)-1]
	e := a.events[name]
	switch {
	case r.Method == http.MethodPatch && !strings.Contains(r.URL.Path, "/events/"):
		a.patched = append(a.patched, r.URL.Path+" "+string(body))
		a.says(w, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name}})
	case strings.Contains(r.URL.Path, "/pods/"):
		made, there := a.pods[name]
		if !there {
			a.status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
			return
		}
		a.says(w, &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(made)}})
	case r.Method == http.MethodPost:
		e = &eventsv1.Event{}
		if err := json.Unmarshal(body, e); err != nil || len(e.Note) > 1024 {
			a.status(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
			return
		}
		if a.events[e.Name] != nil {
			a.status(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
			return
		}
		a.events[e.Name], a.order = e, append(a.order, e.Name)
		a.says(w, e)
	case e == nil:
		a.status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case r.Method == http.MethodPatch && strings.HasPrefix(r.URL.Path, "/api/v1/"): // a note never changes through the other API
		var news struct {
			Message string                `json:"message"`
			Series  *eventsv1.EventSeries `json:"series"`
		}
		if json.Unmarshal(body, &news) != nil || len(news.Message) > 1024 {
			a.status(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
			return
		}
		e.Note, e.Series = news.Message, news.Series
		a.says(w, e)
	case r.Method == http.MethodGet:
		a.says(w, e)
	default:
		a.status(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	}
}

func (a *apiServer) says(w http.ResponseWriter, o any) {
	if e, ok := o.(*eventsv1.Event); ok {
		e.TypeMeta = metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"}
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(o)
}

func (a *apiServer) status(w http.ResponseWriter, code int, reason metav1.StatusReason, after ...time.Duration) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	says := metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason)}
	for _, d := range after {
		says.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(d.Seconds())}
	}
	json.NewEncoder(w).Encode(says)
}

// all are the Events, by the name of the object that they are about.
func (a *apiServer) all() map[string]*eventsv1.Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]*eventsv1.Event{}
	for e := range maps.Values(a.events) {
		out[e.Regarding.Name] = e.DeepCopy()
	}
	return out
}
