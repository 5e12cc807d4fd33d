package guard

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the image has no zone files, and a freeze must not fail for want of them

	"github.com/robfig/cron/v3"
)

// Freeze is a time in which nothing is begun.
type Freeze struct {
	Cron     string        // when it starts: minute, hour, day of month, month, day of week
	Duration time.Duration // how long it lasts
	Timezone string        // that Cron is in, e.g. Europe/Berlin; UTC when empty
}

func (f *Freeze) fields(at string) []field {
	return []field{words(at+"cron", &f.Cron), span(at+"duration", &f.Duration, time.Minute), words(at+"timezone", &f.Timezone)}
}

// check says what is wrong with a window whose fields are of the right kind.
func (f *Freeze) check(at string) []error {
	if f.Cron == "" || f.Duration == 0 {
		return []error{fmt.Errorf("%s must have cron and duration", at)}
	}
	if _, err := f.zone(); err != nil {
		return []error{fmt.Errorf("%s.timezone is %s: %w", at, f.Timezone, err)}
	}
	s, err := f.schedule()
	if err == nil && s.Next(time.Unix(0, 0).UTC()).IsZero() {
		err = errors.New("it never happens")
	}
	if err != nil {
		return []error{fmt.Errorf("%s.cron is %s: %w", at, f.Cron, err)}
	}
	return nil
}

func (f *Freeze) zone() (*time.Location, error) {
	if f.Timezone == "Local" { // whatever the container has
		return nil, errors.New("it must be a zone such as Europe/Berlin or UTC")
	}
	zone, err := time.LoadLocation(f.Timezone)
	if err != nil {
		return nil, errors.New("no such zone is known; it must be one such as Europe/Berlin or UTC")
	}
	return zone, nil
}

func (f *Freeze) schedule() (cron.Schedule, error) {
	if strings.Contains(f.Cron, "=") { // the library's TZ=, which it panics on when nothing follows
		return nil, errors.New("the zone belongs into timezone")
	}
	s, err := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(f.Cron)
	if err != nil {
		return nil, fmt.Errorf("it must be minute, hour, day of month, month and day of week: %w", err)
	}
	return s, nil
}

// end is when the window ends that now is in; zero when now is in none. The first
// instant of a window is in it, its end is not.
func (f *Freeze) end(now time.Time) (time.Time, error) {
	zone, err := f.zone()
	if err != nil {
		return time.Time{}, err
	}
	s, err := f.schedule()
	if err != nil {
		return time.Time{}, err
	}
	// The start that comes next after (now - duration) is the first whose window is
	// not over.
	start := s.Next(now.Add(-f.Duration).In(zone))
	if start.IsZero() || start.After(now) {
		return time.Time{}, nil
	}
	return start.Add(f.Duration), nil
}

func (f *Freeze) String() string {
	return fmt.Sprintf("%s for %s, %s", f.Cron, short(f.Duration), f.Timezone)
}
