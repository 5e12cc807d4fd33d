package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/library"
	"github.com/unpend/unpend/cmd/internal/parts"
	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/cmd/internal/service/desks"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/desk"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/slack"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// hearSlack hears what people click and ask in Slack, and has it decided as who they are.
func (s *Service) hearSlack(ctx context.Context) error {
	c := s.config.Slack
	o := slack.HearOptions{Channels: s.config.SlackChannels(), Logger: s.logger, URL: s.slackURL}
	for _, f := range []struct {
		key, path string
		into      *string
	}{{"slack.tokenFile", c.TokenFile, &o.Token}, {"slack.appTokenFile", c.AppTokenFile, &o.AppToken}, {"slack.signingSecretFile", c.SigningSecretFile, &o.SigningSecret}} {
		if f.path == "" {
			continue
		}
		var err error
		if *f.into, err = secrets.Read(f.key, f.path); err != nil {
			return err
		}
	}
	d, err := s.slackDesk()
	if err != nil {
		return err
	}
	o.Desk = d
	o.Search = s.searchInSlack
	if s.hasBus() {
		o.Load, o.Save = memoryOf("slack", s.late.get)
		if s.config.Overheard() {
			o.Events = library.Overhears(s.late.get)
		}
	}
	l, err := slack.NewListener(o)
	if err != nil {
		return err
	}
	p, ctx := parts.New(ctx)
	p.Begin("slack", func() error { return l.Run(ctx) })
	if c.Listen != "" {
		p.Begin("slack", func() error { return serveSlack(ctx, c.Listen, l) })
	}
	return p.Wait()
}

// memoryOf a place is kept on a bus that may have to be opened first.
func memoryOf(place string, open func(context.Context) (*bus.Bus, error)) (load func(context.Context, string) ([]byte, error), save func(context.Context, string, []byte) error) {
	load = func(ctx context.Context, key string) ([]byte, error) {
		b, err := open(ctx)
		if err != nil {
			return nil, err
		}
		return memory{b, place}.load(ctx, key)
	}
	return load, func(ctx context.Context, key string, value []byte) error {
		b, err := open(ctx)
		if err != nil {
			return err
		}
		return memory{b, place}.save(ctx, key, value)
	}
}

// slackDesk decides as the people that the configuration maps.
func (s *Service) slackDesk() (desks.Slack, error) {
	client, custom, err := live.Clients(s.rest)
	if err != nil {
		return desks.Slack{}, err
	}
	people, err := plan.NewIdentities(s.config.Remediate.Identities)
	if err != nil {
		return desks.Slack{}, fmt.Errorf("remediate.identities: %w", err)
	}
	at := desk.Desk{Namespace: s.config.Namespace(), Deps: executor.Deps{Client: client, Dynamic: custom, Owners: s.asked, Now: s.now, Logger: s.logger, Measure: s.measure}}
	return desks.Slack{At: at, By: plan.Decider{Identities: people, Dynamic: custom,
		ActAs: func(user string, groups []string) (dynamic.Interface, error) {
			config := rest.CopyConfig(s.rest)
			config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
			return dynamic.NewForConfig(config)
		},
		Persons: func(ctx context.Context, rem *v1alpha1.Remediation) (int, string, error) {
			return executor.Persons(ctx, at.Deps, at.Namespace, rem)
		}}}, nil
}

// serveSlack serves what Slack sends until ctx ends. It may come from anywhere: nobody is
// waited for long, and nothing long is read.
func serveSlack(ctx context.Context, address string, l *slack.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("/slack", l)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("hear Slack on %s: %w", address, err)
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() {
		quiet, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
		defer cancel()
		srv.Shutdown(quiet) //nolint:errcheck // what is left after 3 s is dropped
	})
	defer stop()
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("hear Slack: %w", err)
	}
	return nil
}
