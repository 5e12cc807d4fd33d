package acceptance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is the real command as a child.
type process struct {
	cmd   *exec.Cmd
	out   lines
	ended chan struct{}
}

// newProcess is the command as it will be started: TestMain has put it into PATH.
func newProcess(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return p
}

// start starts it. It is killed when the test ends, and by the kernel when the test
// does not get so far.
func (p *process) start(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Start())
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s says:\n%s", p.cmd, strings.Join(p.out.all(), "\n"))
		}
	})
}

// kill ends it at once, and waits.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.ended
}

func (p *process) signal(s syscall.Signal) {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		panic(err) // ours, and not waited for yet
	}
}

// exits waits for its end and says its exit code; -1: a signal ended it.
func (p *process) exits(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		t.Fatalf("%s has not ended within %s", p.cmd, within)
	}
	return p.cmd.ProcessState.ExitCode()
}

// executorConfig is the configuration of an executor whose namespace it is. The waits
// are short where a fault is waited out, and long enough for a busy machine.
func executorConfig(t *testing.T, namespace, deadlines string) string {
	t.Helper()
	text := fmt.Sprintf("remediate: {namespace: %s, poll: 100ms, deadlines: {%s}}\nweb: {metrics: \"127.0.0.1:0\"}\n", namespace, deadlines)
	path := filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// startExecutor starts the role that carries plans out, as the pod of a Deployment
// is started: the name stays when a container is restarted.
func startExecutor(t *testing.T, pod, config string, p *faultProxy) *process {
	t.Helper()
	x := newProcess(t, []string{"POD_NAME=" + pod}, "unpend", "run", "--mode", "approve", "--roles", "remediate", "--config", config, "--kubeconfig", p.kubeconfig)
	x.start(t)
	return x
}
