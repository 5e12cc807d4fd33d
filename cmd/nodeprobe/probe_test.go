//go:build cgo

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/nodeprobe"
)

// node is what a probe looks at and reports to, in fake time.
type node struct {
	probe
	gpus   []nodeprobe.Seen
	driver error
	refuse error
	writes []nodeprobe.Report
	at     []time.Duration // of each write, or attempt
	then   map[time.Duration]func()
	log    bytes.Buffer
}

// newNode makes one with a whole GPU. To be called in a bubble of synctest.
func newNode(seed uint64) *node {
	n := &node{gpus: []nodeprobe.Seen{{GPU: nodeprobe.GPU{UUID: "GPU-0", Product: "NVIDIA L4", Healthy: true}}}}
	start := time.Now()
	n.probe = probe{
		read: func(context.Context) (nodeprobe.Reading, error) {
			return nodeprobe.Reading{DriverVersion: "580", GPUs: n.gpus}, n.driver
		},
		wait: func(ctx context.Context, d time.Duration) {
			select {
			case <-ctx.Done():
			case <-time.After(d):
			}
			for due, f := range n.then { // in this goroutine, between two looks
				if time.Since(start) >= due {
					delete(n.then, due)
					f()
				}
			}
		},
		held: func(context.Context) ([]nodeprobe.Allocation, error) { return nil, nil },
		publish: func(_ context.Context, r nodeprobe.Report) error {
			n.at = append(n.at, time.Since(start))
			if n.refuse == nil {
				n.writes = append(n.writes, r)
			}
			return n.refuse
		},
		now:    time.Now,
		rand:   rand.New(rand.NewPCG(seed, 0)),
		logger: slog.New(slog.NewTextHandler(&n.log, nil)),
	}
	return n
}

// runFor runs the probe for a while; what happens meanwhile is in then, by when.
func (n *node) runFor(t *testing.T, d time.Duration, then map[time.Duration]func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	n.then = then
	if err := n.run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestWhenToWrite: once within a minute, at a change, and every two minutes.
func TestWhenToWrite(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { whenToWrite(t, seed) })
	}
}

func whenToWrite(t *testing.T, seed uint64) {
	n := newNode(seed)
	n.runFor(t, time.Hour, map[time.Duration]func(){
		30*time.Minute + 2*time.Second: func() { n.gpus[0].Healthy = false },
	})
	if n.at[0] > time.Minute {
		t.Errorf("the first write comes after %s", n.at[0])
	}
	changed := -1
	for i, w := range n.writes {
		if age := n.at[i] - w.ObservedAt.Sub(n.writes[0].ObservedAt.Time) - n.at[0]; age != 0 {
			t.Errorf("write %d is of %s ago", i, age)
		}
		if !w.GPUs[0].Healthy && changed < 0 {
			changed = i
		} else if i > 0 && (n.at[i]-n.at[i-1] < 108*time.Second || n.at[i]-n.at[i-1] > 137*time.Second) {
			t.Errorf("%s between two heartbeats", n.at[i]-n.at[i-1])
		}
	}
	if late := n.at[changed] - 30*time.Minute; late < 0 || late > 7*time.Second {
		t.Errorf("the change is written after %s", late)
	}
	if len(n.writes) < 28 || len(n.writes) > 34 || n.log.Len() > 0 {
		t.Errorf("%d writes in an hour, log %q", len(n.writes), n.log.String())
	}
}

// TestThousandProbes (promise R31): starting at once, they do not storm the API. They speak to
// an API server that counts, through the client that they have in a cluster.
func TestThousandProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &counting{began: time.Now(), perSecond: map[time.Duration]int{}, other: map[string]int{}}
		var wg sync.WaitGroup
		for i := range 1000 {
			wg.Go(func() {
				client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: "http://api"}, &http.Client{Transport: api})
				if err != nil {
					t.Error(err)
					return
				}
				n := newNode(uint64(i))
				n.publish = newPublisher(client, fmt.Sprintf("gpu-%d", i)).publish
				n.runFor(t, 10*time.Minute, nil)
			})
		}
		wg.Wait()
		most, total, first, last := 0, 0, api.created[0], api.created[0]
		for _, n := range api.perSecond {
			most, total = max(most, n), total+n
		}
		for _, at := range api.created {
			first, last = min(first, at), max(last, at)
		}
		t.Logf("R31: 1,000 probes, 10 minutes: %d writes, at most %d in a second, the first writes over %.1f s; beside writes %v", total, most, (last - first).Seconds(), api.other)
		if most > 50 || len(api.created) != 1000 || last-first < 59*time.Second {
			t.Errorf("%d writes in one second, %d probes wrote first over %s", most, len(api.created), last-first)
		}
		if diff := cmp.Diff(map[string]int{"GET /apis/unpend.dev/v1alpha1/nodegeometries/NODE": 1000}, api.other); diff != "" {
			t.Error("asked beside writes: ", diff)
		}
	})
}

// counting is an API server in memory, for one kind, that notes what it is asked.
type counting struct {
	began time.Time

	mu        sync.Mutex
	perSecond map[time.Duration]int // writes
	created   []time.Duration       // when
	other     map[string]int        // what is no write
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, code, body := time.Since(c.began), http.StatusOK, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","details":{"name":"x"},"code":404}`)
	switch r.Method {
	case http.MethodPost, http.MethodPut:
		c.perSecond[at.Truncate(time.Second)]++
		if r.Method == http.MethodPost {
			c.created = append(c.created, at)
		}
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	default:
		code = http.StatusNotFound
		c.other[r.Method+" "+regexp.MustCompile(`gpu-\d+`).ReplaceAllString(r.URL.RequestURI(), "NODE")]++
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

// TestRefused: it tries again, later and later, says why, and writes what is
// true by then.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(1)
		n.refuse = errors.New("etcd is away")
		n.runFor(t, time.Hour, map[time.Duration]func(){30 * time.Minute: func() { n.refuse, n.gpus[0].Healthy = nil, false }})
		attempts := 0
		for _, at := range n.at {
			if at < 30*time.Minute {
				attempts++
			}
		}
		if attempts < 15 || attempts > 70 {
			t.Errorf("%d attempts in half an hour", attempts)
		}
		if n.at[attempts] > 32*time.Minute || n.writes[0].GPUs[0].Healthy {
			t.Errorf("written %s after the start: %+v", n.at[attempts], n.writes[0])
		}
		if !strings.Contains(n.log.String(), `msg="not published" why="etcd is away"`) {
			t.Error(n.log.String())
		}
	})
}

// TestWhatIsMissing: each is said once, in one line; the report says what is
// left; it recovers by itself.
func TestWhatIsMissing(t *testing.T) {
	whole := nodeprobe.GPU{UUID: "GPU-0", Product: "NVIDIA L4", Healthy: true}
	unheld, lost := whole, whole
	unheld.Holders, lost.Holders = []nodeprobe.Holder{{Unknown: true}}, []nodeprobe.Holder{{Unknown: true}}
	lost.Healthy = false
	for name, tc := range map[string]struct {
		broken func(*node)
		says   string
		want   nodeprobe.Report
	}{
		"driver": {func(n *node) { n.driver = errors.New("no driver: it is not loaded") }, "no driver: it is not loaded", nodeprobe.Report{Source: nodeprobe.SourceLabels, GPUs: []nodeprobe.GPU{lost}}},
		"GPU":    {func(n *node) { n.gpus = nil }, "no GPU: the driver lists none", nodeprobe.Report{Source: nodeprobe.SourceLabels, DriverVersion: "580"}},
		"socket": {func(n *node) {
			n.held = func(context.Context) ([]nodeprobe.Allocation, error) { return nil, errors.New("no kubelet socket") }
		}, "holders are unknown: no kubelet socket", nodeprobe.Report{Source: nodeprobe.SourceNVML, DriverVersion: "580", GPUs: []nodeprobe.GPU{unheld}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(1)
				fine := n.held
				n.runFor(t, 20*time.Minute, map[time.Duration]func(){
					5 * time.Minute:  func() { tc.broken(n) },
					10 * time.Minute: func() { n.driver, n.gpus, n.held = nil, []nodeprobe.Seen{{GPU: whole}}, fine },
				})
				var got []nodeprobe.Report
				for _, w := range n.writes {
					if len(got) == 0 || !alike(got[len(got)-1], w) {
						w.ObservedAt.Reset()
						got = append(got, w)
					}
				}
				well := nodeprobe.Report{Source: nodeprobe.SourceNVML, DriverVersion: "580", GPUs: []nodeprobe.GPU{whole}}
				if diff := cmp.Diff([]nodeprobe.Report{well, tc.want, well}, got); diff != "" {
					t.Error(diff)
				}
				var said []string
				for line := range strings.Lines(n.log.String()) {
					_, said1, _ := strings.Cut(strings.TrimSpace(line), "level=")
					said = append(said, said1)
				}
				if diff := cmp.Diff([]string{fmt.Sprintf("WARN msg=%q", tc.says), `INFO msg="everything can be read again"`}, said); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
