package terminal

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/drawing"
	"github.com/unpend/unpend/watcher/incident"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func node(name string, causes ...diagnosis.CauseID) diagnosis.NodeBlockers {
	n := diagnosis.NodeBlockers{Name: name, Blockers: []diagnosis.Blocker{}}
	for _, c := range causes {
		n.Blockers = append(n.Blockers, diagnosis.Blocker{Plugin: "p", Reason: "r", Cause: c})
	}
	return n
}

func cause(id diagnosis.CauseID, c diagnosis.Certainty, says string, nodes ...string) diagnosis.Cause {
	return diagnosis.Cause{ID: id, Certainty: c, Says: says, Nodes: nodes}
}

// proved has a cause with evidence: refs and facts.
func proved(c diagnosis.Cause, evidence ...string) diagnosis.Cause {
	for i := 0; i < len(evidence); i += 2 {
		c.Evidence = append(c.Evidence, diagnosis.Evidence{Ref: evidence[i], Fact: evidence[i+1]})
	}
	return c
}

func allOneG() diagnosis.Diagnosis {
	var before []diagnosis.DrawnSlot
	for i := range 7 {
		s := diagnosis.DrawnSlot{Profile: "1g.5gb", Start: i, Size: 1}
		if i < 3 {
			s.Holder = fmt.Sprintf("ml/inference-%d", i)
		}
		before = append(before, s)
	}
	return diagnosis.Diagnosis{
		Incident: "gpu-7f3a01c9be",
		Workload: incident.Ref{Kind: "Job", Namespace: "mig-demo", Name: "training"},
		Pods:     diagnosis.WaitingPods{Waiting: 1, Names: []string{"training-lk8nl"}, Since: now.Add(-14*time.Minute - 12*time.Second)},
		Requests: map[string]string{"nvidia.com/mig-2g.10gb": "1", "cpu": "4", "memory": "8Gi"},
		Drawing: &diagnosis.Drawing{Node: "gpu-node-1", GPU: 0, Product: "NVIDIA A100-SXM4-40GB", Slices: 8, Before: before,
			After: []diagnosis.DrawnSlot{{Profile: "2g.10gb", Start: 0, Size: 2}, {Profile: "2g.10gb", Start: 2, Size: 2}, {Profile: "3g.20gb", Start: 4, Size: 4}},
			Note:  "5 of 8 slices unheld, 2g.10gb needs a start at 0, 2 or 4"},
		Causes: []diagnosis.Cause{
			proved(cause(diagnosis.MIGLayoutMismatch, diagnosis.Proven, "not laid out with 2g.10gb, though a legal position is unheld", "gpu-node-1", "gpu-node-2"),
				"NodeGeometry/gpu-node-2", "GPU 1: 2g.10gb could start at memory slice 4", "NodeGeometry/gpu-node-1", "GPU 0: 2g.10gb could start at memory slice 0"),
			cause(diagnosis.UntoleratedTaint, diagnosis.Likely, "taint gpu=reserved:NoSchedule is not tolerated", "gpu-node-2"),
			cause(diagnosis.NodeCordoned, diagnosis.Proven, "cordoned by on-call 2 h ago", "gpu-node-3"),
		},
		Nodes: []diagnosis.NodeBlockers{
			node("cpu-1"), node("gpu-node-1", diagnosis.MIGLayoutMismatch),
			node("gpu-node-2", diagnosis.UntoleratedTaint, diagnosis.MIGLayoutMismatch), node("gpu-node-3", diagnosis.NodeCordoned),
		},
		Fixes: []diagnosis.Fix{
			{ID: 1, Kind: diagnosis.RepartitionGPU, Title: "repartition gpu-node-1/GPU 0 to all-balanced", Automatic: true,
				Cost: diagnosis.Cost{Evictions: make([]diagnosis.PodName, 3), Restarts: make([]diagnosis.PodName, 1), Nodes: []string{"gpu-node-1"}, Minutes: 4}, Risk: "low",
				Effect:    &diagnosis.Effect{Runs: 2, Of: 5, WaitingBefore: 5, WaitingAfter: 4, ThenWait: []diagnosis.PodName{{Namespace: "batch", Name: "etl-9"}}},
				Mechanism: diagnosis.MIGManager, HardwareEvictions: new(0),
				Actions: []diagnosis.Action{{Verb: diagnosis.VerbRelayout, Target: diagnosis.Target{Kind: "Node", Name: "gpu-node-1"}, Relayout: &diagnosis.Relayout{GPUs: []int{0}}}},
				Proof:   diagnosis.Proof{Verdict: diagnosis.Schedules, Why: "the scheduler's filters accept gpu-node-1 on a copy of the cluster; each evicted pod was placed again"}},
			{ID: 2, Kind: diagnosis.AddToleration, Title: "tolerate gpu=reserved:NoSchedule and repartition gpu-node-2/GPU 1 to all-balanced, which evicts a bare pod", Automatic: true,
				Cost: diagnosis.Cost{Evictions: make([]diagnosis.PodName, 1), Minutes: 4}, Risk: "high", Mechanism: diagnosis.MIGManager, HardwareEvictions: new(1),
				Proof: diagnosis.Proof{Verdict: diagnosis.Schedules, Why: "the scheduler's filters accept gpu-node-2 on a copy of the cluster; victims that do not come back, having no controller: 1 of 1"}},
			{ID: 3, Kind: diagnosis.Wait, Title: "wait for etl to end", Cost: diagnosis.Cost{Minutes: 35}, Risk: "none",
				Proof: diagnosis.Proof{Verdict: diagnosis.Waits, Why: "accepted on a copy once etl has ended"}, Commands: []string{"kubectl wait job/etl --for=condition=complete"}},
			{ID: 4, Title: "never shown"},
		},
		Knowledge: []knowledge.Hit{{Source: "jira", Title: "GPU-118 2g pod pending", URL: "https://jira/GPU-118", At: now.AddDate(0, -2, 0),
			Quote: "The freed slice stays 1g; we set all-balanced on the node and it ran."}},
		Unread: []string{"PodDisruptionBudget: forbidden; an eviction may be refused"},
	}
}

// hostile names cannot be made in a cluster, titles and quotes can.
func hostile() diagnosis.Diagnosis {
	d := allOneG()
	d.Workload = incident.Ref{Kind: "Job\x1b[31m", Namespace: "<!channel>", Name: "שלום\u202egnp.exe\u2066"}
	d.Fixes[0].Actions[0].Target.Name = "节点-\x1b]0;owned\x07一"
	d.Drawing.Node = "节点-\x1b]0;owned\x07一"
	d.Drawing.Before[0].Holder = "ml/🦄🦄🦄\u200b\x00"
	d.Causes[0].Says = "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字\nsecond line\r\x9b2J"
	d.Fixes[0].Title = "\x1b]8;;https://evil\x1b\\click 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字"
	d.Fixes[0].Proof.Why = "bad utf-8 \xff\xfe and\ttabs"
	d.Knowledge[0].Quote = "@here \u202eevil\u202c e\u0301"
	d.Unread = []string{"a\x1bc", "b", "c"}
	return d
}

func manyGroups() diagnosis.Diagnosis {
	d := allOneG()
	d.Drawing, d.Knowledge = nil, nil
	ids := []diagnosis.CauseID{diagnosis.MIGFull, diagnosis.MIGFragmented, diagnosis.HostResourcesShort, diagnosis.NodeCordoned, diagnosis.NodeNotReady, diagnosis.UntoleratedTaint, diagnosis.NodeSelectorMismatch, diagnosis.MIGConfigFailed}
	d.Causes, d.Nodes = nil, nil
	for i, id := range ids {
		d.Causes = append(d.Causes, cause(id, diagnosis.Proven, "says "+string(id), "n"))
		for k := range 10 - i {
			d.Nodes = append(d.Nodes, node(fmt.Sprintf("n%d-%d", i, k), id))
		}
	}
	d.Nodes = append(d.Nodes, node("both-1", diagnosis.MIGFull, diagnosis.NodeCordoned), node("free-1"))
	return d
}

func claims() diagnosis.Diagnosis {
	d := unsettled()
	d.Requests = map[string]string{"cpu": "4"}
	d.Claims = []diagnosis.ClaimedDevices{
		{Claim: "ResourceClaim a", Class: "mig.nvidia.com", Count: 1, Selectors: []string{"profile == '3g.20gb'", "memory >= 10Gi"}},
		{Claim: "ResourceClaim b", Class: "nic.example.com", Others: 2},
		{Claim: "ResourceClaimTemplate \x1b[31mgone"},
	}
	return d
}

func unsettled() diagnosis.Diagnosis {
	return diagnosis.Diagnosis{
		Incident: "gpu-0000000000", Workload: incident.Ref{Kind: "Pod", Namespace: "a", Name: "b"},
		Pods:   diagnosis.WaitingPods{Waiting: 2, Since: now.Add(-50 * time.Hour)},
		Causes: []diagnosis.Cause{cause(diagnosis.Unknown, diagnosis.Possible, "the cluster has no node that could be judged")},
		Fixes: []diagnosis.Fix{{ID: 1, Kind: diagnosis.Manual, Title: "look at the pod", Risk: "none", Proof: diagnosis.Proof{Verdict: diagnosis.Unproven, Why: "nothing can be tried"},
			Commands: []string{"kubectl describe pod b -n a"}}},
	}
}

func samples() map[string]diagnosis.Diagnosis {
	return map[string]diagnosis.Diagnosis{"all-1g": allOneG(), "hostile": hostile(), "many-groups": manyGroups(), "unsettled": unsettled(), "claims": claims()}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

func render(t interface {
	Helper()
	Fatal(...any)
}, d diagnosis.Diagnosis, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Render(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRenderGolden(t *testing.T) {
	for name, d := range samples() {
		for kind, o := range map[string]Options{"ascii": {style: style{ASCII: true}, Now: now}, "colour": {style: style{Width: 80, Color: true}, Now: now}, "140": {style: style{Width: 140}, Now: now}} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				got := render(t, d, o)
				checkShape(t, got, o)
				golden(t, name+"."+kind+".txt", []byte(got))
			})
		}
	}
}

// Beside a fix stands how its kind turned out here before, however wide the terminal is.
func TestHowAFixTurnedOut(t *testing.T) {
	for _, columns := range []int{40, 80, 140} {
		d := allOneG()
		o := Options{style: style{Width: columns}, Now: now}
		if got := render(t, d, o); strings.Contains(got, "worked here") {
			t.Errorf("nobody has carried it out:\n%s", got)
		}
		d.Fixes[0].Record = &diagnosis.Record{Worked: 4, Of: 5, Minutes: 3}
		if got := strings.Join(strings.Fields(render(t, d, o)), " "); !strings.Contains(got, "worked here 4 times of 5, in about 3 min") {
			t.Errorf("in %d columns:\n%s", columns, got)
		}
	}
}

// sgr is the only escape sequence that is ever written.
var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func checkShape(t interface {
	Helper()
	Errorf(string, ...any)
}, out string, o Options) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) > maxLines {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if o.Color {
			l = sgr.ReplaceAllString(l, "")
		}
		if w := ansi.StringWidth(l); w > o.columns() && !strings.HasPrefix(l, "Next: ") {
			t.Errorf("%d columns: %q", w, l)
		}
		for _, r := range l {
			switch {
			case r < 0x20, r >= 0x7f && r < 0xa0, drawing.Clean(string(r), false) == "", r == '\u2028', r == '\u2029':
				t.Errorf("character %U in %q", r, l)
			case o.ASCII && r >= utf8.RuneSelf:
				t.Errorf("not ASCII: %U in %q", r, l)
			}
		}
	}
}

var countOfNodes = regexp.MustCompile(`(?m)^  [|\x60]- (\d+) nodes? `)

func TestCountsAddUpToAllNodes(t *testing.T) {
	ids := []diagnosis.CauseID{diagnosis.MIGFull, diagnosis.MIGFragmented, diagnosis.NodeCordoned, diagnosis.UntoleratedTaint, diagnosis.HostResourcesShort, "Strange"}
	rapid.Check(t, func(t *rapid.T) {
		d := allOneG()
		d.Causes, d.Nodes = nil, nil
		for _, id := range ids[:rapid.IntRange(0, 5).Draw(t, "causes")] {
			d.Causes = append(d.Causes, cause(id, diagnosis.Likely, rapid.StringN(0, 90, -1).Draw(t, "says"), "n"))
		}
		n := rapid.IntRange(0, 60).Draw(t, "nodes")
		for i := range n {
			d.Nodes = append(d.Nodes, node(fmt.Sprint("n", i), rapid.SliceOfN(rapid.SampledFrom(ids), 0, 3).Draw(t, "blockers")...))
		}
		d.Fixes = d.Fixes[:rapid.IntRange(0, 4).Draw(t, "fixes")]
		d.Fixes = append([]diagnosis.Fix{}, d.Fixes...)
		for i := range d.Fixes {
			d.Fixes[i].Title = rapid.StringN(0, 150, -1).Draw(t, "title")
		}
		d.Workload.Name = rapid.String().Draw(t, "name")
		for range rapid.IntRange(0, 4).Draw(t, "unread") {
			d.Unread = append(d.Unread, "ConfigMap: the right to list configmaps is missing; the names of MIG layouts are taken from what the operator generates")
		}
		o := Options{style: style{ASCII: true, Width: rapid.IntRange(0, 200).Draw(t, "width")}, Now: now}
		out := render(t, d, o)
		checkShape(t, out, o)
		checkCaveats(t, d, o, out)
		o.ASCII = false
		checkShape(t, render(t, d, o), o)
		sum := 0
		for _, m := range countOfNodes.FindAllStringSubmatch(out, -1) {
			k, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += k
		}
		if sum != n {
			t.Fatalf("%d nodes of %d in\n%s", sum, n, out)
		}
	})
}

// checkCaveats wants the proof of the first fix, and what of the unread bears most on the
// finding, in full, and of the others all or nothing.
func checkCaveats(t *rapid.T, d diagnosis.Diagnosis, o Options, out string) {
	t.Helper()
	flat := func(s string) string { return strings.Join(strings.Fields(s), "") }
	if got := flat(out); len(d.Fixes) > 0 && !strings.Contains(got, flat(d.Fixes[0].Proof.Why)) || !strings.Contains(got, flat(d.Unread[0])) {
		t.Fatalf("a caveat is not in\n%s", out)
	}
	for _, f := range d.Fixes {
		lines := fixText{o.style}.remarks(f)
		if why := flat(lines[0]); strings.Contains(flat(out), why[:min(len(why), 56)]) && !strings.Contains(flat(out), why) {
			t.Fatalf("%q is cut in\n%s", f.Proof.Why, out)
		}
	}
}

// The next command finds the same cluster and the same plan; of what is no cluster that can
// be written to there is none.
func TestNextCommandIsForTheSameCluster(t *testing.T) {
	d := allOneG()
	d.Fixes[0].Plan = planHash
	byHand := allOneG()
	byHand.Fixes = []diagnosis.Fix{{ID: 1, Commands: []string{"kubectl -n ml get job/a -o yaml > job.yaml  # change it, then kubectl replace --force -f job.yaml"}}}
	here := Again{Flags: "--context 'two words' --as ada", Find: "--prometheus http://p:9090 -n ml", Mark: "936d6bca"}
	for _, tc := range []struct {
		d     diagnosis.Diagnosis
		again Again
		want  string
	}{
		{d, here, "kubectl unpend approve gpu-7f3a01c9be.936d6bca#1 --plan " + planHash + " --prometheus http://p:9090 -n ml --context 'two words' --as ada   (dry run: add --dry-run)"},
		{byHand, here, "kubectl --context 'two words' --as ada -n ml get job/a -o yaml > job.yaml  # change it, then kubectl --context 'two words' --as ada replace --force -f job.yaml"},
		{d, Again{Offline: true, Files: " -f dumps/a"}, "kubectl unpend show gpu-7f3a01c9be -f dumps/a   (a dump: approve on its own cluster)"},
		{d, Again{Offline: true}, "run 'kubectl unpend why' on the cluster itself: a dump changes nothing"},
		{d, Again{Gone: true}, "on a cluster of yours, reading only: kubectl unpend why -A"},
	} {
		lines := strings.Split(strings.TrimSpace(render(t, tc.d, Options{Now: now, Again: tc.again})), "\n")
		if got := lines[len(lines)-1]; got != "Next: "+tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

func TestNextCommand(t *testing.T) {
	long := "kubectl patch deployment x -p '" + strings.Repeat("y", 200) + "'"
	for name, c := range map[string]struct {
		change func(*diagnosis.Diagnosis)
		want   string
	}{
		"automatic": {func(*diagnosis.Diagnosis) {}, "Next: kubectl unpend approve gpu-7f3a01c9be#1   (dry run: add --dry-run)"},
		"by hand, never cut": {func(d *diagnosis.Diagnosis) {
			d.Fixes[0].Automatic, d.Fixes[0].Commands = false, []string{long, "second"}
		},
			"Next: " + long},
		"refused now": {func(d *diagnosis.Diagnosis) { d.Fixes[0].Automatic, d.Fixes[0].Held = false, "cool-down" },
			"Next: kubectl unpend status   (what the guard-rails say)"},
		"held back for a while": {func(d *diagnosis.Diagnosis) { d.Fixes[0].Held = "frozen" }, "Next: kubectl unpend status   (what the guard-rails say)"},
		"no fix":                {func(d *diagnosis.Diagnosis) { d.Fixes = nil }, "Next: kubectl unpend show gpu-7f3a01c9be"},
	} {
		t.Run(name, func(t *testing.T) {
			d := allOneG()
			c.change(&d)
			lines := strings.Split(strings.TrimSpace(render(t, d, Options{Now: now})), "\n")
			if got := lines[len(lines)-1]; got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTableGolden(t *testing.T) {
	ds := []diagnosis.Diagnosis{allOneG(), hostile(), unsettled(), {}}
	for name, o := range map[string]Options{"table.pipe.txt": {Now: now}, "table.ascii.txt": {style: style{ASCII: true, Width: 80}, Now: now}, "table.wide.txt": {style: style{Width: 80}, Now: now, Wide: true}} {
		var b bytes.Buffer
		if err := Table(&b, ds, o); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrors(t *testing.T) {
	if err := Render(broken{}, allOneG(), Options{}); err == nil || !strings.Contains(err.Error(), "write finding: disk full") {
		t.Error(err)
	}
	if err := Table(broken{}, nil, Options{}); err == nil || !strings.Contains(err.Error(), "write table: disk full") {
		t.Error(err)
	}
}

func TestDetect(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := null.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, c := range map[string]struct {
		env  map[string]string
		want Options
	}{
		"UTF-8":              {map[string]string{"LANG": "de_DE.UTF-8", "TERM": "xterm"}, Options{}},
		"LC_ALL wins":        {map[string]string{"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, Options{style: style{ASCII: true}}},
		"utf8 without a bar": {map[string]string{"LC_CTYPE": "C.utf8"}, Options{}},
		"no locale":          {nil, Options{style: style{ASCII: true}}},
		"dumb":               {map[string]string{"LANG": "de_DE.UTF-8", "TERM": "dumb"}, Options{style: style{ASCII: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			env := func(k string) string { return c.env[k] }
			if got := Detect(null, env); got != c.want {
				t.Errorf("a file: got %+v, want %+v", got, c.want)
			}
			if got := Detect(nil, env); got != c.want {
				t.Errorf("nothing: got %+v, want %+v", got, c.want)
			}
		})
	}
}
