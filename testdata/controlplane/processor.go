package controlplane

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"
)

// ticks is how many make a second in /proc: USER_HZ, 100 on every architecture that Go runs
// on (proc_pid_stat(5)).
const ticks = 100

// ProcessorOf is the processor time that a process has had so far, of the user and the kernel.
func ProcessorOf(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		tb.Fatal(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name may hold spaces; the state follows, field 3
	var user, kernel time.Duration
	if _, err := fmt.Sscan(string(fields[14-3])+" "+string(fields[15-3]), &user, &kernel); err != nil {
		tb.Fatal(err)
	}
	return (user + kernel) * time.Second / ticks
}

// Processor is that of one of the control plane's programs.
func (c *ControlPlane) Processor(tb testing.TB, program string) time.Duration {
	tb.Helper()
	return ProcessorOf(tb, c.pid(tb, program))
}
