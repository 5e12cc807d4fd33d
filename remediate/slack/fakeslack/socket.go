package fakeslack

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// The app's other token, its workspace, and the secret that it signs requests with.
const (
	AppToken = "xapp-0-secretsecret" //nolint:gosec // of nothing
	Team     = "T0TEAM"
	Secret   = "5ecre75ecre75ecre7" //nolint:gosec // of nothing
)

// User is somebody that Slack knows.
type User struct {
	ID, Team string
	Guest    bool
}

// Whisper is what one person alone was told.
type Whisper struct{ Channel, User, Text string }

// socket is what Slack has besides messages: who is there, and the connections by which it
// sends what they do.
type socket struct {
	users    map[string]User
	whispers []Whisper
	lines    []*line
	acks     map[string]chan struct{}
	sent     int
	alive    sync.WaitGroup
}

// line is one connection of Socket Mode.
type line struct {
	conn  *websocket.Conn
	write sync.Mutex
}

func (l *line) send(v any) error {
	l.write.Lock()
	defer l.write.Unlock()
	return l.conn.WriteJSON(v)
}

func (s *Server) hears(mux *http.ServeMux) {
	s.users, s.acks = map[string]User{}, map[string]chan struct{}{}
	mux.HandleFunc("/api/apps.connections.open", s.open)
	mux.HandleFunc("/link", s.link)
	mux.HandleFunc("/reply", s.reply)
	mux.HandleFunc("/api/users.info", s.method(s.info))
	mux.HandleFunc("/api/chat.postEphemeral", s.method(func(_ http.ResponseWriter, r *http.Request) any {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.whispers = append(s.whispers, Whisper{r.FormValue("channel"), r.FormValue("user"), r.FormValue("text")})
		s.mentions = append(s.mentions, calls("", r.FormValue("text"))...)
		return map[string]any{"ok": true, "message_ts": "1.1"}
	}))
}

// Join has people in the workspace, or known to it.
func (s *Server) Join(users ...User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range users {
		s.users[u.ID] = u
	}
}

// Whispers are what single people were told, the oldest first.
func (s *Server) Whispers() []Whisper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.whispers)
}

// Lines counts the open connections.
func (s *Server) Lines() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines)
}

func (s *Server) info(_ http.ResponseWriter, r *http.Request) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[r.FormValue("user")]
	if !ok {
		return failure("user_not_found")
	}
	return map[string]any{"ok": true, "user": map[string]any{"id": u.ID, "team_id": u.Team, "is_restricted": u.Guest}}
}

// open is apps.connections.open, by the app's token alone. Behind a proxy it is found under
// Slack's name.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Header.Get("Authorization") != "Bearer "+AppToken {
		fmt.Fprint(w, `{"ok":false,"error":"invalid_auth"}`)
		return
	}
	scheme := "ws"
	if r.Host == "slack.com" {
		scheme = "wss"
	}
	fmt.Fprintf(w, `{"ok":true,"url":"%s://%s/link"}`, scheme, r.Host)
}

// link is a connection until either side hangs up.
func (s *Server) link(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	l := &line{conn: conn}
	s.mu.Lock()
	s.lines = append(s.lines, l)
	s.alive.Add(2)
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer s.alive.Done()
		l.pings(done)
	}()
	defer s.alive.Done()
	defer func() {
		close(done)
		conn.Close()
		s.mu.Lock()
		s.lines = slices.DeleteFunc(s.lines, func(other *line) bool { return other == l })
		s.mu.Unlock()
	}()
	if l.send(map[string]any{"type": "hello", "num_connections": 1}) != nil {
		return
	}
	for {
		var ack struct {
			Envelope string `json:"envelope_id"`
		}
		if conn.ReadJSON(&ack) != nil {
			return
		}
		s.mu.Lock()
		if waits := s.acks[ack.Envelope]; waits != nil {
			close(waits)
			delete(s.acks, ack.Envelope)
		}
		s.mu.Unlock()
	}
}

// pings are what a client takes the connection to be alive by.
func (l *line) pings(done chan struct{}) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		l.write.Lock()
		err := l.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		l.write.Unlock()
		if err != nil {
			return
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

func (s *Server) hangUp() {
	s.mu.Lock()
	for _, l := range s.lines {
		l.conn.Close()
	}
	s.mu.Unlock()
	s.alive.Wait()
}

// reply is where commands are answered.
func (s *Server) reply(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Type string `json:"response_type"`
		Text string `json:"text"`
	}
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Type != "ephemeral" {
		s.mentions = append(s.mentions, "everybody sees it: "+m.Text)
	}
	s.mentions = append(s.mentions, calls("", m.Text)...)
	s.whispers = append(s.whispers, Whisper{User: r.URL.Query().Get("user"), Text: m.Text})
	fmt.Fprint(w, "ok")
}

// Click is what somebody does with a button of a message; the error says that nobody
// acknowledged it in the 3 s that Slack waits.
func (s *Server) Click(who User, m Message, action string) error {
	return s.Send("interactive", Clicked(who, Channel, m.TS, action, m.Value(action)))
}

// Clicked is what Slack sends of a click.
func Clicked(who User, channel, ts, action, value string) map[string]any {
	return map[string]any{"type": "block_actions", "team": map[string]any{"id": who.Team}, "user": map[string]any{"id": who.ID, "team_id": who.Team}, "channel": map[string]any{"id": channel},
		"container": map[string]any{"type": "message", "message_ts": ts, "channel_id": channel}, "actions": []any{map[string]any{"type": "button", "action_id": action, "block_id": "b", "value": value}}}
}

// Ask is what somebody writes after /unpend.
func (s *Server) Ask(who User, text string) error {
	return s.Send("slash_commands", map[string]any{"command": "/unpend", "text": text, "user_id": who.ID, "team_id": who.Team, "channel_id": "C0ELSE", "response_url": s.http.URL + "/reply?user=" + who.ID})
}

// Mention is what somebody writes to the bot in a channel; Slack sends it so many times.
func (s *Server) Mention(who User, text string, times int) error {
	s.mu.Lock()
	s.sent++
	id := fmt.Sprint("Ev", s.sent)
	s.mu.Unlock()
	var all error
	for range times {
		all = errors.Join(all, s.Send("events_api", map[string]any{"type": "event_callback", "team_id": who.Team, "event_id": id,
			"event": map[string]any{"type": "app_mention", "user": who.ID, "channel": Channel, "text": "<@U0UNPEND> " + text, "ts": "2.2"}}))
	}
	return all
}

// Send sends a payload by one of the connections, and waits until it is acknowledged.
func (s *Server) Send(kind string, payload any) error {
	s.mu.Lock()
	if len(s.lines) == 0 {
		s.mu.Unlock()
		return errors.New("nobody is connected")
	}
	s.sent++
	id, acked := fmt.Sprint("envelope-", s.sent), make(chan struct{})
	s.acks[id] = acked
	l := s.lines[s.sent%len(s.lines)]
	s.mu.Unlock()
	if err := l.send(map[string]any{"type": kind, "envelope_id": id, "payload": payload, "accepts_response_payload": kind != "events_api"}); err != nil {
		return err
	}
	select {
	case <-acked:
		return nil
	case <-time.After(3 * time.Second):
		return errors.New("nobody acknowledged it in 3 s")
	}
}

// Value is what a button of a message carries; empty where there is no such button.
func (m Message) Value(action string) string {
	var all []map[string]any
	if json.Unmarshal(m.Blocks, &all) != nil {
		return ""
	}
	for _, b := range all {
		for _, e := range list(b["elements"]) {
			if o := object(e); o["action_id"] == action {
				v, _ := o["value"].(string)
				return v
			}
		}
	}
	return ""
}
