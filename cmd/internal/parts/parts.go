// Package parts runs what one process does side by side.
package parts

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// Group are parts that run until one of them fails: then all end. A panic in one is a failure,
// too, for a process of which a part is gone looks well and does not work.
type Group struct{ *errgroup.Group }

// New is a group without parts, and the context that ends when one fails.
func New(ctx context.Context) (Group, context.Context) {
	g, ctx := errgroup.WithContext(ctx)
	return Group{g}, ctx
}

// Begin runs a part. By its name the error of a panic tells which it was.
func (g Group) Begin(name string, run func() error) {
	g.Go(func() (err error) {
		defer func() {
			if why := recover(); why != nil {
				err = fmt.Errorf("%s: panic: %v\n%s", name, why, debug.Stack())
			}
		}()
		return run()
	})
}
