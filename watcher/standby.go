package watcher

import "context"

// standBy waits until this watcher is the one that publishes; false: ctx ended. What is noted
// of deletions meanwhile is kept for as long as between two sweeps: who publishes has told of
// what is older.
func (w *Watcher) standBy(ctx context.Context) (term context.Context, ok bool) {
	if w.opts.Lead == nil {
		return ctx, ctx.Err() == nil
	}
	for ctx.Err() == nil {
		patience, cancel := context.WithTimeout(ctx, w.opts.Sweep)
		term, err := w.opts.Lead(patience)
		cancel()
		if err == nil {
			w.swept = sweep{} // of an earlier term
			return term, true
		}
		w.turn()
		w.forget(nil)
	}
	return nil, false
}
