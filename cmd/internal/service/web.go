package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/parts"
	"github.com/unpend/unpend/cmd/internal/service/desks"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/remediate/desk"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/web"
)

// newPage makes the page for people; nil where none is wanted.
func (s *Service) newPage(ctx context.Context) (*web.Page, error) {
	c := s.config.Web
	if c.Listen == "" {
		return nil, nil
	}
	name, err := s.called(ctx, c.Cluster)
	if err != nil {
		return nil, err
	}
	d, err := s.newWebDesk()
	if err != nil {
		return nil, err
	}
	as := func(token string) (kubernetes.Interface, error) {
		client, _, err := s.door.As(token)
		return client, err
	}
	o := web.Options{Desk: d, As: as, Agents: s.answering(true), Namespaces: s.namespaces, Cluster: name, Hosts: c.Hosts, ReportsFor: cluster.MaxReportAge, Logger: s.logger, Now: s.now}
	if s.config.Knowledge.Given() {
		o.Search = s.searchOnPage
	}
	return web.New(o)
}

func (s *Service) newWebDesk() (web.Desk, error) {
	client, custom, err := s.door.Own()
	if err != nil {
		return nil, err
	}
	return desks.Web{Desk: desk.Desk{Namespace: s.config.Namespace(),
		Deps: executor.Deps{Client: client, Dynamic: custom, Owners: s.asked, Now: s.now, Logger: s.logger, Measure: s.measure}}, As: s.door.As}, nil
}

func (s *Service) namespaces(ctx context.Context) ([]string, error) {
	list, err := s.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	out := make([]string, len(list.Items))
	for i := range list.Items {
		out[i] = list.Items[i].Name
	}
	return out, nil
}

// answering is what answers agents, behind the page's guard or by itself; nil: nothing does.
func (s *Service) answering(guarded bool) http.Handler {
	if s.agents == nil {
		return nil
	}
	return s.agents(s, guarded)
}

// servePage serves it until ctx ends. Whichever process leads, each has its own page.
func (s *Service) servePage(ctx context.Context) error {
	p, ctx := parts.New(ctx)
	p.Begin("page", func() error { return s.listen(ctx) })
	// Nobody waits for it: what could not be shown is tried again until it is.
	k := &sink{Service: s, name: settings.OnPage, place: settings.OnPage, Notifier: s.page, errors: prometheus.NewCounter(prometheus.CounterOpts{Name: "page"}), plans: map[string]notice.Notice{}}
	for _, t := range []bus.Topic{bus.Diagnoses, bus.Outcomes, bus.Incidents} {
		take := k.news(t)
		p.Begin("page", func() error {
			s.bus.Follow(ctx, t, func(key string, body []byte) {
				if err := take(ctx, key, body); err != nil && ctx.Err() == nil {
					s.logger.WarnContext(ctx, "the page could not be told", "key", key, "error", err)
				}
			}, s.followsAgain(ctx))
			return nil
		})
	}
	if s.config.Narrate.Given() {
		p.Begin("page", func() error {
			s.bus.Follow(ctx, bus.Told, k.rewords(ctx), func(error) {}) // the findings' own follower says why
			return nil
		})
	}
	p.Begin("page", func() error { return k.takenNews(ctx) })
	p.Begin("page", func() error { return k.follow(ctx) })
	return p.Wait()
}

// followsAgain says that the page had to begin again with what a topic has.
func (s *Service) followsAgain(ctx context.Context) func(error) {
	return func(err error) {
		s.logger.WarnContext(ctx, "the page follows the bus again from the newest of each", "error", err)
	}
}

func (s *Service) listen(ctx context.Context) error {
	listener := s.listener
	if listener == nil {
		var err error
		if listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.config.Web.Listen); err != nil {
			return fmt.Errorf("serve the page on %s: %w", s.config.Web.Listen, err)
		}
	}
	server := s.page.Server()
	server.BaseContext = func(net.Listener) context.Context { return ctx } // pages that are open end with us
	stop := context.AfterFunc(ctx, func() {
		quiet, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		server.Shutdown(quiet) //nolint:errcheck // what is left after 3 s is dropped
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the page: %w", err)
	}
	return nil
}
