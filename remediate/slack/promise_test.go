package slack_test

import "testing"

func TestPromise(t *testing.T) {
	for _, p := range []struct {
		id  string
		run func(*testing.T)
	}{{"R26", promiseR26}, {"S01", promiseS1}, {"S02", promiseS2}, {"S03", promiseS3}, {"S04", promiseS4}} {
		t.Run(p.id, p.run)
	}
}
