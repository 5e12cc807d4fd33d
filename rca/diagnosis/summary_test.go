package diagnosis

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/watcher/incident"
)

// travel is a diagnosis as its reader has it.
func travel(t interface {
	Helper()
	Fatalf(string, ...any)
}, d Diagnosis) (Summary, int) {
	t.Helper()
	body, err := d.Message()
	if err != nil {
		t.Fatalf("%v", err)
	}
	if len(body) >= MaxMessage || !utf8.Valid(body) {
		t.Fatalf("%d bytes, UTF-8: %v", len(body), utf8.Valid(body))
	}
	var s Summary
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatalf("%v", err)
	}
	return s, len(body)
}

// counted is how many nodes a summary tells of.
func counted(s Summary) (in, named int) {
	for _, g := range s.Nodes {
		in += g.Count
		named += len(g.Names)
	}
	return in, named
}

func taint(key string) Blocker {
	return Blocker{"TaintToleration", "node(s) had untolerated taint {" + key + "}", UntoleratedTaint}
}

// What fits travels as it is, nodes in groups; what facts are made from stays.
func TestSmallDiagnosisTravelsWhole(t *testing.T) {
	gpu, at := 0, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	d := Diagnosis{Incident: "gpu-0123456789", Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Pods: WaitingPods{Waiting: 2, Names: []string{"a", "b"}, Since: at},
		Requests: map[string]string{"nvidia.com/mig-2g.10gb": "1"}, Headline: "two nodes are tainted",
		Drawing: &Drawing{Node: "gpu-1", Slices: 8, Before: []DrawnSlot{{"1g", 0, 1, "ml/x"}, {"1g", 1, 1, ""}}},
		Causes:  []Cause{{UntoleratedTaint, Proven, "2 nodes are tainted", []string{"gpu-1", "gpu-2"}, []Evidence{Fact("Node/gpu-1", "taint a", That(Taints, "key=a", Exists, ""))}}},
		Nodes:   []NodeBlockers{{Name: "gpu-3", Blockers: []Blocker{taint("b")}}, {Name: "gpu-2", Blockers: []Blocker{taint("a")}}, {Name: "gpu-1", Blockers: []Blocker{taint("a")}}},
		Fixes: []Fix{{ID: 1, Kind: AddToleration, Kinds: []FixKind{AddToleration}, Title: "tolerate a <taint>", Held: "the breaker is open", Cost: Cost{Evictions: []PodName{{"ml", "x"}}, Restarts: []PodName{}, Nodes: []string{"gpu-1"}, Minutes: 1}, Risk: LowRisk, Mechanism: None,
			Proof: Proof{Verdict: Schedules, Node: "gpu-1", GPU: &gpu, Why: "accepted"}, Steps: []string{"one"}, Commands: []string{"kubectl get"}, Actions: []Action{{Verb: VerbRecreate}}, Plan: "aa"}},
		Knowledge: []knowledge.Hit{{Title: "t", At: at}}, Unread: []string{}}
	before := canonical(d)
	got, _ := travel(t, d)
	want := Summary{Incident: d.Incident, Workload: d.Workload, Pods: d.Pods, Requests: d.Requests, Headline: d.Headline, Drawing: d.Drawing,
		Causes:    []CauseSummary{{UntoleratedTaint, Proven, "2 nodes are tainted", []string{"gpu-1", "gpu-2"}, 2, []Evidence{{Ref: "Node/gpu-1", Fact: "taint a"}}}},
		Nodes:     []NodeGroup{{[]string{"gpu-1", "gpu-2"}, 2, []Blocker{taint("a")}}, {[]string{"gpu-3"}, 1, []Blocker{taint("b")}}},
		NodeCount: 3,
		Fixes: []FixSummary{{ID: 1, Kind: AddToleration, Kinds: []FixKind{AddToleration}, Title: "tolerate a <taint>", Held: "the breaker is open", Cost: d.Fixes[0].Cost, EvictionCount: 1, Risk: LowRisk, Mechanism: None,
			Proof: d.Fixes[0].Proof, Steps: []string{"one"}, Commands: []string{"kubectl get"}, Plan: "aa"}},
		Knowledge: d.Knowledge, Unread: []string{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if after := canonical(d); string(after) != string(before) {
		t.Errorf("the diagnosis itself was changed: %s", after)
	}
}

// Ten thousand nodes with two taints on half of them are two groups, with ten thousand
// nodes of which no two are alike the largest groups travel and the rest is counted.
func TestTenThousandNodesTravel(t *testing.T) {
	for name, tc := range map[string]struct {
		blockers func(i int) []Blocker
		groups   int
		left     map[string]int
		below    int
	}{
		"alike": {func(i int) []Blocker {
			return []Blocker{taint("a"), taint("b")}[:1+i%2]
		}, 2, map[string]int{"nodes.names": 9880}, 8 << 10},
		"no two alike": {func(i int) []Blocker {
			return []Blocker{taint(fmt.Sprintf("%d=%s", i, strings.Repeat("x", 200))), taint("b")}
		}, 60, map[string]int{"nodes": 9940}, 64 << 10},
		"with long texts": {func(i int) []Blocker {
			return slices.Repeat([]Blocker{taint(fmt.Sprintf("%d=%s", i, strings.Repeat("<\x00", 250)))}, 30)
		}, 5, map[string]int{"nodes": 9995, "nodes.blockers": 125, "nodes.blockers.reason": 25}, MaxMessage},
	} {
		d := Diagnosis{Incident: "gpu-0123456789", Pods: WaitingPods{Waiting: 10000}}
		for i := range 10000 {
			d.Nodes = append(d.Nodes, NodeBlockers{Name: fmt.Sprintf("gpu-%05d", i), Blockers: tc.blockers(i)})
		}
		s, bytes := travel(t, d)
		in, named := counted(s)
		t.Logf("%s: %d bytes, %d groups, %d nodes in them", name, bytes, len(s.Nodes), in)
		if s.NodeCount != 10000 || len(s.Nodes) != tc.groups || in-named != s.LeftOut["nodes.names"] || bytes >= tc.below || s.Pods.Waiting != 10000 {
			t.Errorf("%s: %d bytes, %d of %d nodes in %d groups, %d named", name, bytes, in, s.NodeCount, len(s.Nodes), named)
		}
		if diff := cmp.Diff(tc.left, s.LeftOut); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// fill makes every list of a value overlong and every text the worst there is.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(strings.Repeat("\x01", 20000))
	case reflect.Int, reflect.Int64:
		v.SetInt(-1 << 62)
	case reflect.Int32:
		v.SetInt(-1 << 31)
	case reflect.Float64:
		v.SetFloat(-1.2345678901234567e-300)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(9999, 1, 1, 0, 0, 0, 999999999, time.FixedZone("", 3599))))
			return
		}
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 10, 10))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		if v.Type() != reflect.TypeFor[map[string]string]() {
			return // what was left out: cut counts it
		}
		m := map[string]string{}
		for i := range 10 {
			m[fmt.Sprint(i)+strings.Repeat("\x01", 20000)] = strings.Repeat("\x01", 20000)
		}
		v.Set(reflect.ValueOf(m))
	}
}

// The smallest size bounds a summary by the number of its fields alone: every one of them
// is filled here, also those that somebody will add.
func TestSmallestSizeIsBelowTheBound(t *testing.T) {
	var s Summary
	fill(reflect.ValueOf(&s).Elem())
	short := strings.Repeat("x", sizes[len(sizes)-1].text) // texts that are left out, where they must be whole, would be missing
	for i := range s.Fixes {
		s.Fixes[i].Commands, s.Fixes[i].Cost.Nodes = slices.Repeat([]string{short}, 10), slices.Repeat([]string{short}, 10)
	}
	for i := range s.Causes {
		s.Causes[i].Nodes = slices.Repeat([]string{short}, 10)
	}
	for i := range s.Nodes {
		s.Nodes[i].Names = slices.Repeat([]string{short}, 10)
	}
	slot := s.Drawing.Before[0]
	s.Drawing.Before, s.Drawing.After = slices.Repeat([]DrawnSlot{slot}, maxSlots/2), slices.Repeat([]DrawnSlot{slot}, maxSlots/2)
	body, err := json.Marshal(sizes[len(sizes)-1].cut(s))
	if err != nil || len(body) >= MaxMessage {
		t.Errorf("%d bytes, %v", len(body), err)
	}
	t.Logf("%d bytes at most", len(body))
}

// A drawing is shown whole or not at all, and so is a command: half of either says
// something else.
func TestHalvesDoNotTravel(t *testing.T) {
	d := Diagnosis{Drawing: &Drawing{Before: make([]DrawnSlot, maxSlots+1)}, Fixes: []Fix{{Commands: []string{strings.Repeat("x", 4001), "kubectl get"}, Title: strings.Repeat("é", 2001)}}}
	s, _ := travel(t, d)
	if s.Drawing != nil || !slices.Equal(s.Fixes[0].Commands, []string{"kubectl get"}) || s.Fixes[0].Title != strings.Repeat("é", 1998)+"…" {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff(map[string]int{"drawing": 1, "fixes.commands": 1, "fixes.title": 1}, s.LeftOut); diff != "" {
		t.Error(diff)
	}
}

// The length that texts are cut by is the one that they have in JSON.
func TestEncodedLength(t *testing.T) {
	for r := range rune(0x2100) {
		if body, err := json.Marshal(string(r)); err != nil || encodedRune(r) != len(body)-2 {
			t.Errorf("%U: %d, want %s, %v", r, encodedRune(r), body, err)
		}
	}
	if got := encoded("aé🦄\uFFFD<"); got != 1+2+4+3+6 {
		t.Errorf("%d", got)
	}
}

// Whatever a diagnosis holds, what travels is below the bound, is UTF-8, and counts what
// there is.
func TestAnyDiagnosisTravels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			of := rapid.SampledFrom([]string{"a", "é", "<", "\x00", "\xff", "\u2028", "🦄", "\"", "\n"}).Draw(t, "of")
			return rapid.StringN(0, 8, 40).Draw(t, "text") + strings.Repeat(of, rapid.SampledFrom([]int{0, 1, 300, 5000}).Draw(t, "times"))
		})
		length := rapid.SampledFrom([]int{0, 1, 4, 5, 6, 70})
		list := func(name string) []string {
			return slices.Repeat([]string{text.Draw(t, name)}, length.Draw(t, name+" times"))
		}
		d := Diagnosis{Incident: text.Draw(t, "incident"), Headline: text.Draw(t, "headline"), Unread: list("unread"), Pods: WaitingPods{Waiting: 10000, Names: list("pods")}, Requests: map[string]string{}}
		for i, r := range list("requests") {
			d.Requests[fmt.Sprint(i)+r] = r
		}
		for range length.Draw(t, "causes") {
			d.Causes = append(d.Causes, Cause{Says: text.Draw(t, "says"), Nodes: list("nodes"), Evidence: slices.Repeat([]Evidence{{Ref: text.Draw(t, "ref"), Fact: text.Draw(t, "fact")}}, length.Draw(t, "evidence"))})
		}
		for range length.Draw(t, "fixes") {
			d.Fixes = append(d.Fixes, Fix{Title: text.Draw(t, "title"), Steps: list("steps"), Commands: list("commands"), Cost: Cost{Evictions: slices.Repeat([]PodName{{text.Draw(t, "ns"), text.Draw(t, "name")}}, length.Draw(t, "evictions"))}})
		}
		blockers := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Blocker {
			return Blocker{text.Draw(t, "plugin"), text.Draw(t, "reason"), CauseID(text.Draw(t, "cause"))}
		}), 0, 6), 1, 4).Draw(t, "blockers")
		for i := range 20 {
			d.Nodes = append(d.Nodes, NodeBlockers{Name: fmt.Sprintf("gpu-%d", i), Blockers: blockers[i%len(blockers)]})
		}
		s, _ := travel(t, d)
		in, _ := counted(s)
		if s.NodeCount != 20 || s.Pods.Waiting != 10000 || s.LeftOut["nodes"] == 0 && in != 20 || in > 20 || len(s.Causes)+s.LeftOut["causes"] != len(d.Causes) || len(s.Fixes)+s.LeftOut["fixes"] != len(d.Fixes) {
			t.Fatalf("%d of 20 nodes, %d waiting, %d causes, %d fixes, left out %v", in, s.Pods.Waiting, len(s.Causes), len(s.Fixes), s.LeftOut)
		}
		for i, c := range s.Causes {
			if c.NodeCount != len(d.Causes[i].Nodes) {
				t.Fatalf("cause %d: %d nodes, want %d", i, c.NodeCount, len(d.Causes[i].Nodes))
			}
		}
		for i, f := range s.Fixes {
			if f.EvictionCount != len(d.Fixes[i].Cost.Evictions) {
				t.Fatalf("fix %d: %d evictions, want %d", i, f.EvictionCount, len(d.Fixes[i].Cost.Evictions))
			}
		}
	})
}
