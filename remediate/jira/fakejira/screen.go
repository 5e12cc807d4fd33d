package fakejira

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Field is one of the screen for a new ticket.
type Field struct {
	ID, Name string
	Required bool
	Default  bool
	Allowed  []string
}

// screen is what a new project has, more or less.
func screen() []Field {
	return []Field{
		{ID: "project", Name: "Project", Required: true}, {ID: "issuetype", Name: "Issue Type", Required: true}, {ID: "summary", Name: "Summary", Required: true}, {ID: "reporter", Name: "Reporter", Required: true},
		{ID: "description", Name: "Description"}, {ID: "labels", Name: "Labels"}, {ID: "priority", Name: "Priority", Default: true, Allowed: []string{"High", "Medium"}},
		{ID: "components", Name: "Components", Allowed: []string{"gpu", "scheduler"}}, {ID: "customfield_10001", Name: "Team"},
	}
}

// most fields a page has here, so that pages are turned.
const most = 4

func (s *Server) page(r *http.Request, name string, all []any) (int, any) {
	if r.PathValue("project") != Project {
		return http.StatusNotFound, refusal{says: "No project could be found with key '" + r.PathValue("project") + "'."}
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("startAt"))
	some := all[min(from, len(all)):min(from+most, len(all))]
	if s.cloud {
		return http.StatusOK, map[string]any{name: some, "startAt": from, "maxResults": most, "total": len(all)}
	}
	return http.StatusOK, map[string]any{"values": some, "startAt": from, "maxResults": most, "total": len(all), "isLast": from+most >= len(all)}
}

// types of ticket, enough of them for two pages.
func (s *Server) types(r *http.Request, _ map[string]any) (int, any) {
	var all []any
	for n, name := range []string{"Epic", "Sub-task", "Story", "Bug", Type} {
		all = append(all, map[string]any{"id": strconv.Itoa(10000 + n), "name": name, "subtask": name == "Sub-task"})
	}
	return s.page(r, "issueTypes", all)
}

const typeID = "10004"

func (s *Server) screenOf(r *http.Request, _ map[string]any) (int, any) {
	if r.PathValue("type") != typeID {
		return http.StatusNotFound, refusal{says: "The issue type is not found."}
	}
	var all []any
	for _, f := range s.fields {
		var allowed []any
		for _, a := range f.Allowed {
			allowed = append(allowed, map[string]any{"name": a})
		}
		all = append(all, map[string]any{"fieldId": f.ID, "key": f.ID, "name": f.Name, "required": f.Required, "hasDefaultValue": f.Default, "allowedValues": allowed})
	}
	return s.page(r, "fields", all)
}

func (s *Server) statuses(r *http.Request, _ map[string]any) (int, any) {
	if r.PathValue("project") != Project {
		return http.StatusNotFound, refusal{says: "No project could be found."}
	}
	var all []any
	for _, name := range []string{"To Do", "In Progress", "Done", "Won't Do"} {
		all = append(all, status(name))
	}
	return http.StatusOK, []any{map[string]any{"id": typeID, "name": Type, "statuses": all}}
}

// wrong is what Jira would say of fields, by their ids.
func (s *Server) wrong(fields map[string]any, whole bool) map[string]string {
	out := map[string]string{}
	for id := range fields {
		if !slices.ContainsFunc(s.fields, func(f Field) bool { return f.ID == id }) {
			out[id] = "Field '" + id + "' cannot be set. It is not on the appropriate screen, or unknown."
		}
	}
	for _, f := range s.fields {
		v, set := fields[f.ID]
		if whole && f.Required && !f.Default && f.ID != "reporter" && (!set || v == "") {
			out[f.ID] = f.Name + " is required."
		}
		if set && len(f.Allowed) > 0 {
			for _, name := range names(v) {
				if !slices.Contains(f.Allowed, name) {
					out[f.ID] = f.Name + " name '" + name + "' is not valid"
				}
			}
		}
	}
	if whole && (object(fields["project"])["key"] != Project || object(fields["issuetype"])["id"] != typeID) {
		out["project"] = "valid project and issue type are required"
	}
	if text, set := fields["summary"]; set {
		switch text, ok := text.(string); {
		case !ok || strings.TrimSpace(text) == "":
			out["summary"] = "You must specify a summary of the issue."
		case strings.ContainsAny(text, "\n\r"):
			out["summary"] = "The summary is invalid because it contains newline characters."
		case length(text) > 255:
			out["summary"] = "Summary can't exceed 255 characters."
		}
	}
	for _, l := range list(fields["labels"]) {
		if text, ok := l.(string); !ok || text == "" || strings.ContainsAny(text, " \t\n") || length(text) > 255 {
			out["labels"] = "The label contains spaces which is invalid."
		}
	}
	if text, set := fields["description"]; set {
		if why := s.unfit(text); why != "" {
			out["description"] = why
		}
	}
	return out
}

// names are of a value that has one, or of several.
func names(v any) (out []string) {
	if all := list(v); all != nil {
		for _, one := range all {
			out = append(out, names(one)...)
		}
		return out
	}
	name, _ := object(v)["name"].(string) //nolint:errcheck // no name is not valid
	return []string{name}
}

// length counts as Java does.
func length(s string) int { return len(utf16.Encode([]rune(s))) }
