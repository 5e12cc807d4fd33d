package service

import (
	"context"
	"strings"

	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/paging"
)

// paged is what every pager needs.
func (s *Service) paged(ctx context.Context, m memory, name string, when paging.When, secrets ...string) (o paging.Options, err error) {
	if o.Cluster, err = s.called(ctx, name); err != nil {
		return o, err
	}
	if o.ID, err = live.ID(ctx, s.client); err != nil {
		return o, err
	}
	if o.Client, err = s.config.Outbound.Client(secrets...); err != nil {
		return o, err
	}
	o.ID, o.When, o.Load, o.Save, o.Now = o.ID[:min(len(o.ID), 8)], when, m.load, m.save, s.now
	return o, nil
}

func inPagerDuty(ctx context.Context, s *Service, config settings.Config, m memory) (notice.Notifier, error) {
	c := config.PagerDuty
	key, err := secrets.Read("pagerduty.keyFile", c.KeyFile)
	if err != nil {
		return nil, err
	}
	o, err := s.paged(ctx, m, c.Cluster, c.When.Policy(false), key)
	if err != nil {
		return nil, err
	}
	return paging.PagerDuty(o, key, c.URL)
}

func inOpsgenie(ctx context.Context, s *Service, config settings.Config, m memory) (notice.Notifier, error) {
	c := config.Opsgenie
	key, err := secrets.Read("opsgenie.keyFile", c.KeyFile)
	if err != nil {
		return nil, err
	}
	o, err := s.paged(ctx, m, c.Cluster, c.When.Policy(false), key)
	if err != nil {
		return nil, err
	}
	return paging.Opsgenie(o, key, c.URL)
}

func inAlertmanager(ctx context.Context, s *Service, config settings.Config, m memory) (notice.Notifier, error) {
	c := config.Alertmanager
	token := ""
	if c.TokenFile != "" {
		var err error
		if token, err = secrets.Read("alertmanager.tokenFile", c.TokenFile); err != nil {
			return nil, err
		}
	}
	o, err := s.paged(ctx, m, c.Cluster, c.When.Policy(true), token)
	if err != nil {
		return nil, err
	}
	return paging.Alertmanager(o, c.URL, token)
}

func byWebhook(ctx context.Context, s *Service, config settings.Config, m memory) (notice.Notifier, error) {
	c := config.Webhook
	text, err := secrets.Read("webhook.secretFile", c.SecretFile)
	if err != nil {
		return nil, err
	}
	secrets := strings.Fields(text)
	o, err := s.paged(ctx, m, c.Cluster, c.When.Policy(true), secrets...)
	if err != nil {
		return nil, err
	}
	return paging.Webhook(o, secrets, c.URL)
}
