package service

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// parts are what runs side by side until one of them fails: then all end. A panic in one is
// a failure, too, for a process of which a part is gone looks well and does not work.
type parts struct{ *errgroup.Group }

func newParts(ctx context.Context) (parts, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	return parts{g}, ctx
}

func (p parts) begin(name string, run func() error) {
	p.Go(func() (err error) {
		defer func() {
			if why := recover(); why != nil {
				err = fmt.Errorf("%s: panic: %v\n%s", name, why, debug.Stack())
			}
		}()
		return run()
	})
}
