package sources

import (
	"os"
	"runtime/debug"
)

// garbageOfDump is how much garbage there may be beside what is alive, in percent. Go's own 100
// saves a tenth of the time, and takes 100 MiB more for a dump of 5,000 nodes with 50,000 pods.
const garbageOfDump = 70

// Garbage bounds, in percent, what there may be of it beside what is alive, unless the
// environment says how much (GOGC).
func Garbage(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
