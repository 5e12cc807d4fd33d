// Package fakejira is Jira in this process, for tests: one project, on Cloud or on Data
// Center, with the shapes, the limits and the errors of the real one, and a search that runs
// behind. It is written from Atlassian's documentation, not from the adapter.
package fakejira

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// What the site has.
const (
	Token   = "ATATT3xFfGF0-secretsecret" //nolint:gosec // of nothing
	User    = "bot@example.com"
	Project = "OPS"
	Type    = "Task"
)

// Server is Jira's API. Its switches are set before it is spoken to.
type Server struct {
	// Behind is how many searches a new ticket is not found by.
	Behind int
	// NoWay has the workflow lead nowhere that is done.
	NoWay bool
	// AsksResolution has the way to Done want a resolution.
	AsksResolution bool
	// Watch sees each request before it is answered; its error is a complaint.
	Watch func(*http.Request) error

	cloud bool
	now   func() time.Time
	http  *httptest.Server

	mu      sync.Mutex
	fields  []Field
	faults  []Fault
	issues  []*Issue
	writes  int
	number  int
	refused []string
}

// New starts one, which is closed by Close.
func New(now func() time.Time, cloud bool) *Server {
	s := &Server{now: now, cloud: cloud, Behind: 2, fields: screen()}
	mux := http.NewServeMux()
	base := "/rest/api/2"
	if cloud {
		base = "/rest/api/3"
		mux.HandleFunc("/rest/api/3/search", func(w http.ResponseWriter, _ *http.Request) {
			s.fail(w, http.StatusGone, "The requested API has been removed. Please migrate to the /rest/api/3/search/jql API.", nil)
		})
		mux.HandleFunc("POST "+base+"/search/jql", s.method(s.search))
	} else {
		mux.HandleFunc("POST "+base+"/search", s.method(s.search))
	}
	for pattern, do := range map[string]method{
		"GET /myself": s.myself, "GET /issue/createmeta/{project}/issuetypes": s.types, "GET /issue/createmeta/{project}/issuetypes/{type}": s.screenOf, "GET /project/{project}/statuses": s.statuses,
		"GET /issue/{id}": s.read, "GET /issue/{id}/transitions": s.ways, "GET /issue/{id}/comment": s.comments,
	} {
		verb, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(verb+" "+base+path, s.method(do))
	}
	for pattern, do := range map[string]method{
		"POST /issue": s.create, "PUT /issue/{id}": s.edit, "POST /issue/{id}/transitions": s.move, "POST /issue/{id}/comment": s.comment, "PUT /issue/{id}/comment/{comment}": s.comment, "POST /issue/{id}/remotelink": s.link,
	} {
		verb, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(verb+" "+base+path, s.writing(s.method(do)))
	}
	s.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.watched(r)
		mux.ServeHTTP(w, r)
	}))
	return s
}

// watched has Watch see a request, and leaves it as it was.
func (s *Server) watched(r *http.Request) {
	if s.Watch == nil {
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender has gone
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := s.Watch(r); err != nil {
		s.complain("%s %s: %v", r.Method, r.URL.Path, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
}

// Close ends it.
func (s *Server) Close() { s.http.CloseClientConnections(); s.http.Close() }

// URL of the site.
func (s *Server) URL() string { return s.http.URL }

// Writes counts the requests that would change something, those that failed too.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// Issues are the tickets, the oldest first.
func (s *Server) Issues() []Issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Issue
	for _, i := range s.issues {
		c := *i
		c.Comments, c.Links = slices.Clone(i.Comments), slices.Clone(i.Links)
		out = append(out, c)
	}
	return out
}

// Change is what a person does to a ticket.
func (s *Server) Change(key string, do func(*Issue)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.issues {
		if i.Key == key {
			do(i)
		}
	}
}

// Delete is what a person does.
func (s *Server) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issues = slices.DeleteFunc(s.issues, func(i *Issue) bool { return i.Key == key })
}

// Require has the screen for a new ticket want a field.
func (s *Server) Require(id, name string, allowed ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fields = append(s.fields, Field{ID: id, Name: name, Required: true, Allowed: allowed})
}

// Optional has that screen want a field no more.
func (s *Server) Optional(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.fields {
		if s.fields[i].ID == id {
			s.fields[i].Required = false
		}
	}
}

// Complaints are what the real Jira would not have taken, or would have shown as something
// else than text.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refused)
}

func (s *Server) complain(format string, of ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, fmt.Sprintf(format, of...))
}

// method answers a request with a status and a body, or with a refusal.
type method func(r *http.Request, body map[string]any) (int, any)

// refusal is a 4xx: what is wrong, and what is wrong with which field.
type refusal struct {
	says   string
	fields map[string]string
}

func (s *Server) method(do method) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.known(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="`+r.Header.Get("Authorization")+`"`)
			s.fail(w, http.StatusUnauthorized, "Client must be authenticated to access this resource.", nil)
			return
		}
		var body map[string]any
		if r.Method != http.MethodGet {
			if err := json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" {
				s.complain("%s %s has no JSON", r.Method, r.URL.Path)
				s.fail(w, http.StatusBadRequest, "Unexpected end of input", nil)
				return
			}
		}
		s.mu.Lock()
		code, answer := do(r, body)
		if no, bad := answer.(refusal); bad {
			if code == http.StatusBadRequest {
				s.refused = append(s.refused, fmt.Sprintf("%s %s: %s %v", r.Method, r.URL.Path, no.says, no.fields))
			}
			s.mu.Unlock()
			s.fail(w, code, no.says, no.fields)
			return
		}
		text, err := json.Marshal(answer)
		s.mu.Unlock()
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json;charset=UTF-8")
		w.WriteHeader(code)
		if code != http.StatusNoContent {
			w.Write(text) //nolint:errcheck // who asked has gone
		}
	}
}

func (s *Server) known(r *http.Request) bool {
	if s.cloud {
		user, token, ok := r.BasicAuth()
		return ok && user == User && token == Token
	}
	return r.Header.Get("Authorization") == "Bearer "+Token
}

func (s *Server) fail(w http.ResponseWriter, code int, says string, fields map[string]string) {
	if fields == nil {
		fields = map[string]string{}
	}
	messages := []string{}
	if says != "" {
		messages = append(messages, says)
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(map[string]any{"errorMessages": messages, "errors": fields}) //nolint:errcheck // who asked has gone
}
