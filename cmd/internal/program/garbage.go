package program

import (
	"os"
	"runtime/debug"
)

// How much garbage there may be beside what is alive, in percent. Go's own 100 saves a tenth
// of the time, and takes 100 MiB more for a dump of 5,000 nodes with 50,000 pods, and as much
// for the service at 1,000 nodes with 10,000.
const (
	garbageOfDump    = 70
	garbageOfService = 50
)

// garbage bounds it, unless the environment says how much (GOGC).
func garbage(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
