package journal

import (
	"context"
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// script is a program of a test's own.
type script struct {
	there, back []Step
	left        string
	pods        []diagnosis.Target
	after       string
}

func (s *script) Steps() []Step                { return s.there }
func (s *script) WayBack() []Step              { return s.back }
func (s *script) EveryWayBack() []Step         { return s.back }
func (s *script) Left() string                 { return s.left }
func (s *script) Achieved() string             { return "all is done" }
func (s *script) After(context.Context) string { return s.after }
func (s *script) Pods() []diagnosis.Target     { return s.pods }

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// at is a time so long after noon.
func at(after time.Duration) metav1.MicroTime { return metav1.NewMicroTime(noon.Add(after)) }

// done is a step that has nothing left to do.
func done(context.Context, *Entry) (string, error) { return "", nil }

// step is one of a minute.
func step(id v1alpha1.StepID, text string, try func(context.Context, *Entry) (string, error)) Step {
	return Step{ID: id, Text: text, Within: time.Minute, Try: try}
}

// begun is a plan that has just begun, at noon.
func begun() *v1alpha1.Remediation {
	began := at(0)
	return &v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: "plan"}, Status: v1alpha1.RemediationStatus{Phase: v1alpha1.Running, Began: &began}}
}

// clock is of a test that does not wait.
type clock struct{ now time.Time }

func (c *clock) options() Options {
	return Options{Now: func() time.Time { return c.now }, Logger: slog.New(slog.DiscardHandler)}
}

func machine(t *testing.T, o Options, rem *v1alpha1.Remediation, p Program) *Machine {
	t.Helper()
	m, err := New(o, rem, p)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
