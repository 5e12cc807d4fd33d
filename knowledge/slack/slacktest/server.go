// Package slacktest is the history of a Slack workspace in this process, for tests: the four
// methods by which it is read, with the arguments, the shapes, the pages and the limits that
// Slack documents (https://docs.slack.dev/reference/methods). What it is asked that Slack does
// not document is a complaint.
package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Token is that of the app.
const Token = "xoxb-0-secretsecret" //nolint:gosec // of nothing

// Message is one as Slack gives it; ts, and thread_ts where it is an answer, say where it is.
type Message map[string]any

func (m Message) word(key string) string {
	s, _ := m[key].(string)
	return s
}

// Channel is one of the workspace.
type Channel struct {
	ID, Name                   string
	Created                    int64
	Private, Outside, Archived bool // Outside: the app is not in it
}

// Server is Slack's API.
type Server struct {
	// Most is how many messages an answer has at most; 0: as many as are asked for.
	Most int
	// Before sees a request before it is answered; true: it has answered. nil: nobody does.
	Before func(w http.ResponseWriter, method string, r *http.Request) bool

	http *httptest.Server

	mu         sync.Mutex
	channels   []Channel
	messages   map[string][]Message
	calls      map[string]int
	complaints []string
}

// New starts one, which is closed by Close.
func New(channels ...Channel) *Server {
	s := &Server{channels: channels, messages: map[string][]Message{}, calls: map[string]int{}}
	mux := http.NewServeMux()
	for name, m := range methods {
		mux.HandleFunc("/api/"+name, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, name, m) })
	}
	s.http = httptest.NewServer(mux)
	return s
}

// Close ends it.
func (s *Server) Close() { s.http.CloseClientConnections(); s.http.Close() }

// URL of its API.
func (s *Server) URL() string { return s.http.URL + "/api/" }

// Say puts messages into a channel; one with a ts that is there replaces it.
func (s *Server) Say(channel string, all ...Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range all {
		s.drop(channel, m.word("ts"))
		s.messages[channel] = append(s.messages[channel], m)
	}
}

// Delete takes a message out.
func (s *Server) Delete(channel, ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(channel, ts)
}

func (s *Server) drop(channel, ts string) {
	s.messages[channel] = slices.DeleteFunc(s.messages[channel], func(m Message) bool { return m.word("ts") == ts })
}

// Set replaces the channels.
func (s *Server) Set(all ...Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channels = all
}

// Calls is how often a method was called, ever: it only grows.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Complaints are what it was asked that Slack does not document.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.complaints)
}

// methods are Slack's, with the arguments that each takes.
var methods = map[string]struct {
	takes  []string
	answer func(*Server, *http.Request) (map[string]any, string)
}{
	"auth.test":             {[]string{"token"}, (*Server).auth},
	"conversations.list":    {[]string{"token", "cursor", "exclude_archived", "limit", "team_id", "types"}, (*Server).list},
	"conversations.history": {[]string{"token", "channel", "cursor", "include_all_metadata", "inclusive", "latest", "limit", "oldest"}, (*Server).history},
	"conversations.replies": {[]string{"token", "channel", "ts", "cursor", "include_all_metadata", "inclusive", "latest", "limit", "oldest"}, (*Server).replies},
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, name string, m struct {
	takes  []string
	answer func(*Server, *http.Request) (map[string]any, string)
}) {
	s.mu.Lock()
	s.calls[name]++
	s.mu.Unlock()
	if s.Before != nil && s.Before(w, name, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
		s.complaints = append(s.complaints, name+": it is no form")
	}
	for key, values := range r.Form {
		if !slices.Contains(m.takes, key) || len(values) != 1 {
			s.complaints = append(s.complaints, fmt.Sprintf("%s has no argument %s", name, key))
		}
	}
	answer, wrong := map[string]any(nil), "invalid_auth"
	if r.Form.Get("token") == Token {
		answer, wrong = m.answer(s, r)
	}
	if wrong != "" {
		answer = map[string]any{"ok": false, "error": wrong}
	} else {
		answer["ok"] = true
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	json.NewEncoder(w).Encode(answer) //nolint:errcheck // who asked has gone
}

func (s *Server) auth(*http.Request) (map[string]any, string) {
	return map[string]any{"url": "https://acme.slack.com/", "team": "Acme", "user": "unpend", "team_id": "T0TEAM", "user_id": "U0UNPEND", "bot_id": "B0UNPEND", "is_enterprise_install": false}, ""
}

func (s *Server) list(r *http.Request) (map[string]any, string) {
	var all []any
	for _, c := range s.channels {
		kind := "public_channel"
		if c.Private {
			kind = "private_channel"
		}
		if !slices.Contains(strings.Split(r.Form.Get("types"), ","), kind) {
			continue
		}
		all = append(all, map[string]any{"id": c.ID, "name": c.Name, "is_channel": !c.Private, "is_group": c.Private, "is_im": false, "created": c.Created, "creator": "U1", "is_archived": c.Archived,
			"is_general": false, "unlinked": 0, "name_normalized": c.Name, "is_shared": false, "is_ext_shared": false, "is_org_shared": false, "pending_shared": []any{}, "is_pending_ext_shared": false,
			"is_member": !c.Outside, "is_private": c.Private, "is_mpim": false, "updated": c.Created * 1000, "topic": map[string]any{"value": "", "creator": "", "last_set": 0},
			"purpose": map[string]any{"value": "", "creator": "", "last_set": 0}, "previous_names": []any{}, "num_members": 4})
	}
	page, next, wrong := s.page(r, all, 1000)
	return map[string]any{"channels": page, "response_metadata": map[string]any{"next_cursor": next}}, wrong
}

// readable is the name of an error where a channel cannot be read.
func (s *Server) readable(id string) string {
	at := slices.IndexFunc(s.channels, func(c Channel) bool { return c.ID == id })
	switch {
	case at < 0:
		return "channel_not_found"
	case s.channels[at].Outside:
		return "not_in_channel"
	}
	return ""
}

// history has the messages that begin something, the newest first.
func (s *Server) history(r *http.Request) (map[string]any, string) {
	id := r.Form.Get("channel")
	if wrong := s.readable(id); wrong != "" {
		return nil, wrong
	}
	var all []any
	for _, m := range s.sorted(id, true) {
		ts := m.word("ts")
		if root := m.word("thread_ts"); root != "" && root != ts && m.word("subtype") != "thread_broadcast" {
			continue
		}
		if s.outside(r, ts) {
			continue
		}
		all = append(all, s.shown(id, m))
	}
	page, next, wrong := s.page(r, all, 999)
	out := map[string]any{"messages": page, "has_more": next != "", "pin_count": 0, "channel_actions_ts": nil, "channel_actions_count": 0}
	if next != "" {
		out["response_metadata"] = map[string]any{"next_cursor": next}
	}
	return out, wrong
}

// outside is whether a time stamp lies outside of what was asked for.
func (s *Server) outside(r *http.Request, ts string) bool {
	oldest, latest, inclusive := r.Form.Get("oldest"), r.Form.Get("latest"), r.Form.Get("inclusive") == "1"
	for _, at := range []string{oldest, latest} {
		if _, err := strconv.ParseFloat(at, 64); at != "" && err != nil {
			s.complaints = append(s.complaints, "no time stamp: "+at)
		}
	}
	return oldest != "" && (number(ts) < number(oldest) || !inclusive && number(ts) == number(oldest)) ||
		latest != "" && (number(ts) > number(latest) || !inclusive && number(ts) == number(latest))
}

// number is a time stamp in microseconds.
func number(ts string) int64 {
	seconds, rest, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(seconds+(rest + "000000")[:6], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// replies are a thread, the oldest first, or a message without answers.
func (s *Server) replies(r *http.Request) (map[string]any, string) {
	id, root := r.Form.Get("channel"), r.Form.Get("ts")
	if wrong := s.readable(id); wrong != "" {
		return nil, wrong
	}
	var all []any
	for _, m := range s.sorted(id, false) {
		if m.word("ts") == root || m.word("thread_ts") == root {
			all = append(all, s.shown(id, m))
		}
	}
	if len(all) == 0 {
		return nil, "thread_not_found"
	}
	page, next, wrong := s.page(r, all, 1000)
	return map[string]any{"messages": page, "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next}}, wrong
}

func (s *Server) sorted(channel string, newest bool) []Message {
	all := slices.Clone(s.messages[channel])
	slices.SortFunc(all, func(a, b Message) int {
		if newest {
			a, b = b, a
		}
		return strings.Compare(a.word("ts"), b.word("ts"))
	})
	return all
}

// shown is a message with what Slack says of its answers and of its looks.
func (s *Server) shown(channel string, m Message) Message {
	out := Message{"type": "message", "team": "T0TEAM", "client_msg_id": "1-2-3"}
	maps.Copy(out, m)
	if text := m.word("text"); text != "" && len(text) < 1000 {
		out["blocks"] = []any{map[string]any{"type": "rich_text", "block_id": "b", "elements": []any{map[string]any{"type": "rich_text_section", "elements": []any{map[string]any{"type": "text", "text": text}}}}},
			map[string]any{"type": "not_known_yet", "block_id": "c"}}
	}
	count, latest, ts := 0, "", m.word("ts")
	for _, other := range s.messages[channel] {
		if other.word("thread_ts") == ts && other.word("ts") != ts {
			count, latest = count+1, max(latest, other.word("ts"))
		}
	}
	if count > 0 {
		out["thread_ts"], out["reply_count"], out["reply_users_count"], out["latest_reply"], out["reply_users"], out["is_locked"], out["subscribed"] = ts, count, 1, latest, []any{"U2"}, false, false
	}
	return out
}

// page is a part of a list, and the cursor of the next.
func (s *Server) page(r *http.Request, all []any, most int) ([]any, string, string) {
	limit, err := strconv.Atoi(r.Form.Get("limit"))
	if err != nil || limit < 1 || limit > most {
		s.complaints = append(s.complaints, fmt.Sprintf("%s: limit=%s", r.URL.Path, r.Form.Get("limit")))
		limit = 100
	}
	if s.Most > 0 {
		limit = min(limit, s.Most)
	}
	from := 0
	if cursor := r.Form.Get("cursor"); cursor != "" {
		at, ok := strings.CutPrefix(cursor, "next:")
		if from, err = strconv.Atoi(at); !ok || err != nil || from > len(all) {
			return nil, "", "invalid_cursor"
		}
	}
	to := min(len(all), from+limit)
	if to == len(all) {
		return append([]any{}, all[from:to]...), "", ""
	}
	return append([]any{}, all[from:to]...), "next:" + strconv.Itoa(to), ""
}
