package executor

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// lines is a log, in JSON.
type lines struct{ bytes.Buffer }

type line struct {
	Level, Msg, Plan, Incident, Phase, Message, Error string
	Seconds                                           float64
}

// about are the lines of a plan.
func (l *lines) about(t *testing.T, plan string) []line {
	t.Helper()
	var out []line
	for text := range strings.Lines(l.String()) {
		var is line
		if err := json.Unmarshal([]byte(text), &is); err != nil {
			t.Fatal(err, text)
		}
		if is.Plan == plan {
			out = append(out, is)
		}
	}
	return out
}

// of wants one line of the beginning and one of the end of a plan that was carried out, and
// between them, where every look is by another executor, that it goes on.
func (l *lines) of(t *testing.T, rem *v1alpha1.Remediation, goesOn bool) {
	t.Helper()
	all := l.about(t, rem.Name)
	if len(all) < 2 {
		t.Fatalf("%+v", all)
	}
	first, last, between := all[0], all[len(all)-1], all[1:len(all)-1]
	if want := (line{"INFO", "a plan begins", rem.Name, rem.Spec.Incident, "Running", rem.Spec.Title, "", 0}); first != want {
		t.Errorf("%+v, want %+v", first, want)
	}
	// The API server keeps whole microseconds.
	if took := rem.Status.Ended.Sub(rem.Status.Began.Time).Seconds(); math.Abs(last.Seconds-took) < 0.002 {
		last.Seconds = took
	}
	if want := (line{"INFO", "a plan ends", rem.Name, rem.Spec.Incident, string(rem.Status.Phase), rem.Status.Message, "", rem.Status.Ended.Sub(rem.Status.Began.Time).Seconds()}); last != want {
		t.Errorf("%+v, want %+v", last, want)
	}
	if (len(between) > 0) != goesOn || slices.ContainsFunc(between, func(l line) bool { return l.Msg != "a plan goes on" }) {
		t.Errorf("%+v", between)
	}
}

// A plan that cannot be looked at is said once as long as that is why, no matter how often
// it is tried, and again once it has been looked at in between; each try comes later.
func TestFailureIsLoggedOnce(t *testing.T) {
	const name = "0123456789"
	var fails error
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{v1alpha1.Remediations: "RemediationList"})
	client.PrependReactor("get", "remediations", func(clienttesting.Action) (bool, runtime.Object, error) { return fails != nil, nil, fails })
	var said lines
	x := New(Options{Deps: Deps{Dynamic: client, Now: time.Now, Logger: slog.New(slog.NewJSONHandler(&said, nil))}})
	var waits []time.Duration
	for _, fails = range []error{errors.New("port 4711 is closed"), errors.New("port 4712 is closed"), errors.New("forbidden"), errors.New("forbidden"), nil, errors.New("forbidden")} {
		r, err := x.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err != nil {
			t.Error(err)
		}
		waits = append(waits, r.RequeueAfter)
	}
	var words []string
	for _, l := range said.about(t, name) {
		words = append(words, l.Level+" "+l.Error)
	}
	const read = "ERROR read plan 0123456789: "
	if want := []string{read + "port 4711 is closed", read + "forbidden", read + "forbidden"}; !slices.Equal(words, want) {
		t.Errorf("%q, want %q", words, want)
	}
	if want := []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry, 8 * firstRetry, 0, firstRetry}; !slices.Equal(waits, want) {
		t.Errorf("%s, want %s", waits, want)
	}
}
