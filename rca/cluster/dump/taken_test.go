package dump

import (
	"strings"
	"testing"
	"time"
)

// A dump that says when it was taken stands for that moment, in either format, and says so
// again when it is written; one that does not stands for the newest time in it.
func TestTaken(t *testing.T) {
	const node = `{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "creationTimestamp": "2026-01-02T03:00:00Z"}}`
	list := func(at string) string {
		return `{"apiVersion": "v1", "kind": "List", "metadata": {"annotations": {"unpend.dev/taken": "` + at + `"}}, "items": [` + node + `]}`
	}
	noon, early := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		text  string
		now   time.Time
		taken bool
	}{
		"a list that says when":         {list("2026-01-02T12:00:00Z"), noon, true},
		"below a comment":               {"# by hand\n" + list("2026-01-02T12:00:00Z"), noon, true},
		"two lists: the newer":          {list("2026-01-02T12:00:00Z") + "\n---\n" + list("2026-01-02T11:00:00Z"), noon, true},
		"a list that does not say when": {list(""), early, false},
		"an object":                     {node, early, false},
	} {
		s := fromText(t, c.text)
		if !s.Now.Equal(c.now) || s.Clocked() != c.taken {
			t.Errorf("%s: %s, %v", name, s.Now, s.Clocked())
		}
		again := fromText(t, written(t, s, "json"))
		if !again.Now.Equal(c.now) || again.Clocked() != c.taken {
			t.Errorf("%s, written and read again: %s, %v", name, again.Now, again.Clocked())
		}
	}
	_, err := Read([]string{"-"}, strings.NewReader(list("yesterday")))
	if err == nil || !strings.Contains(err.Error(), `unpend.dev/taken of the list: "yesterday" is no time such as 2026-01-02T03:04:05Z`) {
		t.Error(err)
	}
}
