// Package webhook takes calls from outside. An Alertmanager, and who signs as Standard
// Webhooks has it, have waiting pods looked at now: a call says which, and nothing else of it
// is believed, for what is true of them is read from the cluster. PagerDuty says who sees to a
// page of ours, and decides nothing by it.
//
// Rules of this package:
//   - Who calls is checked first, and no more of a body is read than is taken.
//   - What is refused is answered with one sentence, counted, and does nothing.
//   - What cannot be done now is answered with 503, which every caller tries again.
package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Pod that is to be looked at.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Options of the hooks; one without its secret is not there.
type Options struct {
	// Look has pods looked at now; those that do not wait are nobody's business. An error
	// says that it cannot now. Required.
	Look func(context.Context, []Pod) error
	// Token is the bearer token of the Alertmanager.
	Token string
	// Secrets are those of Standard Webhooks (whsec_…).
	Secrets []string
	// PagerDuty are the signing secrets of its webhook subscriptions, and Said hears what
	// people say there; an error says that it cannot now.
	PagerDuty []string
	Said      func(context.Context, Said) error
	// Now is the time; the machine's without it.
	Now func() time.Time
	// Logger of what cannot be done; nothing is logged without it.
	Logger *slog.Logger
	// Registerer of the metrics; required.
	Registerer prometheus.Registerer
}

const (
	// maxBody is of a call that is not known to be anybody's yet, in bytes; Standard Webhooks
	// has payloads of less than 20 kB.
	maxBody = 64 << 10
	// maxAlerts is of a call of the Alertmanager, whose token came before it, in bytes.
	maxAlerts = 1 << 20
	// maxPods of one call are looked at.
	maxPods = 100
)

// refusal is why a call does nothing.
type refusal struct {
	code   int
	result string
	says   string
}

func (r *refusal) Error() string { return r.says }

func refuse(code int, result, format string, of ...any) error {
	return &refusal{code, result, fmt.Sprintf(format, of...)}
}

// Hooks are an http.Handler of POST /hooks/alertmanager, /hooks/standard and /hooks/pagerduty.
type Hooks struct {
	http.Handler
	opts   Options
	counts *prometheus.CounterVec

	mu  sync.Mutex
	had map[string]time.Time // what was dealt with, and its own time
}

// New makes them.
func New(o Options) (*Hooks, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Hooks{opts: o, had: map[string]time.Time{}, counts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_hook_calls_total", Help: "Calls from outside, by hook and what came of them."}, []string{"hook", "result"})}
	if err := o.Registerer.Register(h.counts); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	mux := http.NewServeMux()
	if o.Token != "" {
		mux.Handle("POST /hooks/alertmanager", h.hook("alertmanager", h.alerts))
	}
	if len(o.Secrets) > 0 {
		keys, err := Secrets("hooks.secretFile", o.Secrets)
		if err != nil {
			return nil, err
		}
		mux.Handle("POST /hooks/standard", h.hook("standard", h.standard(keys)))
	}
	if len(o.PagerDuty) > 0 {
		keys, err := pagerDutySecrets(o.PagerDuty)
		if err != nil {
			return nil, err
		}
		mux.Handle("POST /hooks/pagerduty", h.hook("pagerduty", h.pagerDuty(keys)))
	}
	h.Handler = mux
	return h, nil
}

// called is what a call wants.
type called struct {
	do      func(context.Context) (says string, err error) // an error: not now
	claimed []string                                       // to be released when it is not done
	result  string                                         // that it is counted under; "taken" without it
}

// reader is who reads the calls of one hook: what is none of theirs is a refusal.
type reader func(http.ResponseWriter, *http.Request) (called, error)

// hook answers calls by what reading one comes to.
func (h *Hooks) hook(name string, read reader) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := read(w, r)
		if no, ok := errors.AsType[*refusal](err); ok {
			h.counts.WithLabelValues(name, no.result).Inc()
			http.Error(w, no.says, no.code)
			return
		}
		says, err := c.do(r.Context())
		if err != nil {
			h.release(c.claimed)
			h.counts.WithLabelValues(name, "away").Inc()
			h.opts.Logger.WarnContext(r.Context(), "a call from outside has to come again", "hook", name, "error", err)
			http.Error(w, "it cannot be looked at now, try again", http.StatusServiceUnavailable)
			return
		}
		h.counts.WithLabelValues(name, cmp.Or(c.result, "taken")).Inc()
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintln(w, says)
	})
}

// look has pods looked at.
func (h *Hooks) look(pods []Pod) func(context.Context) (string, error) {
	pods = sound(pods)
	return func(ctx context.Context) (string, error) {
		if len(pods) > 0 {
			if err := h.opts.Look(ctx, pods); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%d pods are looked at if they wait", len(pods)), nil
	}
}

// sound are the pods that could be, each once.
func sound(pods []Pod) (out []Pod) {
	seen := map[Pod]bool{}
	for _, p := range pods {
		if len(out) < maxPods && !seen[p] && len(validation.IsDNS1123Label(p.Namespace)) == 0 && len(validation.IsDNS1123Subdomain(p.Name)) == 0 {
			seen[p], out = true, append(out, p)
		}
	}
	return out
}

// body reads what is taken of one.
func body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	all, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, refuse(http.StatusRequestEntityTooLarge, "large", "the body is larger than %d bytes", most)
	}
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "truncated", "the body could not be read to its end")
	}
	return all, nil
}

// claim notes that something is dealt with, of the given time; false where it is already,
// with the time that it had then. What is older than keep is forgotten.
func (h *Hooks) claim(key string, at time.Time, keep time.Duration) (had time.Time, fresh bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.opts.Now()
	if had, known := h.had[key]; known && now.Sub(had) < keep {
		return had, false
	}
	for k, t := range h.had {
		if now.Sub(t) >= remembered {
			delete(h.had, k)
		}
	}
	h.had[key] = at
	return time.Time{}, true
}

// renew notes a later time of what was dealt with.
func (h *Hooks) renew(key string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at.After(h.had[key]) {
		h.had[key] = at
	}
}

func (h *Hooks) release(keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range keys {
		delete(h.had, k)
	}
}
