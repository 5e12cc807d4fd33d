package service

import (
	"fmt"
	"sync/atomic"
	"testing"
)

func TestPromise(t *testing.T) {
	t.Parallel() // most of it waits
	t.Run("R25", promiseR25)
	t.Run("S07", promiseS7)
}

// R25: a place that is away, or does not let us in, holds up no other, and is told of all that
// is true once it is back, in order and once.
func promiseR25(t *testing.T) {
	var held atomic.Int32
	places := map[string]func(*testing.T){"Slack": slackFailsAlone, "Slack, in trouble": slackStruggles, "Jira": jiraFailsAlone, "a pager": pagerAway}
	t.Run("all", func(t *testing.T) {
		for name, away := range places {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // they wait
				away(t)
				if !t.Failed() {
					held.Add(1)
				}
			})
		}
	})
	fmt.Printf("R25 %d/%d, places away or closed to us: the others were told, and they of all once they were back, nothing twice\n", held.Load(), len(places))
}
