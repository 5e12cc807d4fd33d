package narrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/unpend/unpend/rca/drawing"
)

// The ways in which there is no wording; they are values of a metric's label.
const (
	unavailable = "unavailable" // the server is away, or says no
	late        = "late"
	budgeted    = "budget" // this hour's requests are used up
	refused     = "refused"
	cut         = "cut"   // the answer reached the token limit
	empty       = "empty" // the answer has no text
	unreadable  = "unreadable"
	unsupported = "unsupported" // no sentence passed
)

var failures = []string{unavailable, late, budgeted, refused, cut, empty, unreadable, unsupported}

// failure is why there is no wording.
type failure struct {
	kind  string
	words string
	is    error
}

func (f *failure) Error() string { return "the model gave no wording (" + f.kind + "): " + f.words }

func (f *failure) Unwrap() error { return f.is }

func fail(kind, format string, of ...any) error {
	return &failure{kind: kind, words: fmt.Sprintf(format, of...)}
}

// told is what an error of the client means. Of a body only the beginning is said: it may be
// a page of HTML.
func told(ctx context.Context, err error) error {
	f := &failure{kind: unavailable, words: err.Error(), is: err}
	if answered, ok := errors.AsType[*openai.APIError](err); ok {
		f.words = fmt.Sprintf("the server says %d: %s", answered.HTTPStatusCode, brief(answered.Message))
	}
	if answered, ok := errors.AsType[*openai.RequestError](err); ok {
		f.words = fmt.Sprintf("the server says %d: %s", answered.HTTPStatusCode, brief(string(answered.Body)))
	}
	switch {
	case errors.Is(err, errBudget):
		f.kind = budgeted
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.kind, f.words = late, "it did not answer in time"
	}
	return f
}

func brief(s string) string {
	return shortened(strings.Join(strings.Fields(drawing.Clean(strings.ToValidUTF8(s, ""), false)), " "), maxSays)
}

// maxSays is how much of a server's words an error shows, in characters.
const maxSays = 200

func shortened(s string, most int) string {
	all := []rune(s)
	if len(all) <= most {
		return s
	}
	return string(all[:most-1]) + "…"
}
