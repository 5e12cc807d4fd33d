// Package narrate has a language model put a finished diagnosis in words for people, and lets
// through what it can hold against the evidence. It is the only importer of go-openai's chat.
//
// Begin at Narrator.Word. What the model is given is in evidence.go, what is asked in ask.go,
// how an answer is checked in check.go and ground.go, how a server that is busy is asked again
// in patient.go.
//
// Rules of this package:
//   - The model has no tools, and nothing it says is read as anything but a sentence: causes,
//     fixes, their arguments and their order are those of the diagnosis, which is not changed.
//   - A sentence that fails one check is dropped. An answer that is late, cut, refused or of no
//     use is no wording, and who asked goes on without.
//   - The model reads what code concludes, with NAME1, NAME2, … for what tenants call things; the
//     facts behind it and what the team said before are not shown to it at all.
//   - That a sentence holds says that its parts stand in the evidence, not that it is true: where
//     it is shown, it stands apart from what code says, with what it cites.
package narrate

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	openai "github.com/sashabaranov/go-openai"

	"github.com/unpend/unpend/rca/diagnosis"
)

// The fields by which servers take the bound of an answer. Ollama knows the first alone, and
// ignores the other; OpenAI's reasoning models refuse the first.
const (
	MaxTokensField           = "max_tokens"
	MaxCompletionTokensField = "max_completion_tokens"
)

// Options of a Narrator.
type Options struct {
	// URL of a server that speaks OpenAI's chat completions, up to and with /v1. Required.
	URL string
	// Model as the server calls it. Required.
	Model string
	// Key that the server takes; without one no Authorization is sent.
	Key string
	// HTTP speaks to the server. Required.
	HTTP Doer
	// Deadline of one wording, with everything that is tried again (8s).
	Deadline time.Duration
	// PerHour is how many requests are sent in any hour (60).
	PerHour int
	// TokenLimitField is MaxTokensField or MaxCompletionTokensField; "": by the model's name.
	TokenLimitField string
	// MaxTokens bounds an answer, a reasoning model's thoughts included (2000).
	MaxTokens int
	// Now is the time; the machine's without it.
	Now func() time.Time
	// Registerer of the metrics; there are none without it.
	Registerer prometheus.Registerer
}

// Defaults of Options.
const (
	DefaultDeadline  = 8 * time.Second
	DefaultPerHour   = 60
	DefaultMaxTokens = 2000
)

// Validate says what of the options cannot be meant, by the keys of the configuration.
func (o Options) Validate() error {
	var wrong []error
	if u, err := url.Parse(o.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		wrong = append(wrong, errors.New("narrate.url has to be the address of a server up to and with its version, as https://api.openai.com/v1"))
	}
	if o.Model == "" || strings.TrimSpace(o.Model) != o.Model {
		wrong = append(wrong, fmt.Errorf("narrate.model is %q: it has to be the model's name, as the server has it", o.Model))
	}
	if o.Deadline < time.Second || o.Deadline > 5*time.Minute {
		wrong = append(wrong, fmt.Errorf("narrate.deadline is %s: it has to be between 1s and 5m0s", o.Deadline))
	}
	if o.PerHour < 1 || o.PerHour > 10000 {
		wrong = append(wrong, fmt.Errorf("narrate.perHour is %d: it has to be between 1 and 10000", o.PerHour))
	}
	if o.MaxTokens < 200 || o.MaxTokens > 100000 {
		wrong = append(wrong, fmt.Errorf("narrate.maxTokens is %d: it has to be between 200 and 100000", o.MaxTokens))
	}
	switch o.TokenLimitField {
	case "", MaxCompletionTokensField:
	case MaxTokensField:
		if reasons(o.Model) {
			wrong = append(wrong, fmt.Errorf("narrate.tokenLimitField is max_tokens, which %s does not take: leave it out, or write max_completion_tokens", o.Model))
		}
	default:
		wrong = append(wrong, fmt.Errorf("narrate.tokenLimitField is %q: it has to be max_tokens or max_completion_tokens", o.TokenLimitField))
	}
	return errors.Join(wrong...)
}

// Narrator words diagnoses. It may be used by several goroutines.
type Narrator struct {
	opts    Options
	api     *openai.Client
	metrics metrics
}

// New makes one; it asks nothing yet.
func New(o Options) (*Narrator, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		return nil, errors.New("narrate: there is nothing to speak to the model with")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, err
	}
	c := openai.DefaultConfig(o.Key)
	c.BaseURL, c.HTTPClient = o.URL, patient{next: o.HTTP, budget: &budget{most: o.PerHour, now: o.Now}}
	return &Narrator{opts: o, api: openai.NewClientWithConfig(c), metrics: m}, nil
}

// Of is what Wording.Of is of a diagnosis.
func Of(d diagnosis.Summary) string { return evidenceOf(d).sum() }

// Word has the diagnosis put in words, within the deadline. With an error, which is for an
// operator, there is none, and the diagnosis is told as it is.
func (n *Narrator) Word(ctx context.Context, d diagnosis.Summary) (diagnosis.Wording, error) {
	e := evidenceOf(d)
	w := diagnosis.Wording{Model: n.opts.Model, Of: e.sum()}
	if len(d.Causes) == 0 {
		return w, nil // there is nothing to say but what stands with another incident
	}
	ctx, cancel := context.WithTimeout(ctx, n.opts.Deadline)
	defer cancel()
	var err error
	w.Sentences, err = n.sentences(ctx, e)
	n.metrics.ended(err)
	return w, err
}

// sentences asks, and once again where the answer is of no use, saying why.
func (n *Narrator) sentences(ctx context.Context, e evidence) ([]diagnosis.Sentence, error) {
	talk := opening(e)
	for again := false; ; again = true {
		text, err := n.ask(ctx, e, talk)
		if err != nil {
			return nil, err
		}
		kept, err := n.checked(e, text)
		if err == nil || again {
			return kept, err
		}
		talk = append(talk, repair(text, err)...)
	}
}

// checked are the sentences of an answer that hold.
func (n *Narrator) checked(e evidence, text string) ([]diagnosis.Sentence, error) {
	claims, err := read(text)
	if err != nil {
		return nil, err
	}
	kept, dropped := e.check(claims)
	n.metrics.checked(len(kept), dropped)
	if len(kept) == 0 {
		return nil, fail(unsupported, "none of its %d sentences is borne out by the evidence", len(claims))
	}
	return kept, nil
}
