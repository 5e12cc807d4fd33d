package built

import (
	"bytes"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Serve runs a program in dir until the test ends, and returns once the address ready is
// answered with 200.
func Serve(t testing.TB, dir, ready, program string, args ...string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &log, &log, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // however the test ends
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel counts the death of the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if started <- err; err == nil {
			cmd.Wait() //nolint:errcheck // it is killed
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-ended
	})
	await(t, ready, program, ended, &log)
}

// await polls until the program is ready. The log may be read only once it has ended.
func await(t testing.TB, ready, program string, ended <-chan struct{}, log *bytes.Buffer) {
	t.Helper()
	tick, patience := time.NewTicker(50*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		resp, err := http.Get(ready)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ended:
			t.Fatalf("%s ended:\n%s", program, log)
		case <-patience:
			t.Fatalf("%s is not ready: %v", program, err)
		case <-tick.C:
		}
	}
}

// FreeAddress finds a port nobody listens on, below those that the kernel gives to outgoing
// connections: nobody takes it meanwhile.
func FreeAddress(t testing.TB) string {
	t.Helper()
	const low, high = 10000, 32768
	for range 1000 {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(low+rand.IntN(high-low))))
		if err != nil {
			continue // taken
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return l.Addr().String()
	}
	t.Fatal("no free port on 127.0.0.1")
	return ""
}
