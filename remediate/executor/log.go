package executor

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// logged is what was said in the log of the plans that this process carries out, so that
// each is said once, no matter how often a plan is looked at.
type logged struct {
	mu      sync.Mutex
	carried map[string]types.UID // plans whose beginning, or going on, was said
	failing map[string]string    // plans that cannot be looked at, and the words for it
}

func newLogged() *logged {
	return &logged{carried: map[string]types.UID{}, failing: map[string]string{}}
}

// carries says whether it is news that this process carries a plan out.
func (l *logged) carries(rem *v1alpha1.Remediation) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.carried[rem.Name] == rem.UID {
		return false
	}
	l.carried[rem.Name] = rem.UID
	return true
}

// fails says whether it is news that, or how, a plan cannot be looked at. The same words
// with other numbers (ports, versions) are none.
func (l *logged) fails(name string, err error) bool {
	words := strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, err.Error())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing[name] == words {
		return false
	}
	l.failing[name] = words
	return true
}

func (l *logged) works(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failing, name)
}

func (l *logged) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.carried, name)
}

// logCarried says that a plan begins, or goes on that another process has begun.
func (x *Executor) logCarried(ctx context.Context, what string, rem *v1alpha1.Remediation) {
	if x.logged.carries(rem) {
		x.Logger.InfoContext(ctx, what, "plan", rem.Name, "incident", rem.Spec.Incident, "phase", string(rem.Status.Phase), "step", rem.Status.Progress, "message", rem.Spec.Title)
	}
}

// logEnd says how a plan has ended, and how many seconds after it began; 0 for one that
// never has.
func (x *Executor) logEnd(ctx context.Context, rem *v1alpha1.Remediation) {
	x.logged.forget(rem.Name)
	took := time.Duration(0)
	if began, ended := rem.Status.Began, rem.Status.Ended; began != nil && ended != nil {
		took = ended.Sub(began.Time)
	}
	x.Logger.InfoContext(ctx, "a plan ends", "plan", rem.Name, "incident", rem.Spec.Incident, "phase", string(rem.Status.Phase), "message", rem.Status.Message, "seconds", took.Round(time.Millisecond).Seconds())
}

// logNewer says that a plan is left alone that a newer program has written.
func (x *Executor) logNewer(ctx context.Context, rem *v1alpha1.Remediation) {
	if x.logged.carries(rem) {
		x.Logger.WarnContext(ctx, "a plan was written by a newer unpend and is left alone", "plan", rem.Name, "phase", string(rem.Status.Phase), "schema", rem.Written(), "known", v1alpha1.Schema)
	}
}
