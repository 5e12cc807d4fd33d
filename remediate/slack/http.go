package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	api "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
)

const (
	// maxBody of a request; it is read before the signature can be worked out.
	maxBody = 64 << 10
	// window is how far from now a request may say that it was sent, either way:
	// https://docs.slack.dev/authentication/verifying-requests-from-slack
	window = 5 * time.Minute
	// remembered is how many requests of that time are; more are refused.
	remembered = 1 << 16
)

// ServeHTTP hears what Slack sends by HTTP, once it was found to be from Slack, of now, and not
// heard before. It answers at once.
func (l *Listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if l.opts.SigningSecret == "" || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, err)
		return
	}
	if err := l.fromSlack(r.Header, body); err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if !l.seen.first(r.Header.Get("X-Slack-Signature")) {
		w.WriteHeader(http.StatusConflict)
		return
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		l.posted(r.Context(), w, body)
		return
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if payload := form.Get("payload"); payload != "" {
		var c api.InteractionCallback
		if json.Unmarshal([]byte(payload), &c) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		l.clicked(r.Context(), c)
		return
	}
	again := &http.Request{Method: http.MethodPost, Header: r.Header, Body: io.NopCloser(bytes.NewReader(body))}
	c, err := api.SlashCommandParse(again)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	l.commanded(r.Context(), c)
}

func refuse(w http.ResponseWriter, err error) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	w.WriteHeader(http.StatusBadRequest)
}

// fromSlack holds the raw body to its signature, and the time that it was sent to now.
func (l *Listener) fromSlack(h http.Header, body []byte) error {
	v, err := api.NewSecretsVerifier(h, l.opts.SigningSecret)
	if err != nil {
		return err
	}
	if _, err := v.Write(body); err != nil {
		return err
	}
	return v.Ensure()
}

// posted is an event, or Slack asking whether it is us.
func (l *Listener) posted(ctx context.Context, w http.ResponseWriter, body []byte) {
	e, err := slackevents.ParseEvent(body, slackevents.OptionNoVerifyToken())
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if asks, ok := e.Data.(*slackevents.EventsAPIURLVerificationEvent); ok {
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, asks.Challenge) //nolint:errcheck // who asked has gone
		return
	}
	if !l.hand(ctx, e) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	l.mentioned(ctx, e)
}

// answerable says of the URL that a command is to be answered at that it is Slack's.
func (l *Listener) answerable(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if own, err := url.Parse(l.opts.URL); err == nil && own.Host != "slack.com" {
		return u.Host == own.Host && u.Scheme == own.Scheme
	}
	return u.Scheme == "https" && u.Host == "hooks.slack.com"
}

// seen remembers what was heard for as long as it could be sent again.
type seen struct {
	now func() time.Time
	mu  *sync.Mutex
	at  map[string]time.Time
}

func newSeen(now func() time.Time) seen { return seen{now, &sync.Mutex{}, map[string]time.Time{}} }

// first says whether a request was not heard before. What there is no room for counts as heard.
func (s seen) first(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if _, again := s.at[key]; again {
		return false
	}
	if len(s.at) >= remembered {
		for k, at := range s.at {
			if now.Sub(at) > 2*window {
				delete(s.at, k)
			}
		}
		if len(s.at) >= remembered {
			return false
		}
	}
	s.at[key] = now
	return true
}
