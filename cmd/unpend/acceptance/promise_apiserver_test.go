package acceptance

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

const (
	troubleFor = 10 * time.Second // of one kind
	hangFor    = 20 * time.Second
	lookFor    = 30 * time.Second // that requests are counted for, with trouble and without
	calmIn     = time.Minute      // what a plan has after the trouble to come to its end
)

// promiseR16: the API server is in trouble while a repartition is carried out, and while the
// service explains what waits. Neither panics, or asks more than twice as much as without;
// the executor leaves the server alone as long as it says, and has brought the plan to its
// end a minute later; the service knows and tells by then what is so.
func promiseR16(t *testing.T) {
	needsControlPlane(t)
	s := troubles{notes: map[string]string{}}
	s.baseline(t)
	kinds := [][]trouble{
		{{"429", troubleFor, tooMany}, {"500", troubleFor, broken}, {"410", troubleFor, gone}},
		{{"hang", hangFor, hangs}, {"reset", troubleFor, resets}},
		{{"random", 0, nil}},
	}
	var lanes sync.WaitGroup
	for _, list := range kinds {
		lanes.Go(func() {
			t.Run("lane "+list[0].name, func(t *testing.T) {
				l := newLane(t)
				for _, k := range list {
					if t.Run(k.name, func(t *testing.T) { s.play(t, l, k) }) {
						s.add(func() { s.held++ })
					}
				}
			})
		})
	}
	lanes.Go(func() {
		if t.Run("service", s.service) {
			s.add(func() { s.held++ })
		}
	})
	lanes.Wait()
	report(t, s.held, 7, fmt.Sprintf("undisturbed %d requests in %.0f s, at most %.2f times that; worst convergence %.1f s after; %d waits of Retry-After, none cut short; %d restarts (lease lost), 0 panics; %s",
		s.base, lookFor.Seconds(), s.ratio, s.worst.Seconds(), s.waited, s.restarts, strings.Join(s.lines(), ", ")))
}

// trouble is one kind.
type trouble struct {
	name   string
	long   time.Duration
	answer func(*asked) http.HandlerFunc
}

// troubles is what the lanes of R16 share.
type troubles struct {
	mu                     sync.Mutex
	base, plan             int     // requests of an undisturbed run; until its plan had ended
	idle                   float64 // a second, afterwards
	held, restarts, waited int
	ratio                  float64
	worst                  time.Duration
	notes                  map[string]string
}

func (s *troubles) add(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *troubles) lines() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(s.notes)) {
		out = append(out, k+": "+s.notes[k])
	}
	return out
}

func tooMany(*asked) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Retry-After", "2") // as max-in-flight does, with 1
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
	}
}

func broken(*asked) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		http.Error(w, "etcdserver: request timed out", http.StatusInternalServerError)
	}
}

func resets(*asked) http.HandlerFunc { return reset }

func hangs(*asked) http.HandlerFunc { return hang }

// gone ends every watch with what an API server says whose history is too short.
func gone(a *asked) http.HandlerFunc {
	if a.URL.Query().Get("watch") == "" {
		return nil
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}}`+"\n")
	}
}

// dice answers some requests with one of all kinds of trouble. A hang is a short one:
// a whole one at this rate would leave nothing but hanging.
func dice(percent int, seed uint64) fault {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(16, seed))
	return func(a *asked) http.HandlerFunc {
		mu.Lock()
		hit, kind := r.IntN(100) < percent, r.IntN(5)
		mu.Unlock()
		if !hit {
			return nil
		}
		switch kind {
		case 0:
			return tooMany(a)
		case 1:
			return broken(a)
		case 2:
			return reset
		case 3:
			return gone(a)
		}
		return func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(5 * time.Second):
			}
			panic(http.ErrAbortHandler)
		}
	}
}

// requestTally counts requests, and notes which were told to wait, and when they came again.
type requestTally struct {
	mu     sync.Mutex
	began  time.Time
	n      int                  // within lookFor
	told   map[string]time.Time // a write → until when it is to be left
	waited int
	early  []string
	next   fault
}

func newRequestTally() *requestTally {
	return &requestTally{began: time.Now(), told: map[string]time.Time{}}
}

func (y *requestTally) set(f fault) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.next = f
}

// look counts a request and passes it on. Of reads several parts of the process ask
// the same thing; a write is made by one alone, and is held to what it was told. The
// elector's is not: it gives its lease back once more when it ends.
func (y *requestTally) look(a *asked) http.HandlerFunc {
	y.mu.Lock()
	now, next := time.Now(), y.next
	if now.Sub(y.began) < lookFor {
		y.n++
	}
	key := ""
	if a.write != "" {
		key = a.Method + " " + a.URL.Path
	}
	if until, told := y.told[key]; told {
		if y.waited++; now.Before(until) {
			y.early = append(y.early, fmt.Sprintf("%s %s early", key, until.Sub(now).Round(time.Millisecond)))
		}
		delete(y.told, key)
	}
	y.mu.Unlock()
	if next == nil {
		return nil
	}
	answer := next(a)
	if answer == nil || key == "" {
		return answer
	}
	return func(w http.ResponseWriter, r *http.Request) {
		answer(w, r)
		if w.Header().Get("Retry-After") != "" {
			y.mu.Lock()
			y.told[key] = time.Now().Add(2 * time.Second)
			y.mu.Unlock()
		}
	}
}

func (y *requestTally) forget() {
	y.mu.Lock()
	defer y.mu.Unlock()
	clear(y.told)
}

func (y *requestTally) seen() (n, waited int, early []string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.n, y.waited, y.early
}

// baseline is how much an executor asks that nothing is in the way of: it carries a
// plan out and then leads on.
func (s *troubles) baseline(t *testing.T) {
	t.Run("undisturbed", func(t *testing.T) {
		l := newLane(t)
		c, y, k := l.tended(t)
		if status := c.ends(t, time.Minute); status.Phase != v1alpha1.Succeeded {
			t.Errorf("%s: %s", status.Phase, status.Message)
		}
		s.plan, _, _ = y.seen()
		idle := time.Until(y.began.Add(lookFor))
		<-time.After(idle)
		k.stop(t)
		s.base, _, _ = y.seen()
		s.idle = float64(s.base-s.plan) / idle.Seconds()
	})
}

// tended is a plan that an executor which is restarted when it ends carries out.
func (l *lane) tended(t *testing.T) (*cell, *requestTally, *kubelet) {
	t.Helper()
	c := l.newCell(t)
	setGuards(t, l, c.ns, "breaker: {failures: 1000}")
	c.approve(t)
	y := newRequestTally()
	proxy := newFaultProxy(t, l, c.ns, "executor-"+c.ns)
	proxy.set(y.look)
	return c, y, keepRunning(t, executorConfig(t, c.ns, "evict: 90s, leave: 90s, manager: 90s, wedge: 90s, run: 90s"), proxy, y.forget)
}

// play has the trouble begin when the first of the victims has been evicted.
func (s *troubles) play(t *testing.T, l *lane, k trouble) {
	c, y, kept := l.tended(t)
	if k.answer == nil {
		s.random(t, l, c, y, kept)
		return
	}
	c.reaches(t, time.Minute, "evicts", func(v v1alpha1.RemediationStatus) bool { return strings.HasPrefix(cmp.Or(v.Progress, "0"), "3/") })
	y.set(k.answer)
	<-time.After(k.long)
	y.set(nil)
	over := time.Now()
	status := c.ends(t, calmIn)
	took := max(0, status.Ended.Sub(over))
	c.outcome(t, status, false)
	<-time.After(time.Until(y.began.Add(lookFor)))
	s.note(t, y, kept, k.name, took, s.base, "")
}

// randomly is for how long the dice are rolled, of how many requests of a hundred, and how long
// a plan has at least: for a minute at three times the rate, and with UNPEND_SOAK=1 as it is
// promised.
func randomly() (long time.Duration, percent int, each time.Duration) {
	if soak() {
		return time.Hour, 5, 15 * time.Second
	}
	return time.Minute, 15, 0
}

// random rolls the dice. One plan after the other is carried out, and forgotten: an executor
// that has stopped a hundred pods in an hour begins no more. As many requests as they would
// make undisturbed are what theirs are compared with.
func (s *troubles) random(t *testing.T, l *lane, c *cell, y *requestTally, kept *kubelet) {
	randomFor, percent, each := randomly()
	over := time.Now().Add(randomFor)
	y.set(dice(percent, 1))
	calm := time.AfterFunc(randomFor, func() { y.set(nil) })
	defer calm.Stop()
	plans, early, executor := 0, 0, c.ns
	var last v1alpha1.RemediationStatus
	for {
		next := time.After(min(each, time.Until(over)))
		if !t.Run(fmt.Sprintf("plan %d", plans), func(t *testing.T) {
			if plans > 0 {
				c = l.cellFor(t, executor, l.Namespace(t))
				c.approve(t)
			}
			last = c.ends(t, time.Until(over)+calmIn)
			c.outcome(t, last, false)
		}) {
			return
		}
		plans++
		if time.Since(y.began) < lookFor {
			early++
		}
		if !time.Now().Before(over) {
			break
		}
		<-next
	}
	least := int(s.idle*lookFor.Seconds()) + (early+1)*s.plan
	s.note(t, y, kept, "random", max(0, last.Ended.Sub(over)), least, fmt.Sprintf(", %d plans at %d %% for %.0f s", plans, percent, randomFor.Seconds()))
}

// note judges what was counted. Least is what an undisturbed executor would have
// asked.
func (s *troubles) note(t *testing.T, y *requestTally, kept *kubelet, name string, took time.Duration, least int, more string) {
	t.Helper()
	restarts := kept.stop(t)
	n, waited, early := y.seen()
	ratio := float64(n) / float64(least)
	if ratio > 2 {
		t.Errorf("%d requests in %s, undisturbed %d", n, lookFor, least)
	}
	if len(early) > 0 {
		t.Errorf("asked before they were to: %s", strings.Join(early, ", "))
	}
	s.add(func() {
		s.restarts, s.waited = s.restarts+restarts, s.waited+waited
		s.ratio, s.worst = max(s.ratio, ratio), max(s.worst, took)
		s.notes[name] = fmt.Sprintf("%d requests, %d restarts, %.1f s%s", n, restarts, took.Seconds(), more)
	})
}

// kubelet restarts an executor that has ended, a second later.
type kubelet struct {
	halt, ended chan struct{}
	once        sync.Once
	restarts    int
	wrong       []string // what it said that was no orderly end
	mu          sync.Mutex
	now         *process
}

// kill ends the one that runs now at once; another is started a second later.
func (k *kubelet) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now.kill()
}

// start starts the next one.
func (k *kubelet) start(t *testing.T, config string, proxy *faultProxy) *process {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = startExecutor(t, "executor-0", config, proxy)
	return k.now
}

// keepRunning starts one. A new process has not heard what the one before was told.
func keepRunning(t *testing.T, config string, proxy *faultProxy, again func()) *kubelet {
	t.Helper()
	k := &kubelet{halt: make(chan struct{}), ended: make(chan struct{})}
	p := k.start(t, config, proxy)
	go func() {
		defer close(k.ended)
		for {
			select {
			case <-k.halt:
				p.kill()
				k.look(p)
				return
			case <-p.ended:
			}
			k.look(p)
			select {
			case <-k.halt:
				return
			case <-time.After(time.Second):
			}
			k.restarts++
			again()
			p = k.start(t, config, proxy)
		}
	}()
	t.Cleanup(func() { k.stop(t) })
	return k
}

// look wants an orderly end of a process, or none.
func (k *kubelet) look(p *process) {
	for _, line := range p.out.all() {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") || strings.Contains(line, "Observed a panic") {
			k.wrong = append(k.wrong, line)
		}
	}
	if code := p.cmd.ProcessState.ExitCode(); code > exitError {
		k.wrong = append(k.wrong, fmt.Sprintf("exit %d", code))
	}
}

// stop ends it, and says how often it was restarted.
func (k *kubelet) stop(t *testing.T) int {
	t.Helper()
	k.once.Do(func() { close(k.halt) })
	<-k.ended
	for _, w := range k.wrong {
		t.Error(w)
	}
	k.wrong = nil
	return k.restarts
}
