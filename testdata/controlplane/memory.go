package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
)

// MemoryOf is the resident memory of a process in bytes: now, and at most so far.
func MemoryOf(tb testing.TB, pid int) (now, most int64) {
	tb.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		for field, into := range map[string]*int64{"VmRSS:": &now, "VmHWM:": &most} {
			if text, ok := bytes.CutPrefix(line, []byte(field)); ok {
				if _, err := fmt.Sscanf(string(text), "%d kB", into); err != nil {
					tb.Fatal(err)
				}
				*into <<= 10
			}
		}
	}
	return now, most
}

// Memory is that of one of the control plane's programs.
func (c *ControlPlane) Memory(tb testing.TB, program string) (now, most int64) {
	tb.Helper()
	return MemoryOf(tb, c.pid(tb, program))
}

func (c *ControlPlane) pid(tb testing.TB, program string) int {
	tb.Helper()
	i := slices.IndexFunc(c.procs.list, func(p *process) bool { return p.name == program })
	if i < 0 {
		tb.Fatalf("no %s was started", program)
	}
	return c.procs.list[i].cmd.Process.Pid
}
