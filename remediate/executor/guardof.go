package executor

import (
	"context"
	"sync"
	"time"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
)

// GuardOf tells a diagnosis what the guard-rails of a namespace would hold back, from one
// reading of them for as long as given.
func GuardOf(d Deps, namespace string, keep time.Duration) func(context.Context, *cluster.State) (diagnosis.Guard, error) {
	var mu sync.Mutex
	var rails *Rails
	var read time.Time
	return func(ctx context.Context, st *cluster.State) (diagnosis.Guard, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := d.Now(); read.IsZero() || now.Sub(read) >= keep {
			r, err := ReadRails(ctx, d, namespace)
			switch {
			case err == nil:
				rails, read = r, now
			case keep == 0 || read.IsZero() || live.Refused(err):
				return nil, err
			} // else they stand as they were read: before a plan is carried out they are read again
		}
		if rails == nil {
			return nil, nil
		}
		return rails.Guard(st), nil
	}
}
