package acceptance

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/testdata/controlplane"
)

// R30 in its short form, with UNPEND_ALL=1 of larger storms, and with UNPEND_SOAK=1 as it is promised: an hour at 24 times the
// pace of a storm an hour.
const (
	flatStorms  = warmUp + 2*compared
	soakStorms  = 24
	flatPods    = 60
	wholePods   = 240
	flatEvents  = 250
	wholeEvents = 1_000
	soakEvery   = 150 * time.Second
	// flatPercent is what may be added over an hour. Storms without a pause come faster than
	// what is kept for some minutes leaves (NATS's window for duplicates, requests by
	// namespace): these may add quickPercent until that is full, after some 80 s.
	flatPercent  = 5
	quickPercent = 15
	// warmUp are the storms that nothing is compared with: caches fill, and the heap gets to
	// its size.
	warmUp = 2
	// compared are the storms at each end whose least counts: what a collector has not got to
	// yet is no growth, and a busy machine lets it wait.
	compared = 3
)

// needs is what the service needs once a storm is over.
type needs struct {
	goroutines float64
	memory     int64 // that is resident
}

// least is the least of each that any of some storms left.
func least(of []needs) needs {
	out := of[0]
	for _, n := range of {
		out = needs{min(out.goroutines, n.goroutines), min(out.memory, n.memory)}
	}
	return out
}

// promiseR30: storms come and go, and the service needs no more after the last than after
// the first, and holds no lease once it has ended.
func promiseR30(t *testing.T) {
	needsControlPlane(t)
	storms, every, percent := flatStorms, time.Duration(0), float64(quickPercent)
	pods, events := controlplane.Of(flatPods, wholePods), controlplane.Of(flatEvents, wholeEvents)
	if soak() {
		storms, every, percent = soakStorms, soakEvery, flatPercent
	}
	c := start(t, controlplane.Extras{Alone: true})
	s := calm(t, c)
	o := serve(t, c)
	s.service = o.process
	var after []needs
	for n := range storms {
		pause := time.After(every)
		s.events(s.pods(pods), events)
		o.counts(t, "false", float64((n+1)*stormOwners))
		s.over()
		o.counts(t, "true", float64((n+1)*stormOwners))
		resident, _ := controlplane.MemoryOf(t, o.cmd.Process.Pid)
		after = append(after, needs{o.figure(t, "go_goroutines"), resident})
		<-pause
	}
	first, last := least(after[warmUp:warmUp+compared]), least(after[len(after)-compared:])
	held := 0
	for what, grown := range map[string]float64{"goroutines": last.goroutines/first.goroutines - 1, "memory": float64(last.memory)/float64(first.memory) - 1} {
		if held++; grown > percent/100 {
			held--
			t.Errorf("%s have grown by %.1f %%: %+v", what, 100*grown, after)
		}
	}
	o.signal(syscall.SIGTERM)
	o.exits(t, 20*time.Second)
	leases, err := c.Client().CoordinationV1().Leases("").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	held++
	for _, l := range leases.Items {
		if ptr.Deref(l.Spec.HolderIdentity, "") != "" && l.Namespace != metav1.NamespaceSystem {
			held = 0
			t.Errorf("lease %s/%s is held by %s", l.Namespace, l.Name, *l.Spec.HolderIdentity)
		}
	}
	report(t, held, 3, fmt.Sprintf("%d storms of %d pods and %d events: %.0f goroutines and %d MiB after the last %d, %.0f and %d MiB after as many before, 0 unclosed leases",
		storms, pods, events, last.goroutines, last.memory>>20, compared, first.goroutines, first.memory>>20))
}

// counts waits until so many incidents were published, over or not, and none is due.
func (o *observer) counts(t *testing.T, resolved string, n float64) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, fmt.Sprintf("%.0f incidents are published, resolved %s", n, resolved), func() (bool, string) {
		o.lives(t)
		is, due := o.figure(t, fmt.Sprintf("unpend_incidents_published_total{resolved=%q}", resolved)), o.figure(t, "unpend_incidents_due")
		return is >= n && due == 0, fmt.Sprintf("%.0f, %.0f due", is, due)
	})
}

// over ends a storm: its pods and their owners are gone.
func (s *storm) over() {
	s.Helper()
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	must(s.T, s.client.CoreV1().Pods(s.ns).DeleteCollection(s.Context(), now, metav1.ListOptions{}))
	must(s.T, s.client.AppsV1().ReplicaSets(s.ns).DeleteCollection(s.Context(), now, metav1.ListOptions{}))
	must(s.T, s.client.CoreV1().Events(s.ns).DeleteCollection(s.Context(), now, metav1.ListOptions{}))
}
