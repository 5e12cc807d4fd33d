package library

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/unpend/unpend/cmd/internal/bus"
)

// killedIn tells the process that is killed what it reads, and where it keeps it.
const killedIn = "UNPEND_TEST_INGEST"

type killed struct {
	Dir, Slack string // the address of Slack's API
	Config     Config
}

// A process that reads Slack and Jira, brings it to the bus, and is killed at any moment: another
// one goes on where it was, in the end each document is there once, and then nothing is read
// again. It is this test's binary, run again.
func TestKilledIngest(t *testing.T) {
	if text := os.Getenv(killedIn); text != "" {
		ingests(t, text)
		return
	}
	m := newTeam(t)
	m.slack.Most, m.jira.Most = 20, 5
	k := killed{t.TempDir(), m.slack.URL(), m.config}
	text, err := json.Marshal(k)
	must(t, err)
	x := &killer{at: []int{2, 5, 9, 13, 17}, asks: make(chan *os.Process, 1)}
	m.slack.Before = func(http.ResponseWriter, string, *http.Request) bool { return x.asked(t) }
	m.jira.Before = func(http.ResponseWriter, *http.Request) bool { return x.asked(t) }
	starts, want := 0, len(x.at)+1
	for done := false; !done; {
		starts++
		done = x.start(t, string(text))
	}
	if starts != want {
		t.Errorf("it was started %d times, want %d", starts, want)
	}
	threadsRead := m.slack.Calls("conversations.replies")
	if !x.start(t, string(text)) {
		t.Error("it was killed when all was read")
	}
	if n := m.slack.Calls("conversations.replies"); n != threadsRead || n < answered {
		t.Errorf("%d threads were read, and %d once more when all was", threadsRead, n-threadsRead)
	}
	for _, dir := range []string{filepath.Join(k.Dir, "library"), ""} { // what it kept itself, and what the bus did
		l := m.opened(t, filepath.Join(k.Dir, "bus"), dir)
		has(t, l, threads+tickets)
		for words, n := range map[string]int{"Xid 1": 1, "Xid 30": 1, "Xid 501": 1, "Xid 519": 1, "Xid 999": 0, "Xid 998": 0} {
			knows(t, l, words, n)
		}
	}
	if c := append(m.slack.Complaints(), m.jira.Complaints()...); len(c) > 0 {
		t.Error(c)
	}
}

// opened is a replica of what a killed process has left.
func (m *team) opened(t *testing.T, store, dir string) *Library {
	t.Helper()
	m.bus.Close()
	var err error
	m.bus, err = bus.Open(t.Context(), bus.Options{Cluster: "here", StoreDir: store, Documents: 8 << 20})
	must(t, err)
	t.Cleanup(m.bus.Close)
	l, _ := m.replica(t, dir, false)
	return l
}

// ingests reads both to their ends.
func ingests(t *testing.T, text string) {
	t.Helper()
	var k killed
	must(t, json.Unmarshal([]byte(text), &k))
	k.Config.Slack.url = k.Slack
	b, err := bus.Open(t.Context(), bus.Options{Cluster: "here", StoreDir: filepath.Join(k.Dir, "bus"), Documents: 8 << 20})
	must(t, err)
	defer b.Close()
	l, end := (&team{bus: b, plans: noPlans(), config: k.Config, now: time.Now}).replica(t, filepath.Join(k.Dir, "library"), true)
	reads(t, l)
	end()
}

// killer kills the process that asks for something for the so-manyth time.
type killer struct {
	mu    sync.Mutex
	calls int
	at    []int
	asks  chan *os.Process
}

func (x *killer) asked(t *testing.T) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls++
	if !slices.Contains(x.at, x.calls) {
		return false
	}
	p := <-x.asks
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	return false
}

// start runs the process, and says whether it came to its end.
func (x *killer) start(t *testing.T, text string) bool {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledIngest$", "-test.timeout=3m")
	c.Env = append(os.Environ(), killedIn+"="+text)
	out := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(out)
	must(t, err)
	defer f.Close()
	c.Stdout, c.Stderr = f, f
	must(t, c.Start())
	select {
	case <-x.asks: // it ended before it was to be killed
	default:
	}
	x.asks <- c.Process
	err = c.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != -1) {
		says, _ := os.ReadFile(out) //nolint:errcheck // only shown
		t.Fatalf("%v: %s", err, says)
	}
	return err == nil
}
