package controlplane

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
)

// processes are the running programs. They are started from one locked thread:
// the kernel kills them when it ends, however the test does.
type processes struct {
	dir   string // logs
	work  chan func()
	stop  chan struct{}
	ended sync.WaitGroup
	list  []*exec.Cmd
}

func newProcesses(dir string) *processes {
	p := &processes{dir: dir, work: make(chan func()), stop: make(chan struct{})}
	p.ended.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for {
			select {
			case do := <-p.work:
				do()
			case <-p.stop:
				return
			}
		}
	})
	return p
}

func (p *processes) start(path string, args ...string) error {
	log, err := os.Create(filepath.Join(p.dir, filepath.Base(path)+".log"))
	if err != nil {
		return fmt.Errorf("log of %s: %w", filepath.Base(path), err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	p.work <- func() { result <- cmd.Start() }
	err = errors.Join(<-result, log.Close())
	if err != nil {
		return fmt.Errorf("start %s: %w", filepath.Base(path), err)
	}
	p.list = append(p.list, cmd)
	return nil
}

// kill ends all programs, the last started first, and waits for them.
func (p *processes) kill() {
	for _, cmd := range slices.Backward(p.list) {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may have ended by itself
		cmd.Wait()                                      //nolint:errcheck // killed is how it ends
	}
	close(p.stop)
	p.ended.Wait()
}

// freePorts finds ports nobody listens on.
func freePorts(n int) ([]string, error) {
	var out []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a port: %w", err)
		}
		defer l.Close()
		out = append(out, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return out, nil
}
