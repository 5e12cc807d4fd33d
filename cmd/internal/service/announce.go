package service

import (
	"context"
	"fmt"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// announce says once what starts and with which configuration, in the log and in metrics.
func (s *Service) announce(ctx context.Context, o Options) error {
	s.logger.InfoContext(ctx, "unpend starts", "version", o.Version, "commit", o.Commit, "go", runtime.Version(), "mode", o.Mode, "roles", s.roles, "config", s.config.Shown())
	built := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "unpend_build_info", Help: "1; its labels say what runs."}, []string{"version", "commit", "go"})
	built.WithLabelValues(o.Version, o.Commit, runtime.Version()).Set(1)
	for _, c := range []prometheus.Collector{built, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := s.registry.Register(c); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}
