package settings

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/paging"
)

// inForce is the configuration with the defaults of what is not given.
func (c Config) inForce() Config {
	c.Remediate = c.Remediate.inForce()
	c.Bus.MaxBytes = cmp.Or(c.Bus.MaxBytes, bus.DefaultMaxBytes)
	if c.Bus.URL == "" {
		c.Bus.Replicas = max(1, c.Bus.Replicas)
	}
	if c.Slack != (slackConfig{}) {
		c.Slack.HeardBy = c.Slack.Hearer()
	}
	if c.Jira.given() {
		c.Jira.Reopen = forSoLong(c.Jira.Options().Reopen)
	}
	if c.Narrate.Given() {
		o := c.Narrate.Options()
		c.Narrate.Deadline, c.Narrate.PerHour, c.Narrate.MaxTokens = forSoLong(o.Deadline), &o.PerHour, &o.MaxTokens
	}
	c.Knowledge = c.Knowledge.InForce()
	c.PagerDuty.When, c.Opsgenie.When = c.PagerDuty.When.inForce(false), c.Opsgenie.When.inForce(false)
	c.Alertmanager.When, c.Webhook.When = c.Alertmanager.When.inForce(true), c.Webhook.When.inForce(true)
	if c.PagerDuty.KeyFile != "" {
		c.PagerDuty.URL = cmp.Or(c.PagerDuty.URL, paging.PagerDutyURL)
	}
	if c.Opsgenie.KeyFile != "" {
		c.Opsgenie.URL = cmp.Or(c.Opsgenie.URL, paging.OpsgenieURL)
	}
	return c
}

func (c remediateConfig) inForce() remediateConfig {
	d := c.Waits().WithDefaults()
	c.Namespace = c.namespace()
	c.Poll.Duration = cmp.Or(c.Poll.Duration, pace.Poll)
	c.Deadlines.Evict.Duration, c.Deadlines.Leave.Duration, c.Deadlines.Manager.Duration = d.Evict, d.Leave, d.Manager
	c.Deadlines.Wedge.Duration, c.Deadlines.Run.Duration = d.Wedge, d.Run
	return c
}

// Waits are those of the executor's waits; what is not given is zero.
func (c remediateConfig) Waits() pace.Deadlines {
	d := &c.Deadlines
	return pace.Deadlines{Evict: d.Evict.Duration, Leave: d.Leave.Duration, Manager: d.Manager.Duration, Wedge: d.Wedge.Duration, Run: d.Run.Duration}
}

func (c whenConfig) inForce(everything bool) whenConfig {
	p := c.Policy(everything)
	c.Parked, c.Breaker, c.Everything = &p.Parked, &p.Breaker, &p.Everything
	return c
}

func forSoLong(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
