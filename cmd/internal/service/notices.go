package service

import (
	"context"
	"os"
	"sync"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/service/lead"
	"github.com/unpend/unpend/remediate/notice"
)

// notices binds the ends of plans to their topic; nil where there is no bus.
func (s *Service) notices() func(context.Context, notice.Notice) error {
	if !s.hasBus() {
		return nil
	}
	return notices{s.late.get}.publish
}

// hasBus says whether there is one for this process to speak by.
func (s *Service) hasBus() bool { return s.bus != nil || s.config.Bus.URL != "" }

// lateBus is the bus of a process that can do without: beside other roles it is theirs; alone
// it is opened when there is something to say, and again after that failed.
type lateBus struct {
	*Service
	mu  sync.Mutex
	own *bus.Bus
}

func (l *lateBus) get(ctx context.Context) (*bus.Bus, error) {
	if l.bus != nil {
		return l.bus, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	if l.own == nil {
		l.own, err = l.openBus(ctx)
	}
	return l.own, err
}

func (l *lateBus) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own != nil {
		l.own.Close()
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

// elected is nil where nobody can be beside this process: outside a cluster, with a NATS of
// its own.
func (s *Service) elected() (*lead.Lead, error) {
	if os.Getenv("POD_NAMESPACE") == "" && s.config.Bus.URL == "" {
		return nil, nil
	}
	return lead.New(lead.Options{REST: s.rest, Namespace: s.config.Namespace(), Roles: s.roles, Identity: identity(), Now: s.now, Logger: s.logger, Registerer: s.registry})
}
