package service

import (
	"context"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/unpend/unpend/cmd/internal/service/settings"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/kubectl"
	"github.com/unpend/unpend/remediate/notice"
)

// What writing Events may ask of the API server: requests a second, and at once. It has a
// limit of its own, so that it holds up no diagnosis.
const (
	tellCalls   = 10
	tellAtStart = 20
)

// kubectl tells where kubectl shows it; place is under which it keeps what it told.
func (s *Service) kubectl(place string) (*kubectl.Kubectl, error) {
	config := rest.CopyConfig(s.rest)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(tellCalls, tellAtStart)
	client, custom, err := live.Clients(config)
	if err != nil {
		return nil, err
	}
	m := memory{s.bus, place}
	return kubectl.New(kubectl.Options{Client: client, Dynamic: custom, Instance: identity(), Load: m.load, Save: m.save})
}

func byKubectl(_ context.Context, s *Service, _ settings.Config, m memory) (notice.Notifier, error) {
	return s.kubectl(m.place)
}
