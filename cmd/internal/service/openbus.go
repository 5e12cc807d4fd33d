package service

import (
	"context"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/rca/cluster/live"
)

// openBus is the bus of this cluster.
func (s *Service) openBus(ctx context.Context) (*bus.Bus, error) {
	id, err := live.ID(ctx, s.client)
	if err != nil {
		return nil, err
	}
	c := s.config.Bus
	return bus.Open(ctx, bus.Options{Cluster: id, URL: c.URL, StoreDir: c.StoreDir, MaxBytes: int64(c.MaxBytes), Documents: s.config.Knowledge.Documents(), Replicas: c.Replicas, Logger: s.logger, Registerer: s.registry,
		Listen: c.Listen, TokenFile: c.TokenFile, CredsFile: c.CredsFile, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile})
}
