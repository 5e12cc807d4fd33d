package program

import (
	"context"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/remediate"
)

// notices binds the ends of plans to their topic; nil where there is no bus. Beside the
// other roles the executor has theirs. Alone it opens one when there is something to
// tell, and again after it failed: carrying plans out needs none.
func (s *service) notices() (publish func(context.Context, remediate.Notice) error, done func()) {
	switch {
	case s.bus != nil:
		return publishNotice(func(context.Context) (*bus.Bus, error) { return s.bus, nil }), func() {}
	case s.config.Bus.URL == "":
		return nil, func() {}
	}
	var own *bus.Bus
	open := func(ctx context.Context) (_ *bus.Bus, err error) {
		if own == nil {
			own, err = bus.Open(ctx, bus.Options{URL: s.config.Bus.URL, MaxBytes: s.config.Bus.MaxBytes})
		}
		return own, err
	}
	return publishNotice(open), func() {
		if own != nil {
			own.Close()
		}
	}
}

// publishNotice binds the executor's type to its topic.
func publishNotice(open func(context.Context) (*bus.Bus, error)) func(context.Context, remediate.Notice) error {
	return func(ctx context.Context, n remediate.Notice) error {
		id, body, err := n.Message()
		if err != nil {
			return err
		}
		b, err := open(ctx)
		if err != nil {
			return err
		}
		return b.PublishNewer(ctx, bus.Outcomes, n.Key(), id, body, n.Older)
	}
}
