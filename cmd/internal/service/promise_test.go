package service

import (
	"fmt"
	"testing"
)

func TestPromise(t *testing.T) {
	t.Run("R25", promiseR25)
	t.Run("S07", promiseS7)
}

// R25: a place that is away, or does not let us in, holds up no other, and is told of all that
// is true once it is back, in order and once.
func promiseR25(t *testing.T) {
	held := 0
	places := map[string]func(*testing.T){"Slack": slackFailsAlone, "Slack, in trouble": slackStruggles, "Jira": jiraFailsAlone, "a pager": pagerAway}
	for name, away := range places {
		if t.Run(name, away) {
			held++
		}
	}
	fmt.Printf("R25 %d/%d, places away or closed to us: the others were told, and they of all once they were back, nothing twice\n", held, len(places))
}
