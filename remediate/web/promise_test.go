package web_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestPromise is what holds of the page when somebody attacks, a line and its figures each.
func TestPromise(t *testing.T) {
	t.Run("S09", promiseS09)
	t.Run("S17", promiseS17)
	t.Run("S18", promiseS18)
}

// promiseS17: nothing is shown or done for who brings no token, or comes by another site's page
// or name; and somebody reads, approves and sees how far it is, with JavaScript and without, in
// a browser that finds nothing to forbid and asks nobody else.
func promiseS17(t *testing.T) {
	held, of := refusals(t)
	if testing.Short() {
		return // the rest needs Chromium
	}
	for name, story := range map[string]func(*testing.T){"in a browser": inABrowser, "without JavaScript": withoutJavaScript} {
		if of++; t.Run(name, story) {
			held++
		}
	}
	report(t, held, of, fmt.Sprintf("%d requests refused, and 2 stories in Chromium without a complaint or a request elsewhere", of-2))
}

// report is the one line of a promise that `make promises` shows: how many of how many cases it
// held in, and the figures behind it. Fewer than all, or none, fail the test.
func report(t *testing.T, held, of int, figures string) {
	t.Helper()
	_, id, _ := strings.Cut(t.Name(), "/")
	id = id[:1] + strings.TrimLeft(id[1:], "0")
	fmt.Printf("%s %d/%d, %s\n", id, held, of, figures)
	if held != of || of == 0 {
		t.Errorf("%s does not hold", id)
	}
}
