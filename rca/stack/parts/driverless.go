package parts

import (
	"slices"
	"strings"
)

// noDriver are words of programs that look for NVIDIA's driver and do not find it where they look.
var noDriver = []string{"libnvidia-ml", "error_library_not_found", "error_driver_not_loaded", "nvidia-smi", "nvml library", "driver root", "driverroot"}

// FindsNoDriver says whether a container's words are that.
func FindsNoDriver(words string) bool {
	words = strings.ToLower(words)
	return slices.ContainsFunc(noDriver, func(part string) bool { return strings.Contains(words, part) })
}

// In is what a command that reads a container's log takes to read that of the one that it is about: kubectl reads the first of those
// that are no init containers else.
func (l Look) In() string {
	if l.Where == "" {
		return ""
	}
	return " -c " + l.Where
}

// Before is what a command that reads a container's log takes to read that of the one before, which ended.
func (l Look) Before() string {
	if l.Loops {
		return " --previous"
	}
	return ""
}
