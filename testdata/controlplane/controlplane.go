package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ControlPlane is a running control plane with the chart's CRDs.
type ControlPlane struct {
	// Ready is how long it took to start, builds left out.
	Ready time.Duration

	dir    string
	bin    map[string]string // the programs' paths
	hold   *os.File          // the lock on dir
	procs  *processes
	host   string
	etcd   string // its URL
	ca     *authority
	admin  rest.TLSClientConfig
	extras Extras
	audit  audited
}

// Start starts a control plane and stops it when the test ends, leaving nothing
// behind. With -short the test is skipped.
func Start(tb testing.TB) *ControlPlane {
	tb.Helper()
	return StartWith(tb, Extras{})
}

// Extras are what makes a control plane differ from what every cluster is.
type Extras struct {
	Gates []string // feature gates, "Name=true"
	APIs  []string // group versions that are off by default
	Off   []string // group versions that are on by default, and are not served
	// Alone leaves only etcd and the API server: nothing is scheduled, and no
	// controller works.
	Alone bool
	// AsGiven leaves objects as they are given, too: Alone, with no plugin of admission that
	// changes or refuses one, and kept as JSON, which Keep can write.
	AsGiven bool
	// Tokens are people's: by each the API server knows a user.
	Tokens map[string]string
}

// StartWith is Start with extras.
func StartWith(tb testing.TB, with Extras) *ControlPlane {
	tb.Helper()
	skipShort(tb)
	c, err := launch(tb.Context(), with)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		c.logsOf(tb)
		if err := c.stop(); err != nil {
			tb.Error(err)
		}
	})
	tb.Logf("control plane ready in %.1f s", c.Ready.Seconds())
	return c
}

// Shared is one control plane for all tests of a package. It starts with the
// first test that asks for it:
//
//	var shared controlplane.Shared
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
type Shared struct {
	mu  sync.Mutex
	c   *ControlPlane
	err error
}

// Run runs the tests, then stops what they started. It returns the exit code.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.c == nil {
		return code
	}
	if err := s.c.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Get is the control plane, for one test. With -short the test is skipped.
func (s *Shared) Get(tb testing.TB) *ControlPlane {
	tb.Helper()
	skipShort(tb)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil && s.err == nil { // one failed start is enough: each would take a minute
		if s.c, s.err = launch(tb.Context(), Extras{}); s.err == nil {
			tb.Logf("control plane ready in %.1f s", s.c.Ready.Seconds())
		}
	}
	if s.err != nil {
		tb.Fatal(s.err)
	}
	tb.Cleanup(func() { s.c.logsOf(tb) })
	return s.c
}

func skipShort(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("needs the real control plane, which -short leaves out")
	}
}

// stop ends everything and removes the folder. The error names a program that
// had ended before, and what could not be removed.
func (c *ControlPlane) stop() error {
	err := c.procs.kill()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, c.logs())
	}
	return errors.Join(err, os.RemoveAll(c.dir), c.hold.Close())
}

// logsOf shows the last log lines when the test failed.
func (c *ControlPlane) logsOf(tb testing.TB) {
	tb.Helper()
	if tb.Failed() {
		tb.Log(c.logs())
	}
}

// logs are the last lines of each program's log.
func (c *ControlPlane) logs() string {
	const last = 10
	var out bytes.Buffer
	for _, p := range c.procs.list {
		data, err := os.ReadFile(c.path(p.name + ".log"))
		if err != nil {
			fmt.Fprintln(&out, err)
			continue
		}
		lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
		fmt.Fprintf(&out, "%s, last lines:\n%s\n", p.name, bytes.Join(lines[max(0, len(lines)-last):], []byte("\n")))
	}
	return out.String()
}

func (c *ControlPlane) path(name string) string { return filepath.Join(c.dir, name) }

// Kubeconfig is the path of a kubeconfig for a cluster admin.
func (c *ControlPlane) Kubeconfig() string { return c.path("kubeconfig") }

// KubeconfigFor makes a kubeconfig for another user and returns its path. Only
// RBAC decides what that one may.
func (c *ControlPlane) KubeconfigFor(tb testing.TB, user string, groups ...string) string {
	tb.Helper()
	cert, key, err := c.ca.user(user, groups...)
	if err != nil {
		tb.Fatal(err)
	}
	f, err := os.CreateTemp(c.dir, "kubeconfig-*")
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(f.Close(), c.writeKubeconfig(f.Name(), cert, key)); err != nil {
		tb.Fatal(err)
	}
	return f.Name()
}

// Config is a cluster admin's. It asks for protobuf, as the product does, and
// takes JSON where a resource knows nothing else.
func (c *ControlPlane) Config() *rest.Config {
	return &rest.Config{Host: c.host, TLSClientConfig: c.admin, QPS: 500, Burst: 1000, ContentConfig: rest.ContentConfig{
		ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON}}
}

// Client is a cluster admin's.
func (c *ControlPlane) Client() kubernetes.Interface { return kubernetes.NewForConfigOrDie(c.Config()) }

// Dynamic is a cluster admin's, for custom resources.
func (c *ControlPlane) Dynamic() dynamic.Interface { return dynamic.NewForConfigOrDie(c.Config()) }
