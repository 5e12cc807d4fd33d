// Package embed asks an OpenAI-compatible endpoint what texts mean, as vectors. It is the
// only importer of go-openai's embeddings.
package embed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

const (
	// timeout bounds one request with its repetitions.
	timeout = 60 * time.Second
	// maxInput is the longest text sent, in characters: small models take 512 tokens.
	maxInput = 1800
)

// Options say which endpoint and model to ask.
type Options struct {
	URL   string // with the version, as https://models.example/v1
	Model string
	Key   string // empty: no Authorization is sent
	// HTTP does the requests; nil: http.DefaultTransport does, within a minute each.
	HTTP *http.Client
}

// Client asks one model.
type Client struct {
	api   *openai.Client
	model string
}

// New says what of the options cannot be used.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("embeddings: %q is no address of an endpoint, such as https://models.example/v1", o.URL)
	}
	if o.Model == "" {
		return nil, errors.New("embeddings: name the model")
	}
	doer := o.HTTP
	if doer == nil {
		doer = &http.Client{Timeout: timeout}
	}
	c := openai.DefaultConfig(o.Key)
	c.BaseURL, c.HTTPClient = o.URL, &patient{doer}
	return &Client{api: openai.NewClientWithConfig(c), model: o.Model}, nil
}

// Model names what makes the vectors: those of another cannot be compared.
func (c *Client) Model() string { return c.model }

// Embed is a vector for each text, in their order. An error says what is wrong with the
// endpoint or with its answer, of which nothing is used then. Whether vectors are as long as
// others is for the caller to say.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	input := make([]string, len(texts))
	for n, t := range texts {
		if r := []rune(t); len(r) > maxInput {
			t = string(r[:maxInput])
		}
		input[n] = t
	}
	answer, err := c.api.CreateEmbeddings(ctx, openai.EmbeddingRequestStrings{Input: input, Model: openai.EmbeddingModel(c.model), EncodingFormat: openai.EmbeddingEncodingFormatFloat})
	if err != nil {
		return nil, fmt.Errorf("ask %s for embeddings: %w", c.model, err)
	}
	// Every result says which text it is of; their order is not promised.
	out := make([][]float32, len(texts))
	for _, e := range answer.Data {
		switch {
		case e.Index < 0 || e.Index >= len(out):
			return nil, fmt.Errorf("embeddings of %s: the answer has text %d, %d were sent", c.model, e.Index, len(out))
		case out[e.Index] != nil:
			return nil, fmt.Errorf("embeddings of %s: the answer has text %d twice", c.model, e.Index)
		case !usable(e.Embedding):
			return nil, fmt.Errorf("embeddings of %s: the vector of text %d is empty, all zero or no numbers", c.model, e.Index)
		}
		out[e.Index] = e.Embedding
	}
	if len(answer.Data) != len(out) {
		return nil, fmt.Errorf("embeddings of %s: the answer has %d of %d texts", c.model, len(answer.Data), len(out))
	}
	return out, nil
}

func usable(v []float32) bool {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return sum > 0 && !math.IsInf(sum, 0) && !math.IsNaN(sum)
}
