// Package jiratest is the part of Jira that is read, in this process, for tests: search, one
// ticket and its comments, on Cloud (version 3) or Data Center (version 2), with the
// arguments, the shapes and the pages that Atlassian documents
// (https://developer.atlassian.com/cloud/jira/platform/rest/v3/ and
// https://developer.atlassian.com/server/jira/platform/rest/). What it is asked that Atlassian
// does not document is a complaint.
package jiratest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Who may ask.
const (
	Token = "ATATT3xFfGF0-secretsecret" //nolint:gosec // of nothing
	User  = "bot@example.com"
)

// Issue is a ticket. Body and Comments are wiki markup; on Cloud they are given as ADF.
type Issue struct {
	Key, Summary, Body, Resolution string
	Created, Updated               time.Time
	Comments                       []string
	Restricted                     bool
	Odd                            bool // its summary is no text
}

// Server is Jira's API.
type Server struct {
	// Most is how many tickets an answer has at most; 0: as many as are asked for.
	Most int
	// Inline is how many comments a search gives of a ticket (20 on Cloud); 0: all.
	Inline int
	// Before sees a request before it is answered; true: it has answered. nil: nobody does.
	Before func(w http.ResponseWriter, r *http.Request) bool
	// Hidden are tickets that search does not find yet.
	Hidden []string

	cloud bool
	now   func() time.Time
	http  *httptest.Server

	mu         sync.Mutex
	issues     []Issue
	calls      map[string]int
	tokens     map[string]string // the query of each
	moved      map[string]string
	complaints []string
}

// New starts one, which is closed by Close.
func New(now func() time.Time, cloud bool) *Server {
	s := &Server{cloud: cloud, now: now, calls: map[string]int{}, tokens: map[string]string{}, moved: map[string]string{}}
	mux := http.NewServeMux()
	base := "/rest/api/2"
	if cloud {
		base = "/rest/api/3"
		mux.HandleFunc(base+"/search", func(w http.ResponseWriter, _ *http.Request) {
			fail(w, http.StatusGone, "The requested API has been removed. Please migrate to the /rest/api/3/search/jql API.")
		})
		mux.HandleFunc("POST "+base+"/search/jql", s.method("search", s.search))
		mux.HandleFunc("POST "+base+"/search/approximate-count", s.method("count", s.count))
	} else {
		mux.HandleFunc("POST "+base+"/search", s.method("search", s.search))
	}
	mux.HandleFunc("GET "+base+"/issue/{key}", s.method("issue", s.issue))
	mux.HandleFunc("GET "+base+"/issue/{key}/comment", s.method("comment", s.comments))
	s.http = httptest.NewServer(mux)
	return s
}

// Close ends it.
func (s *Server) Close() { s.http.CloseClientConnections(); s.http.Close() }

// URL of the site.
func (s *Server) URL() string { return s.http.URL }

// Client asks it, and follows no redirect.
func (s *Server) Client() *http.Client {
	return &http.Client{Transport: s.http.Client().Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Put has tickets there; one with a key that is there replaces it.
func (s *Server) Put(all ...Issue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range all {
		s.drop(i.Key)
		s.issues = append(s.issues, i)
	}
}

// Delete takes a ticket out.
func (s *Server) Delete(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(key)
}

// Move gives a ticket another key; by the old one it is found still.
func (s *Server) Move(key, to string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.issues {
		if s.issues[n].Key == key {
			s.issues[n].Key, s.issues[n].Updated, s.moved[key] = to, at, to
		}
	}
}

func (s *Server) drop(key string) {
	s.issues = slices.DeleteFunc(s.issues, func(i Issue) bool { return i.Key == key })
}

// Calls is how often something was asked, ever: search, count, issue or comment. It only grows.
func (s *Server) Calls(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[what]
}

// Expire forgets where searches were.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Complaints are what it was asked that Atlassian does not document.
func (s *Server) Complaints() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.complaints)
}

func fail(w http.ResponseWriter, code int, says string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(map[string]any{"errorMessages": []string{says}, "errors": map[string]string{}}) //nolint:errcheck // who asked has gone
}

// failure is an answer that is no success.
type failure struct {
	code int
	says string
}

func (s *Server) method(name string, do func(*http.Request) (any, *failure)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls[name]++
		s.mu.Unlock()
		if s.Before != nil && s.Before(w, r) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		user, token, basic := r.BasicAuth()
		if s.cloud && (!basic || user != User || token != Token) || !s.cloud && r.Header.Get("Authorization") != "Bearer "+Token {
			fail(w, http.StatusUnauthorized, "Client must be authenticated to access this resource.")
			return
		}
		out, wrong := do(r)
		if wrong != nil {
			fail(w, wrong.code, wrong.says)
			return
		}
		w.Header().Set("Content-Type", "application/json;charset=UTF-8")
		json.NewEncoder(w).Encode(out) //nolint:errcheck // who asked has gone
	}
}

func (s *Server) complain(format string, of ...any) {
	s.complaints = append(s.complaints, fmt.Sprintf(format, of...))
}

// body reads what is sent, and complains of what is not documented there.
func (s *Server) body(r *http.Request, takes ...string) (jql, token string, start, most int, fields []string) {
	var sent map[string]json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || r.Header.Get("Content-Type") != "application/json" {
		s.complain("%s: no JSON: %v", r.URL.Path, err)
	}
	for _, key := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains(takes, key) {
			s.complain("%s has no field %s", r.URL.Path, key)
		}
	}
	most = 50
	for key, into := range map[string]any{"jql": &jql, "nextPageToken": &token, "startAt": &start, "maxResults": &most, "fields": &fields} {
		if v := sent[key]; v != nil && json.Unmarshal(v, into) != nil {
			s.complain("%s: %s is %s", r.URL.Path, key, v)
		}
	}
	return jql, token, start, most, fields
}

// asked is the only kind of query that it knows.
var asked = regexp.MustCompile(`^project = "([A-Z][A-Z0-9_]*)"(?: AND updated >= -(\d+)m)? ORDER BY key ASC$`)

// found are the tickets of a query, in its order.
func (s *Server) found(jql string) ([]Issue, *failure) {
	m := asked.FindStringSubmatch(jql)
	if m == nil {
		return nil, &failure{http.StatusBadRequest, "Error in the JQL Query: " + jql}
	}
	since := time.Time{}
	if m[2] != "" {
		minutes, err := strconv.Atoi(m[2])
		if err != nil {
			s.complain("%s", jql)
		}
		since = s.now().Add(-time.Duration(minutes) * time.Minute)
	}
	var out []Issue
	known := false
	for _, i := range s.issues {
		project, _, _ := strings.Cut(i.Key, "-")
		known = known || project == m[1]
		if project == m[1] && !i.Updated.Before(since) && !slices.Contains(s.Hidden, i.Key) {
			out = append(out, i)
		}
	}
	if !known {
		return nil, &failure{http.StatusBadRequest, fmt.Sprintf("The value '%s' does not exist for the field 'project'.", m[1])}
	}
	slices.SortFunc(out, func(a, b Issue) int { return number(a.Key) - number(b.Key) })
	return out, nil
}

func number(key string) int {
	_, digits, _ := strings.Cut(key, "-")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

func (s *Server) search(r *http.Request) (any, *failure) {
	takes := []string{"jql", "startAt", "maxResults", "fields", "validateQuery", "expand"}
	if s.cloud {
		takes = []string{"jql", "nextPageToken", "maxResults", "fields", "expand", "properties", "fieldsByKeys", "failFast", "reconcileIssues"}
	}
	jql, token, start, most, fields := s.body(r, takes...)
	all, wrong := s.found(jql)
	if wrong != nil {
		return nil, wrong
	}
	if token != "" {
		if s.tokens[token] != jql {
			return nil, &failure{http.StatusBadRequest, "The provided next page token is invalid or expired."}
		}
		start = number(token)
	}
	if s.Most > 0 {
		most = min(most, s.Most)
	}
	start = min(start, len(all))
	end := min(len(all), start+most)
	issues := []any{}
	for _, i := range all[start:end] {
		issues = append(issues, s.shown(i, fields, true))
	}
	if !s.cloud {
		return map[string]any{"expand": "schema,names", "startAt": start, "maxResults": most, "total": len(all), "issues": issues}, nil
	}
	out := map[string]any{"issues": issues, "isLast": end == len(all)}
	if end < len(all) {
		next := fmt.Sprintf("token-%d", end)
		s.tokens[next] = jql
		out["nextPageToken"] = next
	}
	return out, nil
}

func (s *Server) count(r *http.Request) (any, *failure) {
	jql, _, _, _, _ := s.body(r, "jql")
	all, wrong := s.found(jql)
	return map[string]any{"count": len(all)}, wrong
}

func (s *Server) issue(r *http.Request) (any, *failure) {
	i, ok := s.at(r.PathValue("key"))
	if !ok {
		return nil, &failure{http.StatusNotFound, "Issue does not exist or you do not have permission to see it."}
	}
	return s.shown(i, strings.Split(r.URL.Query().Get("fields"), ","), false), nil
}

func (s *Server) at(key string) (Issue, bool) {
	for _, i := range s.issues {
		if i.Key == key || i.Key == s.moved[key] {
			return i, true
		}
	}
	return Issue{}, false
}

func (s *Server) comments(r *http.Request) (any, *failure) {
	i, ok := s.at(r.PathValue("key"))
	if !ok {
		return nil, &failure{http.StatusNotFound, "Issue does not exist or you do not have permission to see it."}
	}
	q := r.URL.Query()
	for key := range q {
		if !slices.Contains([]string{"startAt", "maxResults", "orderBy", "expand"}, key) {
			s.complain("a comment has no argument %s", key)
		}
	}
	start, err := strconv.Atoi(q.Get("startAt"))
	if err != nil {
		s.complain("startAt=%s", q.Get("startAt"))
	}
	most, err := strconv.Atoi(q.Get("maxResults"))
	if err != nil || most > 5000 {
		s.complain("maxResults=%s", q.Get("maxResults"))
	}
	start = min(start, len(i.Comments))
	return map[string]any{"startAt": start, "maxResults": most, "total": len(i.Comments), "comments": s.said(i, start, min(len(i.Comments), start+most))}, nil
}

func (s *Server) said(i Issue, from, to int) []any {
	out := []any{}
	for n, c := range i.Comments[from:to] {
		out = append(out, map[string]any{"self": s.http.URL + "/rest/api/3/issue/1/comment/1", "id": strconv.Itoa(from + n), "author": s.person("ada"), "updateAuthor": s.person("ada"), "body": s.text(c),
			"created": stamp(i.Created), "updated": stamp(i.Updated), "jsdPublic": true})
	}
	return out
}

func (s *Server) text(body string) any {
	if !s.cloud {
		return body
	}
	return map[string]any{"type": "doc", "version": 1, "content": []any{map[string]any{"type": "paragraph", "content": []any{map[string]any{"type": "text", "text": body}}}}}
}

func (s *Server) person(name string) map[string]any {
	if s.cloud {
		return map[string]any{"self": s.http.URL + "/rest/api/3/user", "accountId": "5b10" + name, "displayName": "Ada Lovelace", "active": true, "timeZone": "Australia/Sydney", "accountType": "atlassian"}
	}
	return map[string]any{"self": s.http.URL + "/rest/api/2/user", "name": name, "key": "JIRAUSER-" + name, "displayName": "Ada Lovelace", "emailAddress": "ada@example.com", "active": false, "timeZone": "Australia/Sydney"}
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000-0700") }

// shown is a ticket with the fields that were asked for.
func (s *Server) shown(i Issue, fields []string, search bool) any {
	project, _, _ := strings.Cut(i.Key, "-")
	inline := len(i.Comments)
	if search && s.Inline > 0 {
		inline = min(inline, s.Inline)
	}
	all := map[string]any{"summary": i.Summary, "description": nil, "created": stamp(i.Created), "updated": stamp(i.Updated), "reporter": s.person("ada"), "project": map[string]any{"id": "1", "key": project, "name": "The " + project, "projectTypeKey": "software"},
		"resolution": nil, "status": map[string]any{"name": "To Do", "id": "1", "statusCategory": map[string]any{"id": 2, "key": "new", "name": "To Do"}}, "security": nil,
		"comment": map[string]any{"comments": s.said(i, 0, inline), "self": s.http.URL, "maxResults": inline, "total": len(i.Comments), "startAt": 0}}
	if i.Body != "" {
		all["description"] = s.text(i.Body)
	}
	if i.Resolution != "" {
		all["resolution"] = map[string]any{"id": "1", "name": i.Resolution, "description": ""}
		all["status"] = map[string]any{"name": "Done", "id": "3", "statusCategory": map[string]any{"id": 3, "key": "done", "name": "Done"}}
	}
	if i.Restricted {
		all["security"] = map[string]any{"id": "1", "name": "Staff"}
	}
	if i.Odd {
		all["summary"] = []any{1}
	}
	out := map[string]any{"id": strconv.Itoa(10000 + number(i.Key)), "key": i.Key, "self": fmt.Sprintf("%s/rest/api/%s/issue/%d", s.http.URL, map[bool]string{true: "3", false: "2"}[s.cloud], 10000+number(i.Key)), "expand": "renderedFields"}
	if s.cloud && len(fields) == 0 {
		return map[string]any{"id": out["id"]}
	}
	given := map[string]any{}
	for _, f := range fields {
		v, ok := all[f]
		if !ok {
			s.complain("there is no field %s", f)
		}
		given[f] = v
	}
	out["fields"] = given
	return out
}
