package idle

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/prometheus"
)

// exporter serves what the DCGM exporter would of two pods' GPUs: one idle, one that
// works.
func exporter(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# HELP %[1]s Ratio of time the graphics engine is active.\n# TYPE %[1]s gauge\n%[1]s{%[2]s} 0\n%[1]s{%[3]s} 0.7\n",
			engineActive, whole("idle", 0), mig("working", 9))
	}))
	t.Cleanup(s.Close)
	return s
}

// A real Prometheus that scrapes an exporter: with the exporter's labels honoured and
// with them renamed, the holder is told, never the exporter's own pod.
func TestScraped(t *testing.T) {
	target := strings.TrimPrefix(exporter(t).URL, "http://")
	for name, honor := range map[string]bool{"honor_labels": true, "exported": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := prometheus.Watch(t, prometheus.Scrape{Target: target, Honor: honor,
				Labels: map[string]string{"namespace": "gpu-operator", "pod": "dcgm-exporter", "container": "exporter"}})
			c := client(t, Options{Address: address, Window: 4500 * time.Millisecond})
			long := time.Now().Add(-hour)
			holders := []diagnosis.Holder{
				{PodName: diagnosis.PodName{Namespace: "demo", Name: "idle"}, Devices: 1, Running: long},
				{PodName: diagnosis.PodName{Namespace: "demo", Name: "working"}, Devices: 1, MIG: true, Running: long},
				{PodName: diagnosis.PodName{Namespace: "gpu-operator", Name: "dcgm-exporter"}, Devices: 1, Running: long},
			}
			var got map[diagnosis.PodName]diagnosis.Use
			met := 0 // how often the window was not full yet
			tick, patience := time.NewTicker(100*time.Millisecond), time.After(60*time.Second)
			defer tick.Stop()
			for !got[holders[0].PodName].Idle {
				if u := got[holders[0].PodName]; got != nil && u.Unknown == "" {
					t.Fatalf("neither idle nor unknown: %+v", u)
				} else if got != nil {
					met++
				}
				select {
				case <-patience:
					t.Fatalf("never idle: %+v", got)
				case <-tick.C:
				}
				var err error
				if got, err = c.Measure(t.Context(), time.Now(), holders); err != nil {
					t.Fatal(err)
				}
			}
			if u := got[holders[1].PodName]; u.Max != 70 || u.Idle {
				t.Errorf("who works: %+v", u)
			}
			if u := got[holders[2].PodName]; u.Idle || u.Max != 0 || u.Unknown != notSeen {
				t.Errorf("the exporter's own pod: %+v", u)
			}
			if met == 0 {
				t.Error("idle before the window was over")
			}
		})
	}
}
