package settings

import (
	"fmt"
	"net"
	"net/netip"
)

// hooksConfig is where others may have waiting pods looked at now.
type hooksConfig struct {
	// Listen is the address, such as :9094; nothing is listened to without it.
	Listen string `json:"listen"`
	// TokenFile holds the bearer token of an Alertmanager that posts to /hooks/alertmanager.
	TokenFile string `json:"tokenFile"`
	// SecretFile holds the secrets (whsec_…, a line each) of who posts to /hooks/standard.
	SecretFile string `json:"secretFile"`
	// PagerDutySecretFile holds the signing secrets (a line each) of PagerDuty's webhook
	// subscriptions that post to /hooks/pagerduty.
	PagerDutySecretFile string `json:"pagerDutySecretFile"`
}

// webConfig is what is served by HTTP.
type webConfig struct {
	Metrics string `json:"metrics"` // where /metrics, /healthz and /readyz are served (127.0.0.1:9090; in the chart :9090)
	// MCP is where else than at the page's /mcp agents are answered that bring a token; a
	// loopback address, for tokens come to it in plain text. Empty: nowhere.
	MCP string `json:"mcp"`
	// Listen is where the page for people is served, on loopback; empty: there is none.
	Listen string `json:"listen"`
	// Hosts are the names that a proxy beside it, which ends TLS, is asked by.
	Hosts []string `json:"hosts"`
	// Cluster is what people call this one; its uid's beginning without it.
	Cluster string `json:"cluster"`
}

// check says why the page cannot be served there.
func (c webConfig) check() error {
	if c.Listen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if address, parsed := netip.ParseAddr(host); err != nil || host != "localhost" && (parsed != nil || !address.IsLoopback()) {
		return fmt.Errorf("web.listen is %q: it has to be on loopback, as 127.0.0.1:8080, for people's tokens would travel in the clear; kubectl port-forward reaches it, and so does a proxy in the same pod that ends TLS (its name in web.hosts)", c.Listen)
	}
	return nil
}

// tracesConfig is an OpenTelemetry collector.
type tracesConfig struct {
	// URL that spans are posted to as OTLP over HTTP, http://collector.monitoring:4318/v1/traces;
	// in the cluster outbound.allow has to list it.
	URL string `json:"url"`
}

// kubectlConfig says what `kubectl describe` shows. The rights for either are given with it
// alone.
type kubectlConfig struct {
	// Events has an Event on each of an incident's oldest pods tell its diagnosis.
	Events bool `json:"events"`
	// Annotations answers who annotates a pod or a workload with unpend.dev/why.
	Annotations bool `json:"annotations"`
}
