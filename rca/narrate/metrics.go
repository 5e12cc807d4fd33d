package narrate

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	openai "github.com/sashabaranov/go-openai"
)

// metrics are of a model's use. Their labels are closed sets: what it costs is worked out by
// who knows the prices.
type metrics struct{ wordings, requests, tokens, sentences *prometheus.CounterVec }

func newMetrics(r prometheus.Registerer) (metrics, error) {
	vec := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	m := metrics{
		wordings:  vec("unpend_narrate_wordings_total", "Diagnoses that a model was asked to word, by what came of it.", "result"),
		requests:  vec("unpend_narrate_answers_total", "Answers of a model, by why it stopped.", "finish"),
		tokens:    vec("unpend_narrate_tokens_total", "Tokens as the server counts them: prompt (cached among them), completion (reasoning among them).", "kind"),
		sentences: vec("unpend_narrate_sentences_total", "Sentences of a model: shown, or dropped and why.", "result"),
	}
	for _, result := range append([]string{worded}, failures...) {
		m.wordings.WithLabelValues(result)
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.wordings, m.requests, m.tokens, m.sentences} {
		if err := r.Register(c); err != nil {
			return m, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

const worded = "worded"

func (m metrics) ended(err error) {
	result := worded
	if f, ok := errors.AsType[*failure](err); ok {
		result = f.kind
	} else if err != nil {
		result = unavailable
	}
	m.wordings.WithLabelValues(result).Inc()
}

func (m metrics) checked(shown int, dropped []string) {
	m.sentences.WithLabelValues("shown").Add(float64(shown))
	for _, why := range dropped {
		m.sentences.WithLabelValues(why).Inc()
	}
}

// answered counts an answer; why it stopped is one of a few, whatever a server says.
func (m metrics) answered(finish openai.FinishReason, u openai.Usage) {
	switch finish {
	case openai.FinishReasonStop, openai.FinishReasonLength, openai.FinishReasonContentFilter:
	default:
		finish = "other"
	}
	m.requests.WithLabelValues(string(finish)).Inc()
	count := func(kind string, n int) { m.tokens.WithLabelValues(kind).Add(float64(max(0, n))) }
	count("prompt", u.PromptTokens)
	count("completion", u.CompletionTokens)
	if d := u.PromptTokensDetails; d != nil {
		count("cached", d.CachedTokens)
	}
	if d := u.CompletionTokensDetails; d != nil {
		count("reasoning", d.ReasoningTokens)
	}
}
