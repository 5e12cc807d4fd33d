package service

import (
	"context"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/remediate/notice"
)

// notices binds the ends of plans to their topic; nil where there is no bus. Beside the
// other roles the executor has theirs. Alone it opens one when there is something to
// tell, and again after it failed: carrying plans out needs none.
func (s *Service) notices() (publish func(context.Context, notice.Notice) error, done func()) {
	switch {
	case s.bus != nil:
		return notices{func(context.Context) (*bus.Bus, error) { return s.bus, nil }}.publish, func() {}
	case s.config.Bus.URL == "":
		return nil, func() {}
	}
	var own *bus.Bus
	open := func(ctx context.Context) (_ *bus.Bus, err error) {
		if own == nil {
			own, err = s.openBus(ctx)
		}
		return own, err
	}
	return notices{open}.publish, func() {
		if own != nil {
			own.Close()
		}
	}
}

// notices publishes them: of one plan the bus keeps the newest.
type notices struct {
	open func(context.Context) (*bus.Bus, error)
}

func (p notices) publish(ctx context.Context, n notice.Notice) error {
	id, body, err := n.Message()
	if err != nil {
		return err
	}
	b, err := p.open(ctx)
	if err != nil {
		return err
	}
	return b.PublishNewer(ctx, bus.Outcomes, n.Key(), id, body, n.Older)
}
