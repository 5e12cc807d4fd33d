package service

import (
	"context"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/slack"
)

// slackConfig is the channel that people are told in.
type slackConfig struct {
	// TokenFile holds the token of the app's bot (xoxb-…).
	TokenFile string `json:"tokenFile"`
	// Channel is its id (C…).
	Channel string `json:"channel"`
	// Cluster is what people call this one; its uid's beginning without it.
	Cluster string `json:"cluster"`

	url string // of Slack's API, in tests
}

func inSlack(ctx context.Context, s *Service) (notice.Notifier, error) {
	c := s.config.Slack
	token, err := secret("slack.tokenFile", c.TokenFile)
	if err != nil {
		return nil, err
	}
	name, err := s.called(ctx, c.Cluster)
	if err != nil {
		return nil, err
	}
	m := memory{s.bus, "slack"}
	return slack.New(slack.Options{Token: token, Channel: c.Channel, Cluster: name, Logger: s.logger, URL: c.url, Load: m.load, Save: m.save})
}
