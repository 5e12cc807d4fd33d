package jira_test

import "testing"

func TestPromise(t *testing.T) {
	for _, p := range []struct {
		id  string
		run func(*testing.T)
	}{{"R05", promiseR5}, {"R26", promiseR26}, {"S14", promiseS14}} {
		t.Run(p.id, p.run)
	}
}
