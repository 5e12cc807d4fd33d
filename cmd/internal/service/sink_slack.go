package service

import (
	"context"
	"slices"

	"github.com/unpend/unpend/cmd/internal/secrets"
	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/slack"
)

func inSlack(ctx context.Context, s *Service, config settings.Config, m memory) (notice.Notifier, error) {
	c := config.Slack
	token, err := secrets.Read("slack.tokenFile", c.TokenFile)
	if err != nil {
		return nil, err
	}
	name, err := s.called(ctx, c.Cluster)
	if err != nil {
		return nil, err
	}
	return slack.New(slack.Options{Token: token, Channel: c.Channel, Cluster: name, Logger: s.logger, URL: s.slackURL, Load: m.load, Save: m.save,
		Buttons: c.Heard(), NoSnooze: !s.shares() && !slices.Contains(s.roles, c.Hearer())})
}
