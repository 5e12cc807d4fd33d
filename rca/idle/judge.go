package idle

import (
	"fmt"
	"math"
	"time"

	"github.com/unpend/unpend/rca/diagnosis"
)

// judge tells idle from working and from unknown.
func (c *Client) judge(h diagnosis.Holder, at time.Time, devices map[device][]float64) diagnosis.Use {
	u := diagnosis.Use{Watched: c.opts.Window}
	count, gaps, all := 0, 0, 0
	for d, points := range devices {
		if h.MIG && d.instance == "" {
			continue // what a GPU does says nothing of one of its instances
		}
		count++
		for _, p := range points {
			all++
			if math.IsNaN(p) {
				gaps++
				continue
			}
			u.Max = max(u.Max, p)
		}
	}
	switch ran := at.Sub(h.Running); {
	case u.Max >= c.opts.Threshold: // it worked, whatever else is not known
	case h.Running.IsZero():
		u.Unknown = "since when it runs is not told"
	case ran < c.opts.Window:
		u.Unknown = fmt.Sprintf("runs for %s, less than the window of %s", durationText(ran), durationText(c.opts.Window))
	case count == 0:
		u.Unknown = "Prometheus has no series of its GPUs (looked for " + lookedFor(h) + ")"
	case count < h.Devices:
		u.Unknown = fmt.Sprintf("Prometheus has series of %d of its %d GPUs", count, h.Devices)
	case gaps > 0:
		u.Unknown = fmt.Sprintf("no sample in %d of %d parts of the last %s", gaps, all, durationText(c.opts.Window))
	default:
		u.Idle, u.Since = true, at.Add(-c.opts.Window)
	}
	return u
}

// since goes back from the window, whose first part is known, as long as the pod ran
// and no work was seen.
func (c *Client) since(h diagnosis.Holder, g grid, known int, devices map[device][]float64) time.Time {
	for known > 0 && g.began(known).After(h.Running) && c.quiet(h, devices, known-1) {
		known--
	}
	if began := g.began(known); began.After(h.Running) {
		return began
	}
	return h.Running
}

// quiet says whether all devices were seen in a part, and none worked.
func (c *Client) quiet(h diagnosis.Holder, devices map[device][]float64, part int) bool {
	count := 0
	for d, points := range devices {
		if h.MIG && d.instance == "" {
			continue
		}
		if count++; !(points[part] < c.opts.Threshold) { // also what is not a number
			return false
		}
	}
	return count >= h.Devices
}

// durationText is a duration without the zeros behind it.
func durationText(d time.Duration) string {
	if d = d.Round(time.Second); d >= time.Minute && d%time.Minute == 0 {
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return d.String()
}
