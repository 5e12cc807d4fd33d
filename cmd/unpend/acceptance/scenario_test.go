package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/cmd/internal/program"
	"github.com/unpend/unpend/rca/diagnosis"
)

const scenarios = "../../../testdata/scenarios"

// Exit codes, as README lists them.
const (
	exitDone     = 0
	exitError    = 1
	exitUsage    = 2
	exitFindings = 3
	exitRefused  = 4
	exitStale    = 5
)

// want is a scenario's want.yaml: what it does not name of a fix is not checked. It is written by hand from what NVIDIA and
// Kubernetes document, never from what the program said.
type want struct {
	Of        string                                  `json:"of"`     // the workload, kind/name, where others wait too
	Causes    []diagnosis.CauseID                     `json:"causes"` // all of them, the root cause first
	Certainty diagnosis.Certainty                     `json:"certainty"`
	Says      string                                  `json:"says"`   // part of what the root cause says
	Quotes    []string                                `json:"quotes"` // parts of its evidence, after the object that each is about
	Fix       wantFix                                 `json:"fix"`    // the first
	Later     []wantFix                               `json:"later"`  // offered too
	Also      map[diagnosis.FixKind]diagnosis.Verdict `json:"also"`   // kinds offered too, and what became of trying them
	Never     []diagnosis.FixKind                     `json:"never"`  // kinds that cannot help
	Blockers  map[string][]diagnosis.CauseID          `json:"blockers"`
	Unread    []string                                `json:"unread"`   // parts of what could not be read
	Next      string                                  `json:"next"`     // part of what a terminal shows
	Offline   string                                  `json:"offline"`  // why it cannot be made with scheduler and controllers at work
	Unserved  string                                  `json:"unserved"` // why not even an API server can serve it as it is
}

// wantFix is what is wanted of a fix; what it does not name is not checked.
type wantFix struct {
	Kinds             []diagnosis.FixKind `json:"kinds"`
	Verdict           diagnosis.Verdict   `json:"verdict"`
	Risk              diagnosis.Risk      `json:"risk"`
	Automatic         *bool               `json:"automatic"`
	Node              string              `json:"node"` // where it schedules
	Evictions         *int                `json:"evictions"`
	Restarts          *int                `json:"restarts"`
	RestartsUnknown   bool                `json:"restartsUnknown"` // others stop, and who cannot be told
	HardwareEvictions *int                `json:"hardwareEvictions"`
	Victims           *diagnosis.Victims  `json:"victims"`
	Title             string              `json:"title"`  // part of it
	Effect            string              `json:"effect"` // runs/of waitingBefore>waitingAfter and who then waits: "1/1 1>1 demo/x"
}

func (w wantFix) is(f diagnosis.Fix) bool {
	return slices.Equal(f.Kinds, w.Kinds) && f.Proof.Verdict == w.Verdict && (w.Risk == "" || f.Risk == w.Risk) && (w.Automatic == nil || f.Automatic == *w.Automatic) && (w.Evictions == nil || len(f.Cost.Evictions) == *w.Evictions) &&
		(w.Restarts == nil || len(f.Cost.Restarts) == *w.Restarts) && (!w.RestartsUnknown || f.Cost.RestartsKnown != nil && !*f.Cost.RestartsKnown) && (w.Victims == nil || f.Proof.Victims == *w.Victims) && (w.Node == "" || f.Proof.Node == w.Node) && strings.Contains(f.Title, w.Title) &&
		(w.HardwareEvictions == nil || f.HardwareEvictions != nil && *f.HardwareEvictions == *w.HardwareEvictions) && (w.Effect == "" || effectText(f) == w.Effect)
}

// effectText is a fix's effect in a line.
func effectText(f diagnosis.Fix) string {
	if f.Effect == nil {
		return "none"
	}
	e := *f.Effect
	text := fmt.Sprintf("%d/%d %d>%d", e.Runs, e.Of, e.WaitingBefore, e.WaitingAfter)
	for _, p := range e.ThenWait {
		text += " " + p.Namespace + "/" + p.Name
	}
	return text
}

func readWant(t *testing.T, name string) want {
	t.Helper()
	return readWantIn(t, filepath.Join(scenarios, name))
}

func readWantIn(t *testing.T, folder string) want {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, "want.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var w want
	if err := yaml.UnmarshalStrict(data, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// call runs the program in this process.
func call(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = program.Run(t.Context(), append([]string{"unpend"}, args...), program.Stdio{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

func why(t *testing.T, args ...string) diagnosis.Diagnosis {
	t.Helper()
	return whyOf(t, "", args...)
}

// whyOf is the diagnosis of one workload, or of the only one that waits.
func whyOf(t *testing.T, of string, args ...string) diagnosis.Diagnosis {
	t.Helper()
	code, out, errs := call(t, append([]string{"why", "-o", "json"}, args...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	return oneOf(t, of, out)
}

// oneOf is the diagnosis of one workload in what why tells programs, or the only one.
func oneOf(t *testing.T, of, out string) diagnosis.Diagnosis {
	t.Helper()
	var list diagnosis.List
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	if of != "" {
		list.Items = slices.DeleteFunc(list.Items, func(d diagnosis.Diagnosis) bool { return !strings.EqualFold(d.Workload.Kind+"/"+d.Workload.Name, of) })
	}
	if len(list.Items) != 1 {
		t.Fatalf("%d incidents, want 1: %s", len(list.Items), out)
	}
	return list.Items[0]
}

// explanations are what why tells programs of the scenarios' dumps, by their names: some tests
// hold that to something, and nearly all of their time is the asking.
var explanations sync.Map

func explained(t *testing.T, scenario string) string {
	t.Helper()
	if out, asked := explanations.Load(scenario); asked {
		return out.(string)
	}
	code, out, errs := call(t, append([]string{"why", "-o", "json", "-f", filepath.Join(scenarios, scenario)}, recorded(t, scenario, 0)...)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	explanations.Store(scenario, out)
	return out
}

// check holds a diagnosis to what was wanted, and to what every diagnosis owes.
func (w want) check(t *testing.T, d diagnosis.Diagnosis) {
	t.Helper()
	var causes []diagnosis.CauseID
	for _, c := range d.Causes {
		causes = append(causes, c.ID)
		if len(c.Evidence) == 0 {
			t.Errorf("cause %s has no evidence", c.ID)
		}
	}
	if !slices.Equal(causes, w.Causes) || d.Causes[0].Certainty != w.Certainty || !strings.Contains(d.Causes[0].Says, w.Says) {
		t.Errorf("causes %v, %s, %q; want %v, %s, %q", causes, d.Causes[0].Certainty, d.Causes[0].Says, w.Causes, w.Certainty, w.Says)
	}
	var evidence []string
	for _, e := range d.Causes[0].Evidence {
		evidence = append(evidence, e.Ref+" "+e.Fact)
	}
	for _, q := range w.Quotes {
		if text := strings.Join(evidence, "\n"); !strings.Contains(text, q) || strings.ContainsRune(text, '\x1b') {
			t.Errorf("evidence %q, want %q in it, and nothing for a terminal", evidence, q)
		}
	}
	w.checkFix(t, d.Fixes)
	for node, ids := range w.Blockers {
		var got []diagnosis.CauseID
		for _, n := range d.Nodes {
			for _, b := range n.Blockers {
				if n.Name == node {
					got = append(got, b.Cause)
				}
			}
		}
		if !slices.Equal(got, ids) {
			t.Errorf("blockers of %s: %v, want %v", node, got, ids)
		}
	}
	for _, part := range w.Unread {
		if !strings.Contains(strings.Join(d.Unread, "\n"), part) {
			t.Errorf("unread %q, want %q in it", d.Unread, part)
		}
	}
	if n := len([]rune(d.Headline)); n > 80 || n == 0 {
		t.Errorf("headline of %d characters: %s", n, d.Headline)
	}
}

func (w want) checkFix(t *testing.T, fixes []diagnosis.Fix) {
	t.Helper()
	for n, want := range append([]wantFix{w.Fix}, w.Later...) {
		if at := slices.IndexFunc(fixes, want.is); n == 0 && at != 0 || at < 0 {
			t.Errorf("fix %+v, first %v, is at %d of:", want, n == 0, at)
			for _, f := range fixes {
				t.Errorf("  %v %q: %s on %q, risk %s, effect %s, %d evictions, %d restarts, victims %q, hardware %v", f.Kinds, f.Title, f.Proof.Verdict, f.Proof.Node, f.Risk, effectText(f), len(f.Cost.Evictions), len(f.Cost.Restarts), f.Proof.Victims, f.HardwareEvictions)
			}
		}
	}
	for kind, verdict := range w.Also {
		if !slices.ContainsFunc(fixes, func(f diagnosis.Fix) bool { return f.Kind == kind && f.Proof.Verdict == verdict }) {
			t.Errorf("no fix of kind %s and verdict %s in %+v", kind, verdict, fixes)
		}
	}
	for _, f := range fixes {
		if len(f.Plan) != 64 || f.Proof.Verdict == diagnosis.Refuted {
			t.Errorf("fix %q: plan %q, verdict %s", f.Title, f.Plan, f.Proof.Verdict)
		}
		for _, k := range f.Kinds {
			if slices.Contains(w.Never, k) {
				t.Errorf("%s is offered: %q", k, f.Title)
			}
		}
	}
}

// toldOneIn is of how many scenarios one is told to people too with -short, by its place: what
// is found has been held by then, and the terminal's own tests show every scenario.
const toldOneIn = 8

func TestScenariosOffline(t *testing.T) {
	dirs, err := os.ReadDir(scenarios)
	if err != nil || len(dirs) < 8 {
		t.Fatalf("%d scenarios, %v", len(dirs), err)
	}
	for n, dir := range dirs {
		t.Run(dir.Name(), func(t *testing.T) {
			w := readWant(t, dir.Name())
			d := oneOf(t, w.Of, explained(t, dir.Name()))
			w.check(t, d)
			if testing.Short() && n%toldOneIn > 0 {
				return
			}
			args := append(recorded(t, dir.Name(), 0), "-f", filepath.Join(scenarios, dir.Name()))
			asked := append([]string{"why"}, args...)
			if w.Of != "" {
				asked = append(asked, "-n", d.Workload.Namespace, w.Of)
			}
			code, out, _ := call(t, asked...)
			if code != 0 || strings.Count(out, "\n") > 25 {
				t.Errorf("exit %d, %d lines:\n%s", code, strings.Count(out, "\n"), out)
			}
			showed, behind, _ := call(t, append([]string{"show", d.Incident}, args...)...)
			if strings.HasPrefix(w.Next, "approve") { // nothing is approved in a dump
				if !d.Fixes[0].Automatic || strings.Contains(out, "unpend approve") {
					t.Errorf("the first fix is %+v in:\n%s", d.Fixes[0], out)
				}
			} else if !strings.Contains(out+behind, w.Next) || showed != 0 {
				t.Errorf("want %q in:\n%s%s", w.Next, out, behind)
			}
		})
	}
}
