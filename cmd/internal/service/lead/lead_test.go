package lead

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func candidate(client *fake.Clientset, name string) *Lead {
	l := &Lead{logger: slog.New(slog.DiscardHandler), changed: make(chan struct{}), told: NewSeldom(time.Now)}
	l.lock = &noted{l, &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "unpend", Name: analystLease},
		Client: client.CoordinationV1(), LockConfig: resourcelock.ResourceLockConfig{Identity: name}}}
	return l
}

func (l *Lead) mustStand(t *testing.T, want, wantError string) {
	t.Helper()
	got, err := l.Standing()
	if got != want || (err == nil) != (wantError == "") || err != nil && !strings.Contains(err.Error(), wantError) {
		t.Errorf("%q %v, want %q %q", got, err, want, wantError)
	}
}

// One leads and the other stands by; the other leads once the first has ended, or cannot
// renew the lease; who cannot have it at all says why, and takes it once it can.
func TestOneLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		refused := errors.New("leases.coordination.k8s.io is forbidden")
		client.PrependReactor("*", "leases", func(k8stesting.Action) (bool, runtime.Object, error) { return refused != nil, nil, refused })
		a, b := candidate(client, "a"), candidate(client, "b")
		var log bytes.Buffer
		a.logger = slog.New(slog.NewTextHandler(&log, nil))
		endA := begun(t, a)
		pass(time.Minute)
		a.mustStand(t, "", "unpend/unpend-analyst: leases.coordination.k8s.io is forbidden")
		if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "lease=unpend/unpend-analyst error=\"leases.coordination.k8s.io is forbidden") {
			t.Errorf("the log, want one line: %s", said)
		}
		refused = nil
		pass(5 * time.Second)
		a.mustStand(t, "ok", "")
		begun(t, b)
		pass(time.Minute)
		a.mustStand(t, "ok", "")
		b.mustStand(t, "ok, standby", "")
		term, err := a.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		endA()
		pass(5 * time.Second)
		b.mustStand(t, "ok", "")
		if term.Err() == nil || a.Leads(t.Context()) != nil {
			t.Error("the first believes that it leads")
		}
		refused = errors.New("the API server is away")
		pass(time.Minute)
		b.mustStand(t, "", "is away")
		refused = nil
		pass(20 * time.Second)
		b.mustStand(t, "ok", "")
	})
}

// pass has time pass in the bubble.
func pass(d time.Duration) { <-time.After(d) }

// begun runs it until the test, or who called, ends it.
func begun(t *testing.T, l *Lead) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx) //nolint:errcheck // it is a constant
	}()
	end = func() {
		cancel()
		<-done
	}
	t.Cleanup(end)
	return end
}
