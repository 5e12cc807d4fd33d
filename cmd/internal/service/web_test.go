package service

import (
	"context"
	"testing"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/remediate/notice"
)

// heard is a place that notes what it is told.
type heard []string

func (h *heard) Notify(_ context.Context, p notice.Proposal) error {
	*h = append(*h, p.Incident)
	return nil
}

// Routes say where people are told; on the page, where they look for themselves, is all.
func TestRoutesLeaveNothingOutOnThePage(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", Memory: true})
	must(t, err)
	defer b.Close()
	for name, want := range map[string]int{settings.OnPage: 1, "slack": 0} {
		var h heard
		s := &Service{bus: b}
		s.config.Routes = []settings.Route{{To: []string{"jira"}}}
		must(t, (&sink{Service: s, name: name, place: name, Notifier: &h}).routed(t.Context(), notice.Proposal{Incident: "gpu-aaaaaaaaaa"}))
		if len(h) != want {
			t.Errorf("%s is told %q", name, h)
		}
	}
}
