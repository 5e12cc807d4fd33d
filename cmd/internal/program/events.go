package program

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/journal"
)

// events tells machines what happens, one JSON object a line.
type events struct {
	w       io.Writer
	started time.Time
}

func (e events) emit(event map[string]any) error {
	if err := json.NewEncoder(e.w).Encode(event); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	return nil
}

// apply carries the fix out, telling of the approval once it stands, of each step that
// is done, of the pod that runs, and always last of the end.
func (e events) apply(ctx context.Context, d executor.Deps, plan string, carry carrier) error {
	var failed error
	stands := false
	out, err := carry(ctx, func(s journal.Progress) {
		if !stands {
			stands, failed = true, e.emit(map[string]any{"event": "approved", "plan": plan})
		}
		if s.Done && failed == nil {
			failed = e.emit(map[string]any{"event": "step", "n": s.N, "of": s.Of, "text": s.Text})
		}
	})
	if err == nil {
		err = failed
	}
	if err == nil && out.Pod != "" {
		err = e.emit(map[string]any{"event": "running", "pod": out.Pod})
	}
	done := map[string]any{"event": "done", "podRunning": err == nil && out.Pod != "", "seconds": float64(d.Now().Sub(e.started).Milliseconds()) / 1000}
	if d.DryRun {
		done["dryRun"] = true
	}
	if err != nil {
		done["error"] = err.Error()
	}
	if derr := e.emit(done); err == nil {
		err = derr
	}
	return err
}
