package decisions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/journal"
)

// Events tells machines what happens, one JSON object a line.
type Events struct {
	Out     io.Writer
	Started time.Time
}

// Emit tells of one event.
func (e Events) Emit(event map[string]any) error {
	if err := json.NewEncoder(e.Out).Encode(event); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return nil
}

// Apply carries the fix out, telling of the approval once it stands, of each step that
// is done, of the pod that runs, and always last of the end.
func (e Events) Apply(ctx context.Context, d executor.Deps, plan string, carry Carrier) error {
	var failed error
	stands := false
	out, err := carry(ctx, func(s journal.Progress) {
		if !stands {
			stands, failed = true, e.Emit(map[string]any{"event": "approved", "plan": plan})
		}
		if s.Done && failed == nil {
			failed = e.Emit(map[string]any{"event": "step", "n": s.N, "of": s.Of, "text": s.Text})
		}
	})
	if err == nil {
		err = failed
	}
	if err == nil && out.Pod != "" {
		err = e.Emit(map[string]any{"event": "running", "pod": out.Pod})
	}
	done := map[string]any{"event": "done", "podRunning": err == nil && out.Pod != "", "seconds": float64(d.Now().Sub(e.Started).Milliseconds()) / 1000}
	if d.DryRun {
		done["dryRun"] = true
	}
	if err != nil {
		done["error"] = err.Error()
	}
	if derr := e.Emit(done); err == nil {
		err = derr
	}
	return err
}
