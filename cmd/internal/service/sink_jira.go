package service

import (
	"context"

	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/remediate/jira"
	"github.com/unpend/unpend/remediate/notice"
)

func inJira(ctx context.Context, s *Service, config settings.Config, m memory) (notice.Notifier, error) {
	c := config.Jira
	token, err := secrets.Read("jira.tokenFile", c.TokenFile)
	if err != nil {
		return nil, err
	}
	client, err := s.config.Outbound.Client(token)
	if err != nil {
		return nil, err
	}
	if _, err := client.Parse("jira.url", c.URL); err != nil {
		return nil, err
	}
	o := c.Options()
	if o.Cluster, err = s.called(ctx, c.Cluster); err != nil {
		return nil, err
	}
	o.Token, o.HTTP, o.Logger, o.Load, o.Save = token, client.HTTP(), s.logger, m.load, m.save
	return jira.New(o)
}
