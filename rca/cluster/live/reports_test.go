package live

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

// probed is an API server that has NodeGeometries, and lets nobody read anything else.
type probed struct {
	*httptest.Server
	streams bool        // a watch may begin with what is there
	closed  atomic.Bool // nobody may read anything
	mu      sync.Mutex
	objects []string      // that are there
	told    []string      // to watches; how much that is, and one, is the version
	news    chan struct{} // closed when more is told
}

func newProbed(tb testing.TB, streams bool, objects ...string) *probed {
	p := &probed{streams: streams, objects: objects, news: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path != "/apis/unpend.dev/v1alpha1/nodegeometries" || p.closed.Load():
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		case q.Get("watch") != "true" && q.Get("watch") != "1":
			p.mu.Lock()
			fmt.Fprintf(w, `{"apiVersion":"unpend.dev/v1alpha1","kind":"NodeGeometryList","metadata":{"resourceVersion":"%d"},"items":[%s]}`, len(p.told)+1, strings.Join(p.objects, ","))
			p.mu.Unlock()
		case q.Get("sendInitialEvents") == "true" && !p.streams:
			refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		default:
			p.watched(w, r, q.Get("sendInitialEvents") == "true")
		}
	}))
	tb.Cleanup(p.Close)
	tb.Cleanup(p.CloseClientConnections)
	return p
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
}

func (p *probed) watched(w http.ResponseWriter, r *http.Request, initial bool) {
	at, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	at--
	if initial {
		p.mu.Lock()
		for _, o := range p.objects {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", o)
		}
		at = len(p.told)
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":"NodeGeometry","apiVersion":"unpend.dev/v1alpha1","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", at+1)
		p.mu.Unlock()
	}
	for {
		p.mu.Lock()
		more, news := p.told[at:], p.news
		p.mu.Unlock()
		for _, line := range more {
			io.WriteString(w, line+"\n")
		}
		at += len(more)
		http.NewResponseController(w).Flush()
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}

// tells of changes, after which those objects are there.
func (p *probed) tells(objects []string, lines ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.objects, p.told = objects, append(p.told, lines...)
	close(p.news)
	p.news = make(chan struct{})
}

// reportText is a node's report as the API server has it.
func reportText(tb testing.TB, name string, edit func(*nodeprobe.NodeGeometry)) string {
	tb.Helper()
	node := sim.Node{Name: name, Model: "A100-40GB", GPUs: 8}
	for range 8 {
		node.Layouts = append(node.Layouts, sim.All("A100-40GB", "1g.5gb"))
	}
	geo := node.Geometry(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	geo.ResourceVersion, geo.UID = "4", "u"
	geo.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}"}
	geo.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "nodeprobe", FieldsV1: metav1.NewFieldsV1(`{"f:report":{}}`)}}
	if edit != nil {
		edit(geo)
	}
	u, err := sim.Unstructured(geo)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(u); err == nil {
			return string(text)
		}
	}
	tb.Fatal(err)
	return ""
}

// followsProbed follows by the way of a real client, and by the dynamic one.
func followsProbed(t *testing.T, p *probed) (typed, generic *Follower) {
	t.Helper()
	config := &rest.Config{Host: p.URL, QPS: 1000, Burst: 1000}
	custom := dynamic.NewForConfigOrDie(config)
	for to, client := range map[**Follower]kubernetes.Interface{&typed: kubernetes.NewForConfigOrDie(config), &generic: fake.NewClientset()} {
		f, err := Follow(t.Context(), client, custom, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Close)
		*to = f
	}
	return typed, generic
}

// Reports that are decoded into their type say what the dynamic client's do: those that are
// there, in a list or told by a watch, those that come, change and go, and those that are none.
func TestReportsAreWhatTheDynamicClientReads(t *testing.T) {
	const none = `{"apiVersion":"unpend.dev/v1alpha1","kind":"NodeGeometry","metadata":{"name":"gpu-3","resourceVersion":"4"},"report":{"observedAt":"2026-01-02T03:04:05Z","source":"nvml","gpus":"none"}}`
	held := reportText(t, "gpu-2", func(g *nodeprobe.NodeGeometry) {
		g.Report.GPUs[0].Instances[0].Holder = &nodeprobe.Holder{Namespace: "ml", Pod: "p", Container: "main"}
		g.Report.GPUs[1].Healthy, g.Report.GPUs[2].MIG = false, nil
	})
	for name, streams := range map[string]bool{"told by the watch": true, "listed": false} {
		t.Run(name, func(t *testing.T) {
			p := newProbed(t, streams, reportText(t, "gpu-1", nil), held, none)
			typed, generic := followsProbed(t, p)
			same := func(want ...string) {
				t.Helper()
				controlplane.Eventually(t, time.Minute, fmt.Sprint("both know ", want), func() (bool, string) {
					a, b := typed.State(t.Context()), generic.State(t.Context())
					if len(a.Illegible) != len(b.Illegible) {
						return false, fmt.Sprint(a.Illegible, b.Illegible, a.Unread[nodeprobe.Kind.Kind], b.Unread[nodeprobe.Kind.Kind])
					}
					for _, n := range want {
						if a.Geometries[n] == nil && a.Illegible[n] == "" {
							return false, n + " is not known"
						}
					}
					return len(a.Geometries)+len(a.Illegible) == len(want) && cmp.Equal(a.Geometries, b.Geometries), cmp.Diff(b.Geometries, a.Geometries)
				})
			}
			same("gpu-1", "gpu-2", "gpu-3")
			st := typed.State(t.Context())
			if why := st.Illegible["gpu-3"]; !strings.Contains(why, "gpus") || st.Unread[nodeprobe.Kind.Kind] != "" {
				t.Errorf("%q, unread %q", why, st.Unread[nodeprobe.Kind.Kind])
			}
			if a, b := st.Geometries["gpu-1"].Report.GPUs, st.Geometries["gpu-2"].Report.GPUs; &a[0].Profiles[0] != &b[7].Profiles[0] {
				t.Error("GPUs of one model have two tables of profiles")
			}
			first, fourth := reportText(t, "gpu-1", nil), reportText(t, "gpu-4", nil)
			third := reportText(t, "gpu-3", func(g *nodeprobe.NodeGeometry) { g.UID = "v" })
			p.tells([]string{first, third, fourth}, `{"type":"ADDED","object":`+fourth+`}`, `{"type":"DELETED","object":`+held+`}`, `{"type":"MODIFIED","object":`+third+`}`)
			same("gpu-1", "gpu-3", "gpu-4")
			if st := typed.State(t.Context()); len(st.Illegible) > 0 || st.Geometries["gpu-3"].UID != "v" {
				t.Errorf("%v, %+v", st.Illegible, st.Geometries["gpu-3"])
			}
			p.tells([]string{third}, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
			same("gpu-3") // all is read again
		})
	}
}

// A kind that may not be followed any more is told of with the reason, keeps what was known,
// and is followed again once it may be.
func TestFailingWatchIsToldOf(t *testing.T) {
	p := newProbed(t, true, reportText(t, "gpu-1", nil))
	typed, _ := followsProbed(t, p)
	failed := make(chan string, 100)
	typed.OnFailure(func(kind, reason string) { failed <- kind + " " + reason })
	p.closed.Store(true)
	p.tells([]string{reportText(t, "gpu-2", nil)}, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
	select {
	case got := <-failed:
		if got != "NodeGeometry Forbidden" {
			t.Error(got)
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody is told")
	}
	if st := typed.State(t.Context()); st.Geometries["gpu-1"] == nil || st.Unread[nodeprobe.Kind.Kind] != "" {
		t.Errorf("%v, unread %q", st.Geometries, st.Unread[nodeprobe.Kind.Kind])
	}
	p.closed.Store(false)
	controlplane.Eventually(t, time.Minute, "it is followed again", func() (bool, string) {
		st := typed.State(t.Context())
		return st.Geometries["gpu-2"] != nil && st.Geometries["gpu-1"] == nil, fmt.Sprint(st.Geometries)
	})
}

// Who may not read reports is told so, as of any other kind.
func TestReportsThatMayNotBeRead(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	}))
	defer srv.Close()
	config := &rest.Config{Host: srv.URL, QPS: 1000, Burst: 1000}
	st, err := Read(t.Context(), kubernetes.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config), time.Now)
	if err != nil || st.Unread[nodeprobe.Kind.Kind] != "the right to list nodegeometries.unpend.dev is missing" {
		t.Errorf("%v, %q", err, st.Unread[nodeprobe.Kind.Kind])
	}
}

// BenchmarkReadReports reads the reports of 1,000 nodes with 8 GPUs from an API server, and
// again through the dynamic client: x-dynamic is how many times as long that takes.
func BenchmarkReadReports(b *testing.B) {
	objects := make([]string, 1000)
	for i := range objects {
		objects[i] = reportText(b, fmt.Sprintf("gpu-%04d", i), nil)
	}
	p := newProbed(b, true, objects...)
	config := &rest.Config{Host: p.URL, QPS: 1000, Burst: 1000}
	custom := dynamic.NewForConfigOrDie(config)
	clients := []kubernetes.Interface{kubernetes.NewForConfigOrDie(config), fake.NewClientset()}
	var took [2]time.Duration
	for b.Loop() {
		for i, client := range clients {
			began := time.Now()
			st, err := Read(b.Context(), client, custom, time.Now)
			took[i] += time.Since(began)
			if err != nil || len(st.Geometries) != len(objects) {
				b.Fatalf("%d reports, %v", len(st.Geometries), err)
			}
		}
	}
	b.ReportMetric(took[0].Seconds()/float64(b.N)*1000, "ms/read")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "x-dynamic")
}
