package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// processes are the running programs. They are started from one locked thread:
// the kernel kills them when it ends, however the test does.
type processes struct {
	dir   string // working folder, home and logs of all
	work  chan func()
	stop  chan struct{}
	group sync.WaitGroup
	list  []*process
}

type process struct {
	name  string
	path  string
	args  []string
	cmd   *exec.Cmd
	ended chan struct{}
}

func newProcesses(dir string) *processes {
	p := &processes{dir: dir, work: make(chan func()), stop: make(chan struct{})}
	p.group.Go(func() {
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
	name := filepath.Base(path)
	log, err := os.OpenFile(filepath.Join(p.dir, name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("log of %s: %w", name, err)
	}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, p.dir
	// What they write at home goes with the folder. They live for minutes: memory is
	// cheaper than collecting it.
	cmd.Env = append(os.Environ(), "HOME="+p.dir, "GOGC=400")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	p.work <- func() { result <- cmd.Start() }
	if err := errors.Join(<-result, log.Close()); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	started := &process{name: name, path: path, args: args, cmd: cmd, ended: make(chan struct{})}
	p.list = append(p.list, started)
	p.group.Go(func() {
		cmd.Wait() //nolint:errcheck // every end is told by the channel and its reason by the log
		close(started.ended)
	})
	return nil
}

// gone tells whether a program has ended by itself.
func (p *processes) gone(name string) bool {
	i := slices.IndexFunc(p.list, func(x *process) bool { return x.name == name })
	if i < 0 {
		return true
	}
	select {
	case <-p.list[i].ended:
		return true
	default:
		return false
	}
}

// end ends one program at once, and forgets it.
func (p *processes) end(name string) *process {
	i := slices.IndexFunc(p.list, func(x *process) bool { return x.name == name })
	x := p.list[i]
	p.list = slices.Delete(p.list, i, i+1)
	x.kill()
	return x
}

func (x *process) kill() {
	syscall.Kill(-x.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it may end by itself right now
	<-x.ended
}

// kill ends all programs, the last started first, and waits for them. The error
// names those that had ended before.
func (p *processes) kill() error {
	var early []string
	for _, x := range slices.Backward(p.list) {
		if p.gone(x.name) {
			early = append(early, x.name)
			continue
		}
		x.kill()
	}
	close(p.stop)
	p.group.Wait()
	if len(early) > 0 {
		return fmt.Errorf("%s ended before the tests did", strings.Join(early, ", "))
	}
	return nil
}

// FreeAddress is one on 127.0.0.1 that nobody listens on, and that no outgoing connection
// takes before its program does, or while that is away.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	ports, err := freePorts(1)
	if err != nil {
		tb.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", ports[0])
}

// freePorts finds ports nobody listens on, below those the kernel gives to
// outgoing connections (ip_local_port_range): nobody takes one before its
// program does.
func freePorts(n int) ([]string, error) {
	const low, high, tries = 10000, 32768, 1000
	var out []string
	for range tries {
		if len(out) == n {
			return out, nil
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(low+rand.IntN(high-low))))
		if err != nil {
			continue // taken
		}
		defer l.Close()
		out = append(out, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
	return nil, fmt.Errorf("find %d free ports on 127.0.0.1: only %d", n, len(out))
}
