package settings

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/paging"
)

// pagesConfig is what every service that pages has.
type pagesConfig struct {
	// Cluster is what people call this one; its uid's beginning without it.
	Cluster string `json:"cluster"`
	// When says what is worth a page.
	When whenConfig `json:"when"`
}

// whenConfig says what is worth a page.
type whenConfig struct {
	Parked     *bool           `json:"parked"`     // a node is left cordoned on purpose (true)
	Breaker    *bool           `json:"breaker"`    // all work is stopped (true)
	Waiting    metav1.Duration `json:"waiting"`    // somebody waits for so long (0: never)
	Everything *bool           `json:"everything"` // every finding (of pagerduty and opsgenie false, of the others true)
	// MinPriority is the least priority of pods whose waiting, or finding, is worth a page; one
	// that nobody can tell may be as high. Not given: any.
	MinPriority *int32 `json:"minPriority"`
}

// check says what of it cannot be meant; key is where it stands.
func (c whenConfig) check(key string, everything bool) error {
	p := c.Policy(everything)
	switch {
	case p.Waiting < 0:
		return fmt.Errorf("%s.waiting is %s: it has to be for how long somebody waits, or 0", key, p.Waiting)
	case p.MinPriority != nil && p.Waiting == 0 && !p.Everything:
		return fmt.Errorf("%s.minPriority is %d, and nobody is paged because somebody waits: set %s.waiting too, or everything", key, *p.MinPriority, key)
	}
	return nil
}

// checkPaging says what of the paging services' policies cannot be meant.
func (c Config) checkPaging() error {
	return errors.Join(c.PagerDuty.When.check("pagerduty.when", false), c.Opsgenie.When.check("opsgenie.when", false), c.Alertmanager.When.check("alertmanager.when", true), c.Webhook.When.check("webhook.when", true), c.Alertmanager.check())
}

// Policy is it with the defaults of what is not given; everything is one of them.
func (c whenConfig) Policy(everything bool) paging.When {
	or := func(given *bool, by bool) bool {
		if given != nil {
			return *given
		}
		return by
	}
	return paging.When{Parked: or(c.Parked, true), Breaker: or(c.Breaker, true), Waiting: c.Waiting.Duration, Everything: or(c.Everything, everything), MinPriority: c.MinPriority}
}

// pagerDutyConfig is a service in PagerDuty.
type pagerDutyConfig struct {
	// KeyFile holds the key of its integration of Events API v2.
	KeyFile string `json:"keyFile"`
	// URL of the region (https://events.pagerduty.com).
	URL         string `json:"url"`
	pagesConfig `json:",inline"`
}

// opsgenieConfig is Opsgenie, or what has its API.
type opsgenieConfig struct {
	// KeyFile holds the key of an API integration.
	KeyFile string `json:"keyFile"`
	// URL of the API; of Jira Service Management Operations it is
	// https://api.atlassian.com/jsm/ops/integration (https://api.opsgenie.com).
	URL         string `json:"url"`
	pagesConfig `json:",inline"`
}

// alertmanagerConfig is an Alertmanager that findings are alerts of.
type alertmanagerConfig struct {
	URL string `json:"url"` // https://alertmanager.example:9093; in the cluster outbound.allow has to list it
	// URLs are those of a cluster of them, each of which has to be told:
	// https://prometheus.io/docs/alerting/latest/alertmanager/#high-availability
	URLs []string `json:"urls"`
	// TokenFile holds a bearer token; none is sent without it.
	TokenFile   string `json:"tokenFile"`
	pagesConfig `json:",inline"`
}

// all are the addresses, each once.
func (c alertmanagerConfig) all() (out []string) {
	for _, at := range append([]string{c.URL}, c.URLs...) {
		if at != "" && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	return out
}

func (c alertmanagerConfig) check() error {
	if i := slices.Index(c.URLs, ""); i >= 0 {
		return fmt.Errorf("alertmanager.urls[%d] is empty: it has to be the address of an Alertmanager", i)
	}
	return nil
}

// alertmanagers are told of the same alerts, each by itself: they make one notification of it
// among them, as long as one of them is there.
func alertmanagers(c Config) (out []destination) {
	for _, at := range c.Alertmanager.all() {
		name, one := "alertmanager", c
		if at != c.Alertmanager.URL {
			name = named(name, at)
		}
		one.Alertmanager.URL = at
		out = append(out, destination{Name: name, Config: one})
	}
	return out
}

// webhookConfig is who is told by signed CloudEvents, as Standard Webhooks has it.
type webhookConfig struct {
	// URL that is posted to; in the cluster outbound.allow has to list it.
	URL string `json:"url"`
	// SecretFile holds the secrets (whsec_…), a line each.
	SecretFile  string `json:"secretFile"`
	pagesConfig `json:",inline"`
}
