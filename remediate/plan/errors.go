package plan

import "errors"

// The outcomes that a caller tells apart.
var (
	// ErrStale: the approved plan is no longer the plan. Nothing was written, or what
	// was written has been taken back, or the error names what stays.
	ErrStale = errors.New("plan is stale")
	// ErrRefused: the fix may not be applied; nothing was written.
	ErrRefused = errors.New("refused")
	// ErrHalted: somebody has said stop.
	ErrHalted = errors.New("halted")
	// ErrNewer: a newer program has written a plan, or its journal, and means more by it
	// than this one knows; nothing was written.
	ErrNewer = errors.New("was written by a newer unpend")
)
