package settings

import "net/url"

// Shown is the configuration in force without what is nobody's business: passwords in URLs, and who
// the approvers are elsewhere.
func (c Config) Shown() Config {
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
