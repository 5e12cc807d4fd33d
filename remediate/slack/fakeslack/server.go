// Package fakeslack is Slack in this process, for tests: one workspace with one channel, and
// the limits, the rate limits and the errors of the real one. slack-go's own slacktest
// answers 404 to chat.update and conversations.history.
package fakeslack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What the workspace has.
const (
	Token   = "xoxb-0-secretsecret" //nolint:gosec // of nothing
	Channel = "C0GPU"
	Other   = "C0TEAM" // another channel that the app is in
	Bot     = "B0UNPEND"
)

// Message is a message of the channel.
type Message struct {
	Channel  string          `json:"-"`
	TS       string          `json:"ts"`
	Thread   string          `json:"thread_ts,omitempty"`
	Text     string          `json:"text"`
	Blocks   json.RawMessage `json:"blocks,omitempty"`
	BotID    string          `json:"bot_id"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Edits    int             `json:"-"`
}

// Server is Slack's API.
type Server struct {
	now  func() time.Time
	http *httptest.Server

	mu       sync.Mutex
	faults   []Fault
	messages []*Message
	writes   int
	last     map[string]time.Time // of a write, by channel
	number   int
	refused  []string // what the limits refused, and why
	limited  int
	mentions []string // texts that would have called somebody

	socket
}

// New starts one, which is closed by Close.
func New(now func() time.Time) *Server {
	s := &Server{now: now, last: map[string]time.Time{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/auth.test", s.method(func(http.ResponseWriter, *http.Request) any {
		return map[string]any{"ok": true, "bot_id": Bot, "user_id": "U0UNPEND", "team_id": "T0TEAM", "url": "https://example.slack.com/"}
	}))
	mux.HandleFunc("/api/chat.postMessage", s.method(s.write))
	mux.HandleFunc("/api/chat.update", s.method(s.write))
	mux.HandleFunc("/api/conversations.history", s.method(s.history))
	mux.HandleFunc("/api/conversations.replies", s.method(s.history))
	s.hears(mux)
	s.http = httptest.NewServer(mux)
	return s
}

// Close ends it.
func (s *Server) Close() { s.hangUp(); s.http.CloseClientConnections(); s.http.Close() }

// URL of its API.
func (s *Server) URL() string { return s.http.URL + "/api/" }

// Writes counts the requests that would change the channel, those that failed too.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Messages of all channels, the oldest first; thread's where one is named.
func (s *Server) Messages(thread string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Message
	for _, m := range s.messages {
		if m.Thread == thread {
			out = append(out, *m)
		}
	}
	return out
}

// Delete is what a person does.
func (s *Server) Delete(ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = slices.DeleteFunc(s.messages, func(m *Message) bool { return m.TS == ts })
}

// Complaints are what the real Slack would not have taken, or would have done besides: over
// its limits, too fast, or mentioning somebody.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := append(slices.Clone(s.refused), s.mentions...)
	if s.limited > 0 {
		out = append(out, fmt.Sprintf("%d writes were too fast", s.limited))
	}
	return out
}

type failure string

// method answers with JSON, once the token and the channel are right.
func (s *Server) method(do func(http.ResponseWriter, *http.Request) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch channel := r.FormValue("channel"); {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case r.FormValue("token") != Token && r.Header.Get("Authorization") != "Bearer "+Token:
			answer = failure("invalid_auth")
		case channel != "" && channel != Channel && channel != Other:
			answer = failure("channel_not_found")
		default:
			answer = do(w, r)
		}
		if f, ok := answer.(failure); ok {
			name, more, _ := strings.Cut(string(f), ": ")
			refusal := map[string]any{"ok": false, "error": name}
			if more != "" {
				refusal["response_metadata"] = map[string]any{"messages": []string{more}}
			}
			answer = refusal
		}
		if answer == nil {
			return // it was answered
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer) //nolint:errcheck // who asked has gone
	}
}

// write is chat.postMessage, and chat.update where it names a ts.
func (s *Server) write(w http.ResponseWriter, r *http.Request) any {
	s.mu.Lock()
	s.writes++
	var f Fault
	if len(s.faults) > 0 {
		f, s.faults = s.faults[0], s.faults[1:]
	}
	s.mu.Unlock()
	if f.before(w, r) {
		return nil
	}
	if f.soft != "" {
		return failure(f.soft)
	}
	answer := s.take(w, r)
	if f.after {
		hangUp(w)
		return nil
	}
	return answer
}

func (s *Server) take(w http.ResponseWriter, r *http.Request) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	channel := r.FormValue("channel")
	if now.Sub(s.last[channel]) < time.Second {
		s.limited++
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return nil
	}
	s.last[channel] = now
	text, blocks := r.FormValue("text"), r.FormValue("blocks")
	if why := refuses(blocks, text); why != "" {
		s.refused = append(s.refused, why)
		return failure(why)
	}
	s.mentions = append(s.mentions, calls(blocks, text)...)
	update := strings.HasSuffix(r.URL.Path, "chat.update")
	if !update && (r.FormValue("unfurl_links") != "false" || r.FormValue("unfurl_media") != "false") {
		s.mentions = append(s.mentions, "it may unfurl: "+text)
	}
	if update {
		i := slices.IndexFunc(s.messages, func(m *Message) bool { return m.Channel == channel && m.TS == r.FormValue("ts") })
		if i < 0 {
			return failure("message_not_found")
		}
		m := s.messages[i]
		m.Text, m.Blocks, m.Edits = text, json.RawMessage(blocks), m.Edits+1
		if about := r.FormValue("metadata"); about != "" {
			m.Metadata = json.RawMessage(about)
		}
		return map[string]any{"ok": true, "channel": channel, "ts": m.TS, "text": text}
	}
	s.number++
	m := &Message{Channel: channel, TS: fmt.Sprintf("%d.%06d", now.Unix(), s.number), Thread: r.FormValue("thread_ts"), Text: text, Blocks: json.RawMessage(blocks), BotID: Bot, Metadata: json.RawMessage(r.FormValue("metadata"))}
	s.messages = append(s.messages, m)
	return map[string]any{"ok": true, "channel": channel, "ts": m.TS, "message": m}
}

// history is of the channel, the newest first, or of the thread that ts names.
func (s *Server) history(_ http.ResponseWriter, r *http.Request) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	thread, oldest := r.FormValue("ts"), r.FormValue("oldest")
	var all []Message
	for _, m := range s.messages {
		if m.Channel != r.FormValue("channel") {
			continue
		}
		if m.Thread == thread && seconds(m.TS) >= seconds(oldest) || thread != "" && m.TS == thread {
			c := *m
			if r.FormValue("include_all_metadata") != "1" {
				c.Metadata = nil
			}
			all = append(all, c)
		}
	}
	if thread == "" {
		slices.Reverse(all)
	} else if len(all) == 0 || all[0].TS != thread {
		return failure("thread_not_found")
	}
	limit, from := 100, 0
	if n, err := strconv.Atoi(r.FormValue("limit")); err == nil && n > 0 {
		limit = min(n, 999)
	}
	if n, err := strconv.Atoi(r.FormValue("cursor")); err == nil {
		from = min(n, len(all))
	}
	next, to := "", min(len(all), from+limit)
	if to < len(all) {
		next = strconv.Itoa(to)
	}
	return map[string]any{"ok": true, "messages": append([]Message{}, all[from:to]...), "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next}}
}

func seconds(ts string) int64 {
	whole, _, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
