package fakejira

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Issue is a ticket.
type Issue struct {
	ID, Key  string
	Fields   map[string]any
	Status   string
	Created  time.Time
	Moved    time.Time // when its status was another last
	Edits    int
	Comments []Comment
	Links    []Link
	hidden   int // searches that do not find it
}

// Comment is one of a ticket.
type Comment struct {
	ID, Author string
	Body       any
	Edits      int
}

// Link is a remote link.
type Link struct {
	GlobalID string
	Object   map[string]any
	Edits    int
}

// Us is the author of what is written here.
const Us = "712020:bot"

// categories of the statuses: https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-workflow-status-categories/
var categories = map[string]string{"To Do": "new", "In Progress": "indeterminate", "Done": "done", "Won't Do": "done"}

// ways lead from a status to others.
var ways = map[string][]string{"To Do": {"In Progress", "Done", "Won't Do"}, "In Progress": {"To Do", "Done", "Won't Do"}, "Done": {"To Do"}, "Won't Do": {"To Do"}}

func status(name string) map[string]any {
	return map[string]any{"name": name, "statusCategory": map[string]any{"key": categories[name]}}
}

var gone = refusal{says: "Issue does not exist or you do not have permission to see it."}

func (s *Server) issue(r *http.Request) *Issue {
	id := r.PathValue("id")
	i := slices.IndexFunc(s.issues, func(i *Issue) bool { return i.ID == id || i.Key == id })
	if i < 0 {
		return nil
	}
	return s.issues[i]
}

func (s *Server) create(_ *http.Request, body map[string]any) (int, any) {
	fields := object(body["fields"])
	if wrong := s.wrong(fields, true); len(wrong) > 0 {
		return http.StatusBadRequest, refusal{fields: wrong}
	}
	s.number++
	now := s.now()
	i := &Issue{ID: strconv.Itoa(10000 + s.number), Key: fmt.Sprintf("%s-%d", Project, s.number), Fields: fields, Status: "To Do", Created: now, Moved: now, hidden: s.Behind}
	s.issues = append(s.issues, i)
	return http.StatusCreated, map[string]any{"id": i.ID, "key": i.Key, "self": s.http.URL + "/rest/api/2/issue/" + i.ID}
}

func (s *Server) edit(r *http.Request, body map[string]any) (int, any) {
	i := s.issue(r)
	if i == nil {
		return http.StatusNotFound, gone
	}
	fields := object(body["fields"])
	if wrong := s.wrong(fields, false); len(wrong) > 0 {
		return http.StatusBadRequest, refusal{fields: wrong}
	}
	maps.Copy(i.Fields, fields)
	i.Edits++
	return http.StatusNoContent, nil
}

func (s *Server) read(r *http.Request, _ map[string]any) (int, any) {
	i := s.issue(r)
	if i == nil {
		return http.StatusNotFound, gone
	}
	return http.StatusOK, s.shown(i, strings.Split(r.URL.Query().Get("fields"), ","))
}

// shown is a ticket with the fields that were asked for.
func (s *Server) shown(i *Issue, fields []string) map[string]any {
	const layout = "2006-01-02T15:04:05.000-0700"
	all := map[string]any{"status": status(i.Status), "created": i.Created.Format(layout), "updated": i.Moved.Format(layout), "statuscategorychangedate": i.Moved.Format(layout), "resolutiondate": nil}
	got := map[string]any{"id": i.ID, "key": i.Key}
	if len(fields) > 0 || !s.cloud { // Cloud gives ids alone unless it is asked
		some := map[string]any{}
		for _, f := range fields {
			if v, there := all[f]; there {
				some[f] = v
			}
		}
		got["fields"] = some
	}
	return got
}

// asked is the one query that is understood here.
var asked = regexp.MustCompile(`^project = "([^"\\]+)" AND labels = "([^"\\]+)" ORDER BY created DESC$`)

func (s *Server) search(_ *http.Request, body map[string]any) (int, any) {
	jql, _ := body["jql"].(string) //nolint:errcheck // the empty text is refused
	m := asked.FindStringSubmatch(jql)
	if m == nil || m[1] != Project {
		return http.StatusBadRequest, refusal{says: "Error in the JQL Query: " + jql}
	}
	var fields []string
	for _, f := range list(body["fields"]) {
		fields = append(fields, fmt.Sprint(f))
	}
	issues := []any{}
	for _, i := range slices.Backward(s.issues) {
		switch {
		case !slices.Contains(list(i.Fields["labels"]), any(m[2])):
		case i.hidden > 0:
			i.hidden--
		default:
			issues = append(issues, s.shown(i, fields))
		}
	}
	if s.cloud {
		return http.StatusOK, map[string]any{"issues": issues, "isLast": true}
	}
	return http.StatusOK, map[string]any{"issues": issues, "startAt": 0, "maxResults": body["maxResults"], "total": len(issues)}
}

func (s *Server) ways(r *http.Request, _ map[string]any) (int, any) {
	i := s.issue(r)
	if i == nil {
		return http.StatusNotFound, gone
	}
	all := []any{}
	for n, to := range ways[i.Status] {
		if s.NoWay && categories[to] == "done" {
			continue
		}
		fields := map[string]any{}
		if s.AsksResolution && to == "Done" {
			fields["resolution"] = map[string]any{"required": true, "name": "Resolution", "hasDefaultValue": false}
		}
		all = append(all, map[string]any{"id": strconv.Itoa(11 + 10*n), "name": "to " + to, "to": status(to), "fields": fields})
	}
	return http.StatusOK, map[string]any{"transitions": all}
}

func (s *Server) move(r *http.Request, body map[string]any) (int, any) {
	i := s.issue(r)
	if i == nil {
		return http.StatusNotFound, gone
	}
	for n, to := range ways[i.Status] {
		if object(body["transition"])["id"] != strconv.Itoa(11+10*n) {
			continue
		}
		if _, resolved := object(body["fields"])["resolution"]; resolved != (s.AsksResolution && to == "Done") {
			return http.StatusBadRequest, refusal{fields: map[string]string{"resolution": "Resolution is required, or it is not on the appropriate screen."}}
		}
		i.Status, i.Moved = to, s.now()
		return http.StatusNoContent, nil
	}
	return http.StatusBadRequest, refusal{says: "It seems that you have tried to perform a workflow operation that is not valid for the current state of this issue."}
}

func (s *Server) comments(r *http.Request, _ map[string]any) (int, any) {
	i := s.issue(r)
	if i == nil {
		return http.StatusNotFound, gone
	}
	const most = 2 // a page here, so that pages are turned
	from, _ := strconv.Atoi(r.URL.Query().Get("startAt"))
	all := []any{}
	for _, c := range i.Comments[min(from, len(i.Comments)):min(from+most, len(i.Comments))] {
		all = append(all, map[string]any{"id": c.ID, "author": s.account(c.Author), "body": c.Body})
	}
	return http.StatusOK, map[string]any{"comments": all, "startAt": from, "maxResults": most, "total": len(i.Comments)}
}

func (s *Server) comment(r *http.Request, body map[string]any) (int, any) {
	i := s.issue(r)
	if i == nil {
		return http.StatusNotFound, gone
	}
	if len(body) != 1 {
		return http.StatusBadRequest, refusal{says: "Invalid request payload. Refer to the REST API documentation and try again."}
	}
	if why := s.unfit(body["body"]); why != "" {
		return http.StatusBadRequest, refusal{fields: map[string]string{"comment": why}}
	}
	if id := r.PathValue("comment"); id != "" {
		n := slices.IndexFunc(i.Comments, func(c Comment) bool { return c.ID == id })
		if n < 0 {
			return http.StatusNotFound, refusal{says: "Can not find a comment for the id: " + id + "."}
		}
		i.Comments[n].Body = body["body"]
		i.Comments[n].Edits++
		return http.StatusOK, map[string]any{"id": id}
	}
	s.number++
	c := Comment{ID: strconv.Itoa(20000 + s.number), Author: Us, Body: body["body"]}
	i.Comments = append(i.Comments, c)
	return http.StatusCreated, map[string]any{"id": c.ID, "author": s.account(Us)}
}

func (s *Server) link(r *http.Request, body map[string]any) (int, any) {
	i := s.issue(r)
	if i == nil {
		return http.StatusNotFound, gone
	}
	global, _ := body["globalId"].(string) //nolint:errcheck // refused when it is empty
	to := object(body["object"])
	if global == "" || len(global) > 255 || to["url"] == nil || to["title"] == nil {
		return http.StatusBadRequest, refusal{fields: map[string]string{"url": "A remote link has a globalId, a URL and a title."}}
	}
	if n := slices.IndexFunc(i.Links, func(l Link) bool { return l.GlobalID == global }); n >= 0 {
		i.Links[n].Object = to
		i.Links[n].Edits++
		return http.StatusOK, map[string]any{"id": n + 1}
	}
	i.Links = append(i.Links, Link{GlobalID: global, Object: to})
	return http.StatusCreated, map[string]any{"id": len(i.Links)}
}

func (s *Server) account(name string) map[string]any {
	if s.cloud {
		return map[string]any{"accountId": name, "displayName": name}
	}
	return map[string]any{"key": name, "name": name}
}

func (s *Server) myself(*http.Request, map[string]any) (int, any) {
	return http.StatusOK, s.account(Us)
}

func object(v any) map[string]any {
	o, ok := v.(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return o
}

func list(v any) []any {
	l, ok := v.([]any)
	if !ok {
		return nil
	}
	return l
}

// Summary of a ticket.
func (i Issue) Summary() string { return fmt.Sprint(i.Fields["summary"]) }

// Labels of a ticket.
func (i Issue) Labels() (out []string) {
	for _, l := range list(i.Fields["labels"]) {
		out = append(out, fmt.Sprint(l))
	}
	return out
}

// Raw is a description as it was sent.
func (i Issue) Raw() string {
	if text, ok := i.Fields["description"].(string); ok {
		return text
	}
	body, err := json.MarshalIndent(i.Fields["description"], "", " ")
	if err != nil {
		panic(err)
	}
	return string(body)
}
