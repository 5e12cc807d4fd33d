package program

import (
	"context"
	"fmt"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// announce says once what starts and with which configuration, in the log and in metrics.
func (s *service) announce(ctx context.Context, mode string) error {
	b := readBuild()
	s.logger.InfoContext(ctx, "unpend starts", "version", b.Version, "commit", b.Revision, "go", b.Go, "mode", mode, "roles", s.roles, "config", s.config.shown())
	built := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "unpend_build_info", Help: "1; its labels say what runs."}, []string{"version", "commit", "go"})
	built.WithLabelValues(b.Version, b.Revision, b.Go).Set(1)
	for _, c := range []prometheus.Collector{built, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := s.registry.Register(c); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// shown is the configuration without what is nobody's business: passwords in URLs, and who
// the approvers are elsewhere.
func (c config) shown() config {
	c.Bus.URL, c.RCA.Prometheus = withoutPassword(c.Bus.URL), withoutPassword(c.RCA.Prometheus)
	c.Remediate.Identities = nil
	return c
}

func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(unreadable)"
	}
	return u.Redacted()
}
