package settings

import (
	"cmp"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/narrate"
)

// narrateConfig is the model that words findings; none by default.
type narrateConfig struct {
	// URL of a server that speaks OpenAI's chat completions, up to and with /v1.
	URL string `json:"url"`
	// Model as the server calls it.
	Model string `json:"model"`
	// KeyFile holds the key that the server takes; without it none is sent.
	KeyFile string `json:"keyFile"`
	// Deadline of one wording; the finding is told before, and edited then (8s).
	Deadline *metav1.Duration `json:"deadline"`
	// PerHour is how many requests are sent in any hour (60).
	PerHour *int `json:"perHour"`
	// MaxTokens bounds an answer, the thoughts of a reasoning model included (2000).
	MaxTokens *int `json:"maxTokens"`
	// TokenLimitField is max_tokens, which Ollama takes, or max_completion_tokens, which OpenAI's
	// reasoning models take; by the model's name without it.
	TokenLimitField string `json:"tokenLimitField"`
}

// Given says whether a model is asked.
func (c narrateConfig) Given() bool { return c != narrateConfig{} }

// check says what of it cannot be meant.
func (c narrateConfig) check() error {
	if !c.Given() {
		return nil
	}
	var no error
	if c.URL == "" && c.Model == "" {
		no = errors.New("narrate names no narrate.url and no narrate.model: leave all of it out, and no model is asked")
	}
	return errors.Join(no, c.Options().Validate())
}

// Options are those of the narrator, with the defaults of what is not given.
func (c narrateConfig) Options() narrate.Options {
	o := narrate.Options{URL: c.URL, Model: c.Model, TokenLimitField: c.TokenLimitField, Deadline: narrate.DefaultDeadline, PerHour: narrate.DefaultPerHour, MaxTokens: narrate.DefaultMaxTokens}
	if c.Deadline != nil {
		o.Deadline = c.Deadline.Duration
	}
	o.PerHour = *cmp.Or(c.PerHour, &o.PerHour)
	o.MaxTokens = *cmp.Or(c.MaxTokens, &o.MaxTokens)
	return o
}
