package act

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Entry is one that a plan has written into a team's layouts, and that stays there when the
// plan has ended.
type Entry struct {
	of    *relayout
	found *partedConfig
}

// Entries are those of a plan, by its journal.
func Entries(d Deps, rem *v1alpha1.Remediation) []*Entry {
	var out []*Entry
	for _, v := range New(d, rem).verbs {
		s, ok := v.(*relayout)
		if ok && s.how.ConfigMap != nil && s.entry(s.id("entry")) != nil {
			out = append(out, &Entry{of: s})
		}
	}
	return out
}

// Name of the entry, which is a MIG config's.
func (e *Entry) Name() string { return e.of.how.Config }

// ConfigMap that it stands in.
func (e *Entry) ConfigMap() diagnosis.Target { return *e.of.how.ConfigMap }

// Written says whether the entry stands in the layouts as we write it, to the byte: without
// a comment of anybody's. It does not where the ConfigMap is gone, or another.
// ErrNoLayouts: what is there cannot be read.
func (e *Entry) Written(ctx context.Context) (bool, error) {
	c, err := e.of.partedConfig(ctx)
	if errors.Is(err, plan.ErrStale) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e.found = c
	return c.asWritten(e.of)
}

// TakeOut takes the entry out of the layouts as Written has read them.
func (e *Entry) TakeOut(ctx context.Context) (missing string, err error) {
	e.found.remove(e.Name())
	return e.of.writeConfig(ctx, e.found)
}

func (c *partedConfig) asWritten(s *relayout) (bool, error) {
	want, err := s.wantedEntry()
	if err != nil {
		return false, err
	}
	i := c.at(s.how.Config)
	if i < 0 {
		return false, nil
	}
	key, value, err := newEntry(s.how.Config, want)
	if err != nil {
		return false, err
	}
	ours, err := entryText(key, value)
	if err != nil {
		return false, err
	}
	is, err := entryText(c.entries.Content[i], c.entries.Content[i+1])
	return bytes.Equal(is, ours), err
}

func entryText(key, value *yaml.Node) ([]byte, error) {
	text, err := yaml.Marshal(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, value}})
	if err != nil {
		return nil, fmt.Errorf("write an entry: %w", err)
	}
	return text, nil
}
