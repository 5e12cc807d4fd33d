package analyst

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An answer stands while the API server has none; what it refuses is refused at once.
func TestAnswersLast(t *testing.T) {
	away := errors.New("connection refused")
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "remediations"}, "", errors.New("no role"))
	type answer struct {
		n   int
		err error
	}
	var next answer
	ask := Lasting(func(context.Context) (int, error) { return next.n, next.err })
	for i, step := range []struct{ is, want answer }{
		{answer{0, away}, answer{0, away}}, // there is none to go on from
		{answer{7, nil}, answer{7, nil}},
		{answer{0, away}, answer{7, nil}},
		{answer{0, away}, answer{7, nil}},
		{answer{8, nil}, answer{8, nil}},
		{answer{0, refused}, answer{0, refused}},
		{answer{0, away}, answer{0, away}},
	} {
		next = step.is
		if n, err := ask(t.Context()); n != step.want.n || !errors.Is(err, step.want.err) {
			t.Errorf("step %d: %d, %v", i, n, err)
		}
	}
}
