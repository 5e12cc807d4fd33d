package narrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

// found is a finding as others are.
func found() diagnosis.Summary {
	return diagnosis.Summary{Incident: "gpu-0123456789", Workload: incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, Headline: "ml/training waits 14 min: needs a 2g.10gb, no GPU has that layout",
		Pods: diagnosis.WaitingPods{Waiting: 1, Names: []string{"training-lk8nl"}}, Requests: map[string]string{"nvidia.com/mig-2g.10gb": "1"},
		Causes: []diagnosis.CauseSummary{{ID: diagnosis.MIGLayoutMismatch, Certainty: diagnosis.Proven, Says: "not laid out with 2g.10gb", NodeCount: 2,
			Evidence: []diagnosis.Evidence{{Ref: "NodeGeometry/gpu-1", Fact: "GPU 0: 2g.10gb could start at memory slice 4"}}}},
		Fixes: []diagnosis.FixSummary{{ID: 1, Title: `repartition gpu-1/GPU 0 to "all-2g.10gb", evicting 3 pods`, Risk: diagnosis.LowRisk, EvictionCount: 3, Cost: diagnosis.Cost{Minutes: 4, Evictions: []diagnosis.PodName{{Namespace: "ml", Name: "inference-1"}}},
			Effect: &diagnosis.Effect{Runs: 1, Of: 1}, Proof: diagnosis.Proof{Verdict: diagnosis.Schedules, Why: "the filters accept gpu-1"}}}}
}

// good is a claim that holds, of the cause.
var good = claim{"The nodes are not laid out with 2g.10gb.", []string{"E3"}, "not laid out with 2g.10gb"}

// server answers as it is told to, one answer after the other, and notes what it was asked.
type server struct {
	answers []answer
	asked   []map[string]any
	bodies  []string
}

type answer struct {
	status int
	header http.Header
	body   string
	err    error
	takes  time.Duration
}

// says is a whole answer with that text.
func says(text string) answer { return finished(text, "stop", "") }

func finished(text, finish, refusal string) answer {
	body, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"finish_reason": finish, "message": map[string]any{"role": "assistant", "content": text, "refusal": refusal}}},
		"usage": map[string]any{"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": map[string]any{"cached_tokens": 60}, "completion_tokens_details": map[string]any{"reasoning_tokens": 7}}})
	if err != nil {
		panic(err)
	}
	return answer{status: http.StatusOK, body: string(body)}
}

func claims(all ...claim) string {
	body, err := json.Marshal(map[string]any{"claims": all})
	if err != nil {
		panic(err)
	}
	return string(body)
}

func (s *server) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var asked map[string]any
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	s.asked, s.bodies = append(s.asked, asked), append(s.bodies, string(body))
	a := s.answers[min(len(s.asked), len(s.answers))-1]
	select {
	case <-time.After(a.takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Header: a.header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func options(s *server) Options {
	return Options{URL: "https://models.example.com/v1", Model: "small", Key: "key-canary", HTTP: s, Deadline: DefaultDeadline, PerHour: DefaultPerHour, MaxTokens: DefaultMaxTokens}
}

func counted(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if v := m.GetCounter().GetValue(); v > 0 {
				out[strings.TrimPrefix(f.GetName(), "unpend_narrate_")+" "+m.GetLabel()[0].GetValue()] = v
			}
		}
	}
	return out
}

// What holds is told, with what it rests on; what does not is dropped, and both are counted.
func TestWord(t *testing.T) {
	s := &server{answers: []answer{says("```json\n" + claims(good, claim{"It stops 7 pods.", []string{"E4"}, "stops 3 pods"}, good) + "\n```")}}
	o := options(s)
	registry := prometheus.NewRegistry()
	o.Registerer = registry
	n, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Word(t.Context(), found())
	want := diagnosis.Wording{Model: "small", Of: Of(found()), Sentences: []diagnosis.Sentence{{Says: "The nodes are not laid out with 2g.10gb.", From: []string{"MIGLayoutMismatch"}}}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if diff := cmp.Diff(map[string]float64{"wordings_total worded": 1, "answers_total stop": 1, "tokens_total prompt": 100, "tokens_total completion": 20, "tokens_total cached": 60, "tokens_total reasoning": 7,
		"sentences_total shown": 1, "sentences_total ungrounded": 1, "sentences_total surplus": 1}, counted(t, registry)); diff != "" {
		t.Error(diff)
	}
	r := s.asked[0]
	if len(s.asked) != 1 || r["model"] != "small" || r["max_tokens"] != float64(DefaultMaxTokens) || r["max_completion_tokens"] != nil || r["temperature"].(float64) == 0 || r["temperature"].(float64) > 2*math.SmallestNonzeroFloat32 || r["tools"] != nil || r["stream"] == true {
		t.Errorf("asked %v", r)
	}
	format := r["response_format"].(map[string]any)
	inner := format["json_schema"].(map[string]any)
	if format["type"] != "json_schema" || inner["strict"] != true || !strings.Contains(s.bodies[0], `"enum":["E1","E2","E3","E4"]`) {
		t.Errorf("the format is %v", format)
	}
	if diff := cmp.Diff([]string{"NAME5 waits 14 min: needs a 2g.10gb, no GPU has that layout", "Job NAME5: 1 pod waiting; each wants 1 × nvidia.com/mig-2g.10gb", "cause MIGLayoutMismatch, proven: not laid out with 2g.10gb; on 2 nodes",
		`fix 1: repartition gpu-1/GPU 0 to "all-2g.10gb", evicting 3 pods; risk low; stops 3 pods; takes about 4 min; 1 of 1 pods run afterwards; schedules: the filters accept gpu-1`}, texts(evidenceOf(found()))); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"training", "inference-1", `"ml`} {
		if strings.Contains(s.bodies[0], name) {
			t.Errorf("the model reads the name %s: %s", name, s.bodies[0])
		}
	}
}

func texts(e evidence) (out []string) {
	for _, i := range e.items {
		out = append(out, i.text)
	}
	return out
}

// However an answer is of no use, there is none within the deadline, and why is said.
func TestNoWording(t *testing.T) {
	busy := func(after string) answer {
		return answer{status: http.StatusTooManyRequests, header: http.Header{"Retry-After": {after}}, body: `{"error":{"message":"slow down","type":"rate","code":"x"}}`}
	}
	page := answer{status: http.StatusBadGateway, body: "<html>" + strings.Repeat("x", 9000)}
	for name, tc := range map[string]struct {
		answers []answer
		want    string // of the error; empty: it is worded
		kind    string
		asked   int
		within  time.Duration
	}{
		"cut":                        {[]answer{finished(claims(good), "length", "")}, "longer than 2000 tokens: raise narrate.maxTokens", cut, 1, 0},
		"refused":                    {[]answer{finished("", "stop", "I will not")}, "I will not", refused, 1, 0},
		"filtered":                   {[]answer{finished(claims(good), "content_filter", "")}, "its filter", refused, 1, 0},
		"empty":                      {[]answer{says(" ")}, "no text", empty, 1, 0},
		"null":                       {[]answer{{status: 200, body: `{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":null}}]}`}}, "no text", empty, 1, 0},
		"no choice":                  {[]answer{{status: 200, body: `{"choices":[]}`}}, "no choice", empty, 1, 0},
		"no JSON, twice":             {[]answer{says("Sure! Here is")}, "no JSON object", unreadable, 2, 0},
		"half of JSON, then well":    {[]answer{says(`{"claims":[{"text":`), says(claims(good))}, "", "", 2, 0},
		"nothing holds, then well":   {[]answer{says(claims(claim{"It is fine.", []string{"E9"}, "fine"})), says(claims(good))}, "", "", 2, 0},
		"nothing holds, twice":       {[]answer{says(claims(claim{"It is fine.", []string{"E9"}, "fine"}))}, "none of its 1 sentences", unsupported, 2, 0},
		"busy, as long as it says":   {[]answer{busy("3"), says(claims(good))}, "", "", 2, 3 * time.Second},
		"busy for longer than it is": {[]answer{busy("60")}, "the server says 429: slow down", unavailable, 1, 0},
		"broken, then well":          {[]answer{page, says(claims(good))}, "", "", 2, time.Second},
		"broken":                     {[]answer{page}, "the server says 502: <html>xxx", unavailable, tries, DefaultDeadline},
		"away":                       {[]answer{{err: errors.New("connection refused")}}, "connection refused", unavailable, tries, DefaultDeadline},
		"no such model":              {[]answer{{status: 404, body: `{"error":{"message":"no model small","type":"x","code":null}}`}}, "the server says 404: no model small", unavailable, 1, 0},
		"late":                       {[]answer{{takes: time.Hour}}, "did not answer in time", late, 1, DefaultDeadline},
		"late, the second time":      {[]answer{says("x"), {takes: time.Hour}}, "did not answer in time", late, 2, DefaultDeadline},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{answers: tc.answers}
			registry := prometheus.NewRegistry()
			o := options(s)
			o.Registerer = registry
			n, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			w, err := n.Word(t.Context(), found())
			took := time.Since(began)
			if tc.want == "" && (err != nil || len(w.Sentences) != 1) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 500 || w.Sentences != nil) {
				t.Errorf("%s: %v %v", name, w, err)
			}
			if len(s.asked) != tc.asked || took > max(tc.within, time.Millisecond) || tc.within == 3*time.Second && took < tc.within {
				t.Errorf("%s: asked %d times in %s", name, len(s.asked), took)
			}
			if got := counted(t, registry); got["wordings_total "+tc.kind] != 1 && tc.kind != "" || tc.kind == "" && got["wordings_total worded"] != 1 {
				t.Errorf("%s: %v", name, got)
			}
			if err != nil && strings.Contains(err.Error(), "key-canary") {
				t.Errorf("%s: the error has the key", name)
			}
		})
	}
}

// A repair is told what was wrong, and what was answered.
func TestRepairSaysWhy(t *testing.T) {
	s := &server{answers: []answer{says("no"), says(claims(good))}}
	n, err := New(options(s))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Word(t.Context(), found()); err != nil {
		t.Fatal(err)
	}
	talk := s.asked[1]["messages"].([]any)
	last := talk[3].(map[string]any)["content"].(string)
	if len(talk) != 4 || talk[2].(map[string]any)["content"] != "no" || !strings.Contains(last, "the answer has no JSON object") {
		t.Errorf("%v", talk)
	}
}

// In any hour no more requests are sent than were allowed, whatever is asked for.
func TestBudget(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	s := &server{answers: []answer{says(claims(good))}}
	o := options(s)
	o.PerHour, o.Now = 2, func() time.Time { return now }
	n, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for i, tc := range []struct {
		later time.Duration
		asked int
	}{{0, 1}, {30 * time.Minute, 2}, {29 * time.Minute, 2}, {time.Minute, 3}, {time.Minute, 3}, {29 * time.Minute, 4}} {
		now = now.Add(tc.later)
		_, err := n.Word(t.Context(), found())
		if f, _ := errors.AsType[*failure](err); len(s.asked) != tc.asked || err != nil && f.kind != budgeted {
			t.Errorf("%d: %d requests, %v", i, len(s.asked), err)
		}
	}
}

// Models that think first get no temperature, and the field that they take; others what the
// server knows.
func TestRequestByModel(t *testing.T) {
	for _, tc := range []struct {
		model, field string
		temperature  bool
		limit        string
	}{
		{"small", "", true, "max_tokens"}, {"small", MaxCompletionTokensField, true, "max_completion_tokens"}, {"llama3.1:8b", MaxTokensField, true, "max_tokens"}, {"omni", "", true, "max_tokens"},
		{"gpt-5.4", "", false, "max_completion_tokens"}, {"o3-mini", "", false, "max_completion_tokens"}, {"gpt-6-sol", "", false, "max_completion_tokens"}, {"my-proxy/gpt-5.4", "", false, "max_completion_tokens"},
	} {
		s := &server{answers: []answer{says(claims(good))}}
		o := options(s)
		o.Model, o.TokenLimitField = tc.model, tc.field
		n, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.Word(t.Context(), found()); err != nil {
			t.Errorf("%s: %v", tc.model, err)
			continue
		}
		for _, field := range []string{MaxTokensField, MaxCompletionTokensField} {
			if _, has := s.asked[0][field]; has != (field == tc.limit) {
				t.Errorf("%s: %s is there: %v", tc.model, field, has)
			}
		}
		if _, has := s.asked[0]["temperature"]; has != tc.temperature {
			t.Errorf("%s: it has a temperature: %v", tc.model, has)
		}
	}
}

func TestOptionsThatCannotBeMeant(t *testing.T) {
	for want, edit := range map[string]func(*Options){
		"narrate.url has to be":         func(o *Options) { o.URL = "models.example.com" },
		"narrate.url has to":            func(o *Options) { o.URL = "https://user:pass@models.example.com/v1" },
		"narrate.model is \"\"":         func(o *Options) { o.Model = "" },
		"narrate.deadline is 1ms":       func(o *Options) { o.Deadline = time.Millisecond },
		"narrate.perHour is 0":          func(o *Options) { o.PerHour = 0 },
		"narrate.maxTokens is 10":       func(o *Options) { o.MaxTokens = 10 },
		"narrate.tokenLimitField is \"": func(o *Options) { o.TokenLimitField = "tokens" },
		"which o3-mini does not take":   func(o *Options) { o.Model, o.TokenLimitField = "o3-mini", MaxTokensField },
		"nothing to speak to":           func(o *Options) { o.HTTP = nil },
	} {
		o := options(&server{})
		edit(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pass@") {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// Without a cause there is nothing to word, and nobody is asked.
func TestNothingToWord(t *testing.T) {
	s := &server{}
	n, err := New(options(s))
	if err != nil {
		t.Fatal(err)
	}
	if w, err := n.Word(t.Context(), diagnosis.Summary{Alike: "gpu-aaaaaaaaaa", Headline: "x"}); err != nil || w.Sentences != nil || len(s.asked) != 0 {
		t.Errorf("%v %v, asked %d times", w, err, len(s.asked))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.answers = []answer{{takes: time.Hour}}
	if _, err := n.Word(ctx, found()); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone is told %v", err)
	}
}

// What the wording is of differs where the finding does, also in names that the model does
// not read.
func TestOf(t *testing.T) {
	base := Of(found())
	for name, edit := range map[string]func(*diagnosis.Summary){
		"a name": func(d *diagnosis.Summary) { d.Workload.Name = "other" }, "a fix": func(d *diagnosis.Summary) { d.Fixes[0].Cost.Minutes = 5 }, "a cause": func(d *diagnosis.Summary) { d.Causes[0].Says = "other" },
	} {
		d := found()
		if edit(&d); Of(d) == base {
			t.Errorf("%s changes nothing", name)
		}
	}
	if Of(found()) != base || bytes.ContainsAny([]byte(base), fmt.Sprintln()) {
		t.Errorf("%q", base)
	}
}
