package diagnosis

import (
	"context"
	"time"

	"github.com/unpend/unpend/watcher/incident"
)

// Holder is a pod that holds GPUs, with what its GPU work is looked up by.
type Holder struct {
	PodName
	// Devices is how many GPUs or MIG instances it holds at least. Each has to be
	// measured before the pod may count as idle.
	Devices int
	// MIG: they are MIG instances. A GPU's own utilisation tells nothing of those.
	MIG bool
	// Running is since when all its containers with GPUs run without a restart; zero
	// when nobody knows, or one does not run.
	Running time.Time
}

// Use is what a pod did with its GPUs. The zero value tells nothing.
type Use struct {
	// Idle: each of its GPUs was watched for the whole of Watched, and none worked.
	Idle    bool
	Watched time.Duration
	// Max is the most that any of its GPUs worked in that time, in percent.
	Max float64
	// Since is from when on no work was seen, for a pod that is idle.
	Since time.Time
	// Unknown says why nothing can be told; empty when it can.
	Unknown string
	// Stalled is why the pod's containers with GPUs could not begin; nil where its work was measured.
	Stalled *incident.Stall
}

// DoesNotRun is what an eviction relies on as idle that was proved of a pod which had not begun, or ended as
// soon as it began.
const DoesNotRun = "does not run"

// Measure tells what pods did with their GPUs in the time before at. Nothing is known of
// pods that it leaves out. It must come back within a few seconds; an error
// means that nothing could be measured, and the diagnosis goes on without.
type Measure func(ctx context.Context, at time.Time, holders []Holder) (map[PodName]Use, error)
