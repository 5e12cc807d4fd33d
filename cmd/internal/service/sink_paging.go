package service

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/paging"
)

// pagesConfig is what every service that pages has.
type pagesConfig struct {
	// Cluster is what people call this one; its uid's beginning without it.
	Cluster string `json:"cluster"`
	// When says what is worth a page.
	When whenConfig `json:"when"`
}

// whenConfig says what is worth a page.
type whenConfig struct {
	Parked     *bool           `json:"parked"`     // a node is left cordoned on purpose (true)
	Breaker    *bool           `json:"breaker"`    // all work is stopped (true)
	Waiting    metav1.Duration `json:"waiting"`    // somebody waits for so long (0: never)
	Everything *bool           `json:"everything"` // every finding (of pagerduty and opsgenie false, of the others true)
}

func (c whenConfig) policy(everything bool) paging.When {
	or := func(given *bool, by bool) bool {
		if given != nil {
			return *given
		}
		return by
	}
	return paging.When{Parked: or(c.Parked, true), Breaker: or(c.Breaker, true), Waiting: c.Waiting.Duration, Everything: or(c.Everything, everything)}
}

// pagerDutyConfig is a service in PagerDuty.
type pagerDutyConfig struct {
	// KeyFile holds the key of its integration of Events API v2.
	KeyFile string `json:"keyFile"`
	// URL of the region (https://events.pagerduty.com).
	URL         string `json:"url"`
	pagesConfig `json:",inline"`
}

// opsgenieConfig is Opsgenie, or what has its API.
type opsgenieConfig struct {
	// KeyFile holds the key of an API integration.
	KeyFile string `json:"keyFile"`
	// URL of the API (https://api.opsgenie.com); of Jira Service Management Operations it is
	// https://api.atlassian.com/jsm/ops/integration.
	URL         string `json:"url"`
	pagesConfig `json:",inline"`
}

// alertmanagerConfig is an Alertmanager that findings are alerts of.
type alertmanagerConfig struct {
	URL string `json:"url"` // https://alertmanager.example:9093; in the cluster outbound.allow has to list it
	// TokenFile holds a bearer token; none is sent without it.
	TokenFile   string `json:"tokenFile"`
	pagesConfig `json:",inline"`
}

// webhookConfig is who is told by signed CloudEvents, as Standard Webhooks has it.
type webhookConfig struct {
	URL string `json:"url"`
	// SecretFile holds the secrets (whsec_…), a line each.
	SecretFile  string `json:"secretFile"`
	pagesConfig `json:",inline"`
}

// paged is what every pager needs.
func (s *Service) paged(ctx context.Context, place string, c pagesConfig, everything bool, secrets ...string) (o paging.Options, err error) {
	if o.Cluster, err = s.called(ctx, c.Cluster); err != nil {
		return o, err
	}
	if o.ID, err = cluster.ID(ctx, s.client); err != nil {
		return o, err
	}
	if o.Client, err = s.config.Outbound.client(secrets...); err != nil {
		return o, err
	}
	m := memory{s.bus, place}
	o.ID, o.When, o.Load, o.Save, o.Now = o.ID[:min(len(o.ID), 8)], c.When.policy(everything), m.load, m.save, s.now
	return o, nil
}

func inPagerDuty(ctx context.Context, s *Service) (notice.Notifier, error) {
	c := s.config.PagerDuty
	key, err := secret("pagerduty.keyFile", c.KeyFile)
	if err != nil {
		return nil, err
	}
	o, err := s.paged(ctx, "pagerduty", c.pagesConfig, false, key)
	if err != nil {
		return nil, err
	}
	return paging.PagerDuty(o, key, c.URL)
}

func inOpsgenie(ctx context.Context, s *Service) (notice.Notifier, error) {
	c := s.config.Opsgenie
	key, err := secret("opsgenie.keyFile", c.KeyFile)
	if err != nil {
		return nil, err
	}
	o, err := s.paged(ctx, "opsgenie", c.pagesConfig, false, key)
	if err != nil {
		return nil, err
	}
	return paging.Opsgenie(o, key, c.URL)
}

func inAlertmanager(ctx context.Context, s *Service) (notice.Notifier, error) {
	c := s.config.Alertmanager
	token := ""
	if c.TokenFile != "" {
		var err error
		if token, err = secret("alertmanager.tokenFile", c.TokenFile); err != nil {
			return nil, err
		}
	}
	o, err := s.paged(ctx, "alertmanager", c.pagesConfig, true, token)
	if err != nil {
		return nil, err
	}
	return paging.Alertmanager(o, c.URL, token)
}

func byWebhook(ctx context.Context, s *Service) (notice.Notifier, error) {
	c := s.config.Webhook
	text, err := secret("webhook.secretFile", c.SecretFile)
	if err != nil {
		return nil, err
	}
	secrets := strings.Fields(text)
	o, err := s.paged(ctx, "webhook", c.pagesConfig, true, secrets...)
	if err != nil {
		return nil, err
	}
	return paging.Webhook(o, secrets, c.URL)
}
