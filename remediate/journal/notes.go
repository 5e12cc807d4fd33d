package journal

import (
	"slices"
	"time"

	"github.com/unpend/unpend/remediate/audit"
)

// What a step may note in its line of the journal, besides a time and a hash: anything else
// is not of this program.
const (
	Written = "written" // its write was answered: what remains is to wait
	News    = "news"    // MIG manager's state has changed since the step began
	Untold  = "untold"  // the Event that it was to make could not be made
)

func known(note string) bool {
	_, err := time.Parse(time.RFC3339Nano, note)
	return err == nil || audit.IsHash(note) || slices.Contains([]string{"", Written, News, Untold}, note)
}

// Since is how long ago a step's write was answered, as its note says; the note is made
// where there is none.
func (e *Entry) Since(now time.Time) time.Duration {
	since, err := time.Parse(time.RFC3339Nano, e.Note)
	if err != nil && e.Again { // the process that wrote it is gone
		since, err = e.Began.Time, nil
	}
	if err != nil || since.After(now) { // or the clock was set back
		e.Note, since = formatTime(now), now
	}
	return now.Sub(since)
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
