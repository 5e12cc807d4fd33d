package jira

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// meta is what is known of the project: who we are there, and what each ticket gets.
type meta struct {
	me     account
	fields map[string]any
}

// field of a ticket, as the project has it.
type field struct {
	ID       string `json:"fieldId"`
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Default  bool   `json:"hasDefaultValue"`
	Allowed  []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"allowedValues"`
}

// check looks, once, whether the project takes our tickets.
func (j *Jira) check(ctx context.Context) error {
	if j.meta != nil {
		return nil
	}
	m := meta{}
	if err := j.steadily(ctx, "ask who we are", http.MethodGet, "myself", nil, &m.me); err != nil {
		return err
	}
	kind, err := j.kind(ctx)
	if err != nil {
		return err
	}
	var screen []field
	if err := j.listed(ctx, "read which fields a ticket has", "issue/createmeta/"+url.PathEscape(j.opts.Project)+"/issuetypes/"+url.PathEscape(kind), &screen); err != nil {
		return err
	}
	if m.fields, err = j.filled(kind, screen); err != nil {
		return err
	}
	if err := j.workflow(ctx); err != nil {
		return err
	}
	j.meta = &m
	return nil
}

// kind is the id of the type of ticket.
func (j *Jira) kind(ctx context.Context) (string, error) {
	var all []struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Subtask bool   `json:"subtask"`
	}
	if err := j.listed(ctx, "read which types of ticket jira.project has", "issue/createmeta/"+url.PathEscape(j.opts.Project)+"/issuetypes", &all); err != nil {
		return "", err
	}
	var names []string
	for _, t := range all {
		if t.Subtask {
			continue
		}
		if strings.EqualFold(t.Name, j.opts.IssueType) {
			return t.ID, nil
		}
		names = append(names, t.Name)
	}
	return "", fmt.Errorf("jira.issueType is %q: in %s the account may make %q", j.opts.IssueType, j.opts.Project, names)
}

// filled is what each ticket gets besides what it says; the error names each field that is
// wanted and not there, or there and not wanted.
func (j *Jira) filled(kind string, screen []field) (map[string]any, error) {
	o := j.opts
	out := map[string]any{"project": map[string]any{"key": o.Project}, "issuetype": map[string]any{"id": kind}}
	maps.Copy(out, o.Fields)
	var wrong []error
	on := map[string]field{}
	for _, f := range screen {
		on[f.ID] = f
	}
	names := func(key, id string, all ...string) (list []map[string]any) {
		for _, name := range all {
			if f := on[id]; len(f.Allowed) > 0 && !slices.Contains(f.names(), name) {
				wrong = append(wrong, fmt.Errorf("%s is %q: %s has %q", key, name, o.Project, f.names()))
			}
			list = append(list, map[string]any{"name": name})
		}
		return list
	}
	if o.Priority != "" {
		out["priority"] = names("jira.priority", "priority", o.Priority)[0]
	}
	if len(o.Components) > 0 {
		out["components"] = names("jira.components", "components", o.Components...)
	}
	told := []string{"summary", "description", "labels"}
	for _, id := range slices.Sorted(maps.Keys(out)) {
		if _, there := on[id]; !there && id != "project" && id != "issuetype" {
			wrong = append(wrong, fmt.Errorf("%s is set, and the screen for a new %s in %s has no such field: put it there, or leave it out of the configuration", keyOf(id), o.IssueType, o.Project))
		}
	}
	for _, id := range told {
		if _, there := on[id]; !there {
			wrong = append(wrong, fmt.Errorf("the screen for a new %s in %s has no field %s: put it there, unpend writes it", o.IssueType, o.Project, id))
		}
	}
	for _, f := range screen {
		_, set := out[f.ID]
		if f.Required && !f.Default && !set && !slices.Contains(told, f.ID) && f.ID != "reporter" { // Jira takes us for the reporter
			wrong = append(wrong, fmt.Errorf("%s wants the field %q for a new %s, and nobody configured it: set %s, or make it optional in Jira", o.Project, f.Name, o.IssueType, keyOf(f.ID)))
		}
	}
	return out, errors.Join(wrong...)
}

// keyOf is where a field is configured.
func keyOf(id string) string {
	if id == "priority" || id == "components" {
		return "jira." + id
	}
	return "jira.fields." + id
}

func (f field) names() (out []string) {
	for _, a := range f.Allowed {
		out = append(out, a.Name+a.Value)
	}
	return out
}

// workflow looks whether there are the statuses that are configured.
func (j *Jira) workflow(ctx context.Context) error {
	if j.opts.DoneStatus == "" && j.opts.OpenStatus == "" {
		return nil
	}
	var types []struct {
		Name     string   `json:"name"`
		Statuses []status `json:"statuses"`
	}
	if err := j.steadily(ctx, "read which statuses jira.project has", http.MethodGet, "project/"+url.PathEscape(j.opts.Project)+"/statuses", nil, &types); err != nil {
		return err
	}
	var wrong []error
	for _, t := range types {
		if !strings.EqualFold(t.Name, j.opts.IssueType) {
			continue
		}
		for key, want := range map[string]string{"jira.doneStatus": j.opts.DoneStatus, "jira.openStatus": j.opts.OpenStatus} {
			done, names := key == "jira.doneStatus", []string{}
			for _, s := range t.Statuses {
				if s.done() == done {
					names = append(names, s.Name)
				}
			}
			if want != "" && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, want) }) {
				wrong = append(wrong, fmt.Errorf("%s is %q: of a %s in %s these could be it: %q", key, want, j.opts.IssueType, j.opts.Project, names))
			}
		}
	}
	return errors.Join(wrong...)
}

// at is where people see an incident.
func (j *Jira) at(incident string) string {
	return strings.ReplaceAll(j.opts.Link, placeholder, url.PathEscape(incident))
}
