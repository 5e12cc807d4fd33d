package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

const (
	apiAway   = 45 * time.Second
	otherAway = 10 * time.Second
	wellAgain = time.Minute // after what was away is there again
)

// outage is something that the service needs, and has not for a while.
type outage struct {
	name  string
	begin func()
	end   func()
	says  string // /readyz, meanwhile
	lasts time.Duration
	// reached: the cluster is, by everybody but the service, and goes on.
	reached bool
}

// The API server is away for the service alone and then for all, NATS is, and the lease may not
// be had. Each is told of in /readyz with a reason, ends by itself, and loses nothing:
// what began to wait meanwhile is diagnosed, what ended meanwhile is over, and no line comes
// twice. Who takes over then counts none of it as new.
func TestOutagesEnd(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	n := newNATS(t)
	n.start(t)
	p := proxyTo(t, c.Config(), "unpend/outage")
	o := observeBy(t, c, p.kubeconfig, fmt.Sprintf("{url: %q}", n.url()))
	o.says(t, "ok\n", time.Minute)
	names := o.waits(t, "before", 3)
	heals := func() { p.set(nil) }
	var again func()
	var over, took []string
	lines := map[string]int{} // of what ends, until then: nodes may come and go before
	for i, away := range []outage{
		{"the API server for the service", func() { p.setCut(always(reset)) }, heals, "who leads is not known, lease default/unpend-analyst: ", apiAway, true},
		{"the API server", func() { again = c.KillAPIServer(t) }, func() { again() }, "who leads is not known, lease default/unpend-analyst: ", apiAway, false},
		{"the lease", func() { p.set(noLease) }, heals, "may not touch the lease", otherAway, true},
		{"NATS", n.kill, func() { n.start(t) }, "not-connected since ", otherAway, true},
	} {
		ends := o.waits(t, fmt.Sprintf("over-%d", i), 1)
		over = append(over, ends...)
		o.explains(t, slices.Concat(names, over), wellAgain)
		controlplane.Eventually(t, wellAgain, "the node is ready once more, and "+ends[0]+" waits for another reason", func() (bool, string) {
			return len(o.ofReadyNodes(ends[0])) > 0, fmt.Sprint(o.of("default", ends[0]))
		})
		before := o.failures(t)
		if !away.reached {
			ended(t, c, ends) // who collects their pods has no time for it
		}
		away.begin()
		o.says(t, away.says, 30*time.Second)
		lines[ends[0]] = len(o.ofReadyNodes(ends[0]))
		if away.reached {
			ended(t, c, ends)
			names = append(names, o.waits(t, fmt.Sprintf("meanwhile-%d", i), 2)...)
		}
		<-time.After(away.lasts)
		away.end()
		well := o.says(t, "ok\n", wellAgain)
		o.explains(t, names, wellAgain)
		resolved(t, n.url(), clusterUID(t, c), over)
		known(t, n.url(), clusterUID(t, c), names)
		took = append(took, fmt.Sprintf("%s: ready after %.1f s", away.name, well.Seconds()))
		if failed := o.failures(t); away.lasts == apiAway && failed <= before {
			t.Errorf("%s was away, and %g failed watches are counted before and after", away.name, failed)
		}
	}
	t.Log(strings.Join(took, "; "))
	once(t, o, names, lines)
	o.kill()
	o = observe(t, c, fmt.Sprintf("{url: %q}", n.url()))
	o.explains(t, names, wellAgain)
	if got := o.sum(t, "unpend_incidents_total"); got != 0 {
		t.Errorf("who takes over counts %g incidents that were known", got)
	}
}

// once wants no line to say what the one before it of the same workload says, none to tell of
// the outage as if it were the cluster, and of what ended no more than before.
func once(t *testing.T, o *observer, names []string, over map[string]int) {
	t.Helper()
	last := map[string]string{}
	for _, d := range o.diagnoses() {
		name := d.Workload.Name
		if last[name] == gist(d) {
			t.Errorf("%s is printed again: %s", name, gist(d))
		}
		last[name] = gist(d)
		if unread := strings.Join(d.Unread, "; "); strings.Contains(unread, "connection") || strings.Contains(unread, "EOF") {
			t.Errorf("%s: unread %s", name, unread)
		}
	}
	for name, lines := range over {
		if now := o.ofReadyNodes(name); len(now) != lines || lines == 0 {
			t.Errorf("%s, which ended, has %d lines, and had %d before: %+v", name, len(now), lines, now)
		}
	}
	for _, name := range names {
		if last[name] == "" {
			t.Errorf("%s has no line", name)
		}
	}
}

// ofReadyNodes are the lines of a workload but those that say that a node is not ready: nobody
// renews its lease while the API server is away, and until its pods are collected the workload
// waits for it. What was said before such a line is true again after it, and said again.
func (o *observer) ofReadyNodes(name string) []string {
	var out []string
	for _, d := range o.of("default", name) {
		if !slices.ContainsFunc(d.Causes, func(c diagnosis.CauseSummary) bool { return c.ID == diagnosis.NodeNotReady }) {
			out = append(out, gist(d))
		}
	}
	return slices.Compact(out)
}

// noLease refuses the lease of who diagnoses.
func noLease(a *asked) http.HandlerFunc {
	if !strings.HasSuffix(a.URL.Path, "/leases/unpend-analyst") {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"unpend may not touch the lease"}`)
	}
}

// ended deletes Jobs; their pods go after them.
func ended(t *testing.T, c *controlplane.ControlPlane, names []string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	for _, name := range names {
		must(t, c.Client().BatchV1().Jobs("default").Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
	}
}

// resolved waits until the bus tells of none of them that it waits.
func resolved(t *testing.T, url, cluster string, names []string) {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{Cluster: cluster, URL: url})
	must(t, err)
	defer b.Close()
	controlplane.Eventually(t, wellAgain, "the bus knows what is over", func() (bool, string) {
		var wait []string
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := b.Kept(ctx, bus.Incidents, func(body []byte) error {
			var i incident.Incident
			err := json.Unmarshal(body, &i)
			if !i.Resolved && slices.Contains(names, i.Workload.Name) {
				wait = append(wait, i.Workload.Name)
			}
			return err
		})
		return err == nil && len(wait) == 0, fmt.Sprint(wait, err)
	})
}

// failures is how many watches have failed.
func (o *observer) failures(t *testing.T) float64 { return o.sum(t, "unpend_watch_failures_total") }

// sum is one of its metrics over all labels; 0 when it is not there.
func (o *observer) sum(t *testing.T, name string) (all float64) {
	t.Helper()
	_, text := answers(o.metrics, "/metrics", "")
	for _, m := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(name)+`(?:\{.*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		var v float64
		_, err := fmt.Sscan(m[1], &v)
		must(t, err)
		all += v
	}
	return all
}
