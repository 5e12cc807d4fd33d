package service

import (
	"context"
	"fmt"
	"net/url"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// announce says once what starts and with which configuration, in the log and in metrics.
func (s *Service) announce(ctx context.Context, o Options) error {
	s.logger.InfoContext(ctx, "unpend starts", "version", o.Version, "commit", o.Commit, "go", runtime.Version(), "mode", o.Mode, "roles", s.roles, "config", s.config.shown())
	built := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "unpend_build_info", Help: "1; its labels say what runs."}, []string{"version", "commit", "go"})
	built.WithLabelValues(o.Version, o.Commit, runtime.Version()).Set(1)
	for _, c := range []prometheus.Collector{built, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		if err := s.registry.Register(c); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// shown is the configuration in force without what is nobody's business: passwords in URLs, and who
// the approvers are elsewhere.
func (c Config) shown() Config {
	c = c.inForce()
	c.Bus.URL, c.RCA.Prometheus = withoutPassword(c.Bus.URL), withoutPassword(c.RCA.Prometheus)
	c.PagerDuty.URL, c.Opsgenie.URL, c.Alertmanager.URL, c.Webhook.URL = withoutPath(c.PagerDuty.URL), withoutPath(c.Opsgenie.URL), withoutPath(c.Alertmanager.URL), withoutPath(c.Webhook.URL)
	urls := make([]string, len(c.Alertmanager.URLs))
	for i, at := range c.Alertmanager.URLs {
		urls[i] = withoutPath(at)
	}
	c.Alertmanager.URLs = urls
	c.Narrate.URL = withoutPath(c.Narrate.URL)
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

// withoutPath is where an address leads, without a path that may be a secret.
func withoutPath(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(unreadable)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}
