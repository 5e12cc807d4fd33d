package acceptance

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unpend/unpend/cmd/internal/program"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBadInputGetsOneSentence(t *testing.T) {
	bad := write(t, "bad.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: [a\n")
	nowhere := write(t, "kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u}]\ncurrent-context: c\n")
	mismatch, all1g := filepath.Join(scenarios, "layout-mismatch"), filepath.Join(scenarios, "all-1g")
	serving0 := incident.ID(incident.Ref{Kind: "Pod", Namespace: "demo", Name: "serving-0"}, map[string]string{"cpu": "1", "nvidia.com/mig-3g.40gb": "1"})
	cases := map[string]struct {
		args []string
		code int
		want []string
	}{
		"malformed dump":         {[]string{"why", "-f", bad}, 1, []string{bad, "document 2", "line 8"}},
		"missing file":           {[]string{"why", "-f", "/does/not/exist"}, 1, []string{"/does/not/exist"}},
		"unreachable API server": {[]string{"why", "-A", "--kubeconfig", nowhere}, 1, []string{"127.0.0.1:1 does not answer", "--context"}},
		"unknown context":        {[]string{"why", "-A", "--kubeconfig", nowhere, "--context", "x"}, 1, []string{"kubeconfig", "--context"}},
		"unknown flag":           {[]string{"why", "--nope"}, 2, []string{"--nope", "--help"}},
		"unknown output":         {[]string{"why", "-o", "xml"}, 2, []string{"xml", "json"}},
		"unknown command":        {[]string{"wyh"}, 2, []string{"wyh", "did you mean why?"}},
		"surplus argument":       {[]string{"incidents", "x"}, 2, []string{"incidents --help"}},
		"empty name":             {[]string{"why", "pod/", "-f", bad}, 2, []string{"pod/", "KIND/NAME"}},
		"name with slashes":      {[]string{"why", "a/b/c"}, 2, []string{"a/b/c", "-n"}},
		"two arguments":          {[]string{"why", "a", "b"}, 2, []string{"--help"}},
		"capacity of what":       {[]string{"capacity", "cpu=3"}, 2, []string{`resource "cpu"`, "nvidia.com/gpu"}},
		"capacity of how many":   {[]string{"capacity", "nvidia.com/gpu=x"}, 2, []string{`"x"`, "whole number"}},
		"no fix named":           {[]string{"approve", "gpu-1"}, 2, []string{"INCIDENT#N"}},
		"no id":                  {[]string{"show", "gpu-1"}, 2, []string{`"gpu-1" is not the id of an incident`, "unpend incidents"}},
		"unknown incident":       {[]string{"show", "gpu-0123456789", "-f", mismatch}, 1, []string{"no incident gpu-0123456789 is known: nothing in the dump has that id"}},
		"unknown, by why":        {[]string{"why", "gpu-0123456789", "-f", mismatch}, 1, []string{"no incident gpu-0123456789 is known"}},
		"incident that is over":  {[]string{"show", serving0, "-f", mismatch}, 5, []string{"incident " + serving0 + " is over: no pod of it waits any more (demo/serving-0 is Running)"}},
		"another's incident":     {[]string{"show", "gpu-cf3482cc7b.01234567", "-f", all1g}, 4, []string{"refused: incident gpu-cf3482cc7b is of cluster 01234567", "this is cluster 936d6bca"}},
		"whose incident":         {[]string{"show", "gpu-50f0f36e34.01234567", "-f", mismatch}, 6, []string{"which cluster this is cannot be told"}},
		"no such fix":            {[]string{"show", "gpu-50f0f36e34#99", "-f", mismatch}, 2, []string{"no fix 99"}},
		"no such namespace":      {[]string{"why", "-n", "mlx", "-f", mismatch}, 1, []string{"the dump holds nothing of namespace mlx: it has demo"}},
		"roles without NATS":     {[]string{"run", "--roles", "watch"}, 2, []string{"--nats"}},
		"notify without NATS":    {[]string{"run", "--roles", "notify"}, 2, []string{"--nats"}},
		"unknown configuration":  {[]string{"run", "--config", write(t, "c.yaml", "watchr: {}\n")}, 1, []string{"watchr"}},
		"not there":              {[]string{"why", "pod/nobody", "-f", filepath.Join(scenarios, "layout-mismatch")}, 1, []string{"pod/nobody", "did you mean pod/waiting"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errs := call(t, c.args...)
			if code != c.code || out != "" || strings.Count(strings.TrimSpace(errs), "\n") > 0 {
				t.Errorf("exit %d, want %d; stdout %q, stderr %q", code, c.code, out, errs)
			}
			for _, part := range c.want {
				if !strings.Contains(errs, part) {
					t.Errorf("%q is not in %q", part, errs)
				}
			}
		})
	}
}

func TestExitCodesAndOutputs(t *testing.T) {
	dump := filepath.Join(scenarios, "layout-mismatch")
	if code, out, _ := call(t, "why", "-f", dump, "-o", "name", "--exit-code"); code != exitFindings || out != "incident.unpend.dev/gpu-50f0f36e34\n" {
		t.Errorf("exit %d, %q", code, out)
	}
	if code, out, _ := call(t, "why", "waiting", "-f", dump, "-o", "yaml"); code != 0 || !strings.Contains(out, "kind: DiagnosisList") {
		t.Errorf("exit %d, %q", code, out)
	}
	if code, _, errs := call(t, "why", "serving-0", "-f", dump); code != 0 || !strings.Contains(errs, "serving-0 does not wait: pod demo/serving-0 is Running on ") {
		t.Errorf("exit %d, %q", code, errs)
	}
	if code, out, errs := call(t, "why", "-n", "elsewhere", "-f", dump, "--exit-code"); code != 1 || out != "" || errs != "unpend: the dump holds nothing of namespace elsewhere: it has demo\n" {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if code, out, _ := call(t, "incidents", "-f", dump); code != 0 || !strings.Contains(out, "MIGLayoutMismatch") {
		t.Errorf("exit %d, %q", code, out)
	}
}

// What dump writes, why reads to the same diagnosis.
func TestDumpRoundTrip(t *testing.T) {
	dir := filepath.Join(scenarios, "all-1g")
	code, out, errs := call(t, "dump", "-f", dir, "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	_, direct, _ := call(t, "why", "-f", dir, "-o", "json")
	_, again, _ := call(t, "why", "-f", write(t, "dump.json", out), "-o", "json")
	if direct != again {
		t.Errorf("the dump of a dump is diagnosed otherwise:\n%s\n%s", direct, again)
	}
}

func TestDemoTellsTheWholeStory(t *testing.T) {
	t.Parallel() // it waits
	code, out, errs := call(t, "demo", "--auto", "-o", "json")
	if code != 0 {
		t.Fatal(errs)
	}
	var events []string
	dec := json.NewDecoder(strings.NewReader(out))
	for dec.More() {
		var e struct {
			Event      string               `json:"event"`
			Diagnosis  *diagnosis.Diagnosis `json:"diagnosis"`
			Plan, Pod  string
			N, Of      int
			PodRunning bool    `json:"podRunning"`
			Seconds    float64 `json:"seconds"`
		}
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e.Event)
		switch e.Event {
		case "finding":
			if e.Diagnosis.Causes[0].ID != diagnosis.MIGLayoutMismatch || len(e.Diagnosis.Nodes) != 8 || e.Diagnosis.Fixes[0].Kind != diagnosis.RepartitionGPU || e.Diagnosis.Fixes[0].Proof.Victims != "land" {
				t.Errorf("finding %+v", e.Diagnosis)
			}
		case "approved":
			if len(e.Plan) != 64 {
				t.Errorf("plan %q", e.Plan)
			}
		case "step":
			if e.N < 1 || e.N > e.Of || e.Of < 6 {
				t.Errorf("step %d of %d", e.N, e.Of)
			}
		case "running":
			if !strings.HasPrefix(e.Pod, "ml/llama-70b") {
				t.Errorf("pod %q", e.Pod)
			}
		case "done":
			if !e.PodRunning || e.Seconds <= 0 {
				t.Errorf("done %+v", e)
			}
		}
	}
	story := strings.Join(events, " ")
	if !strings.HasPrefix(story, "finding approved step ") || !strings.HasSuffix(story, " step running done") {
		t.Errorf("events: %s", story)
	}
}

// The story ends with what people would have read of it elsewhere: the message as it was posted
// and as it was left, and the ticket with its comment, of the same incident.
func TestDemoShowsWhatPeopleWereTold(t *testing.T) {
	t.Parallel() // it waits
	code, out, errs := call(t, "demo", "--auto")
	_, told, _ := strings.Cut(out, "In Slack that is one message, posted as")
	inSlack, inJira, _ := strings.Cut(told, "In Jira it is one ticket, in the end closed, with a comment for each thing that happened:")
	ticket, comment, _ := strings.Cut(inJira, "comment:")
	for text, parts := range map[string][]string{
		inSlack: {"ml/llama-70b waits", "[ Approve #1 ]", "done in "},
		ticket:  {"ml/llama-70b waits", "labels: unpend unpend-demo-gpu-", "Why", "The GPU that matters", "1. repartition gpu-", "Evidence", "Nobody of it waits any more", "approved by you → done"},
		comment: {"is being carried", "approved by you → done", "nobody of it waits any more"},
	} {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("exit %d %s: it lacks %q:\n%s", code, errs, part, text)
			}
		}
	}
}

func TestDemoWithoutApprovalChangesNothing(t *testing.T) {
	var out, errs bytes.Buffer
	code := program.Run(t.Context(), []string{"unpend", "demo"}, program.Stdio{In: strings.NewReader("n\n"), Out: &out, Err: &errs})
	if code != 0 || !strings.Contains(out.String(), "Not approved; nothing was changed.") || strings.Contains(errs.String(), "cordon") {
		t.Errorf("exit %d\n%s\n%s", code, out.String(), errs.String())
	}
}

// Servers that answer, but not as an API server that may be used.
func TestServersThatCannotBeAsked(t *testing.T) {
	cases := map[int]string{
		http.StatusUnauthorized:       "does not accept these credentials (401)",
		http.StatusNotFound:           "is no Kubernetes API server",
		http.StatusServiceUnavailable: "cannot answer now (503",
	}
	for code, want := range cases {
		t.Run(http.StatusText(code), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "no", code)
			}))
			defer server.Close()
			config := write(t, "kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '"+server.URL+"'}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u}]\ncurrent-context: c\n")
			for _, args := range [][]string{{"why", "-A"}, {"dump"}, {"approve", "gpu-0123456789#1"}} {
				exit, out, errs := call(t, append(args, "--kubeconfig", config)...)
				if exit != 1 || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
					t.Errorf("%v: exit %d, %q, %q", args, exit, out, errs)
				}
			}
		})
	}
}
