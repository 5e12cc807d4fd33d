package slack_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/notifytest"
	"github.com/unpend/unpend/watcher/incident"
)

// hostile are texts that tenants may have in names, annotations and events.
var hostile = []string{"", "a", "<!channel>", "<!here|x>", "<@U0ADA>", "<https://evil.example|gpu-1>", "*bold* _it_ ~no~ `code` ```", ":fire:", "&amp;<b>x</b>", "\x1b[31mred\x1b]8;;x\x07", "\u202egnp.exe\u2066", "سلام שלום", "👩‍👩‍👧‍👦🔥",
	"line\nline\r\n\tline", "\u200b\ufeff", "\xff\xfe", "https://evil.example/" + strings.Repeat("x", 300), strings.Repeat("long ", 4000), strings.Repeat("🔥", 10000), strings.Repeat("\"\\", 3000)}

// fill has every field of a value hold something.
func fill(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		n := len(hostile)
		if r.IntN(10) > 0 {
			n -= 3 // the long ones are rare
		}
		v.SetString(hostile[r.IntN(n)])
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(r.IntN(20)) - 2)
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Float64:
		v.SetFloat(r.Float64())
	case reflect.Pointer:
		if r.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Slice:
		n := r.IntN(1 + 1<<r.IntN(4))
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(8) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key)
			fill(r, value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for _, f := range v.Fields() {
			if f.CanSet() {
				fill(r, f)
			}
		}
	}
}

// anything is a finding with everything in it that tenants can write, and what a plan says.
func anything(r *rand.Rand, id string, now time.Time) notice.Proposal {
	p := notice.Proposal{Finding: &diagnosis.Summary{}}
	fill(r, reflect.ValueOf(p.Finding).Elem())
	fill(r, reflect.ValueOf(&p.Plans).Elem())
	p.Plans = p.Plans[:min(len(p.Plans), 2)]
	for k := range p.Plans {
		p.Plans[k].Plan = fmt.Sprintf("%064x", k)
		p.Plans[k].What = []string{notice.Pending, notice.Running, notice.Succeeded, notice.Parked, "<!channel>"}[r.IntN(5)]
	}
	p.Incident, p.Finding.Incident = id, id
	p.Finding.Pods.Since, p.Read = now, now
	return p
}

// A thousand findings: each is posted, with its details, within Slack's limits, and calls
// nobody (R26, S8). The server complains where one is not.
func TestPromiseR26S8(t *testing.T) {
	const workspaces, findings = 20, 50
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	posted := 0
	for range workspaces {
		clock := notifytest.NewClock()
		w := newWorkspace(t, clock)
		n := w.New(t, clock, slog.New(slog.DiscardHandler))
		for i := range findings {
			if err := clock.Sleep(t.Context(), 10*time.Minute); err != nil { // no storm
				t.Fatal(err)
			}
			if err := n.Notify(t.Context(), anything(r, fmt.Sprintf("gpu-%010x", i), clock.Now())); err != nil {
				t.Fatalf("finding %d: %v", i, err)
			}
		}
		for _, m := range w.Server.Messages("") {
			if posted++; len(w.Server.Messages(m.TS)) == 0 {
				t.Errorf("%s has no details", m.TS)
			}
			if strings.ContainsAny(m.Shown(), "\u202e\x1b\u2066\u200b") {
				t.Errorf("what turns or hides text is shown: %q", m.Shown())
			}
		}
	}
	if posted != workspaces*findings {
		t.Errorf("%d messages of %d findings", posted, workspaces*findings)
	}
	t.Logf("R26 %d/%d findings posted, 0 over a limit, 0 mentions", posted, workspaces*findings)
}

// Of 600 nodes for thirty reasons, each is counted once.
func TestCountsAddUp(t *testing.T) {
	clock := notifytest.NewClock()
	w := newWorkspace(t, clock)
	p := notifytest.Finding("gpu-0123456789", "waits")
	d := p.Finding
	d.Causes, d.Nodes, d.NodeCount, d.Workload = nil, nil, 600, incident.Ref{Kind: "Job", Namespace: "ml", Name: "x"}
	all := diagnosis.Catalogue()
	left := 600
	for i := range 30 {
		d.Causes = append(d.Causes, diagnosis.CauseSummary{ID: all[i], Certainty: diagnosis.Likely, Says: fmt.Sprint("because ", i), NodeCount: i + 1})
		d.Nodes = append(d.Nodes, diagnosis.NodeGroup{Names: []string{fmt.Sprint("n", i)}, Count: i + 1, Blockers: []diagnosis.Blocker{{Plugin: "p", Cause: all[i]}}})
		left -= i + 1
	}
	told(t, w.New(t, clock, nil), p)
	want := fmt.Sprintf("• 1 node  because 0 (%s, likely) n0\n• 2 nodes  because 1 (%s, likely)\n• 3 nodes  because 2 (%s, likely)\n• 594 nodes  for other reasons\n", all[0], all[1], all[2])
	if got := w.Server.Messages("")[0].Shown(); !strings.Contains(got, want) || left < 0 {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
