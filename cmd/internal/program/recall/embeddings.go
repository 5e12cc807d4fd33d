package recall

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/knowledge/embed"
)

// embeddings are the flags of who also goes by what documents mean.
type embeddings struct{ url, model, keyFile string }

func (e *embeddings) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&e.url, "embeddings-url", "", "OpenAI-compatible endpoint to ask what texts mean, such as http://127.0.0.1:11434/v1; what is imported or asked is sent there")
	f.StringVar(&e.model, "embeddings-model", "", "its model")
	f.StringVar(&e.keyFile, "embeddings-key-file", "", "file with its key, where it wants one")
}

// client asks the endpoint; nil where none is named.
func (e *embeddings) client() (*embed.Client, error) {
	if e.url == "" {
		if e.model+e.keyFile != "" {
			return nil, console.Usage("--embeddings-model and --embeddings-key-file are of an --embeddings-url")
		}
		return nil, nil
	}
	if e.model == "" {
		return nil, console.Usage("name the model of %s: --embeddings-model NAME", e.url)
	}
	key := ""
	if e.keyFile != "" {
		data, err := os.ReadFile(e.keyFile)
		if err != nil {
			return nil, fmt.Errorf("read the key of the embeddings: %w", err)
		}
		if key = strings.TrimSpace(string(data)); key == "" {
			return nil, fmt.Errorf("read the key of the embeddings: %s is empty", e.keyFile)
		}
	}
	return embed.New(embed.Options{URL: e.url, Model: e.model, Key: key})
}

// learned is what came of asking what texts mean.
type learned struct {
	Model   string         `json:"model"`
	Added   int            `json:"added"`
	Same    int            `json:"same"`
	Removed int            `json:"removed"`
	Skipped map[string]int `json:"skipped,omitempty"` // how many, by the reason
}

func (d learned) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s new, %d as before, %d removed\n", terminal.Clean(d.Model), console.Plural(d.Added, "vector", "vectors"), d.Same, d.Removed)
	for _, why := range slices.Sorted(maps.Keys(d.Skipped)) {
		fmt.Fprintf(&out, "  left out: %d × %s\n", d.Skipped[why], terminal.Clean(why))
	}
	return out.String()
}

// learn asks what is new in the library means; nil where no endpoint is named.
func (e *embeddings) learn(ctx context.Context, l *knowledge.Library) (*learned, error) {
	client, err := e.client()
	if err != nil || client == nil {
		return nil, err
	}
	m, err := l.Meanings(client)
	if err != nil {
		return nil, err
	}
	done, err := m.Learn(ctx)
	if err != nil {
		err = fmt.Errorf("%w; what was imported is found by its words; import again to go on", err)
	}
	return &learned{e.model, done.Made, done.Same, done.Gone, done.Skipped}, err
}

// search finds by words and, where an endpoint is named, by meaning; where that cannot be
// asked, it says so and finds by words.
func (e *embeddings) search(ctx context.Context, l *knowledge.Library, words []string, limit int, std console.Stdio) ([]knowledge.Hit, error) {
	client, err := e.client()
	if err != nil {
		return nil, err
	}
	if client == nil {
		return l.Search(ctx, words, limit)
	}
	m, err := l.Meanings(client)
	if err != nil {
		return nil, err
	}
	hits, err := m.Search(ctx, words, limit)
	if err != nil && ctx.Err() == nil {
		console.Complain(std.Err, fmt.Errorf("%w; found by words alone", err))
		err = nil
	}
	return hits, err
}
