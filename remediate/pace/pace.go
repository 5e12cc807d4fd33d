// Package pace holds the times by which plans are carried out and leaders follow one another. It
// is apart from those who keep them, so that who only prints or sets them links none of that.
package pace

import "time"

// Poll is how often a wait looks again, by default.
const Poll = time.Second

// The times of a leader's lease, the executor's and the analyst's. Others look at it every 1 to 2.2 retry periods (the
// jitter of client-go's leaderelection), and judge it by when they saw it renewed: a
// leader that is gone is replaced within 13 s and two such looks, 18 s; one that is cut
// off has stopped 5 s before anybody else can begin.
const (
	Lease = 13 * time.Second
	Renew = 8 * time.Second
	Retry = time.Second
)

// Deadlines bound the waits of one plan.
type Deadlines struct {
	Evict   time.Duration // a budget that says no; 5 min
	Leave   time.Duration // victims that terminate; 5 min
	Manager time.Duration // MIG manager's work; 10 min
	Settle  time.Duration // the scheduler hears of a cordon; 1 s
	Notice  time.Duration // MIG manager looks at a label that changes nothing; 15 s
	Wedge   time.Duration // pending with paused operands; 6 min: its own wait is 5 per component
	Run     time.Duration // the pod comes to run; 5 min
	Calm    time.Duration // once it runs, fewer come to wait than before; 10 s
}

// WithDefaults fills in what is not set.
func (d Deadlines) WithDefaults() Deadlines {
	set := func(t *time.Duration, otherwise time.Duration) {
		if *t == 0 {
			*t = otherwise
		}
	}
	set(&d.Evict, 5*time.Minute)
	set(&d.Leave, 5*time.Minute)
	set(&d.Manager, 10*time.Minute)
	set(&d.Wedge, 6*time.Minute)
	set(&d.Settle, time.Second)
	set(&d.Notice, 15*time.Second)
	set(&d.Run, 5*time.Minute)
	set(&d.Calm, 10*time.Second)
	return d
}

// WayBack is how long taking a plan back may last.
func (d Deadlines) WayBack() time.Duration { return d.Manager + 5*Contention }

// Contention is how long a write is tried again because others write to the same
// object: the kubelet, controllers, MIG manager.
const Contention = time.Minute
