// Package settings is the configuration of `unpend run`: one YAML file, read strictly, with what
// of it cannot be meant, what is in force where nothing is given, and what of it may be logged.
// What is done by it stands in cmd/internal/service, which makes the rooms that it names.
package settings

import (
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/library"
	"github.com/unpend/unpend/rca/idle"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/watcher/owners"
)

// Config is the one YAML file of `unpend run`: a key per room.
type Config struct {
	Watcher struct {
		// Sweep is how often everything is looked at without a signal (60s).
		Sweep metav1.Duration `json:"sweep"`
		// Debounce gathers the signals of a storm (200ms).
		Debounce metav1.Duration `json:"debounce"`
	} `json:"watcher"`
	RCA struct {
		// Prometheus that scrapes the DCGM exporter, by its URL; without it no holder of
		// GPUs is taken for idle.
		Prometheus string `json:"prometheus"`
		// PrometheusTokenFile holds a bearer token for it.
		PrometheusTokenFile string `json:"prometheusTokenFile"`
		// IdleWindow is how long a pod has done no GPU work to be idle (30m).
		IdleWindow metav1.Duration `json:"idleWindow"`
		// IdleThreshold is below how many percent of GPU work a pod is idle (5).
		IdleThreshold float64 `json:"idleThreshold"`
		// OwnerKinds are kinds of owners that are read beside Kubernetes' own, by plural and
		// group (workflows.argoproj.io): a walk from a pod to its topmost owner ends at others.
		OwnerKinds []string `json:"ownerKinds"`
	} `json:"rca"`
	// Knowledge is what the team has said before; nothing without it.
	Knowledge library.Config `json:"knowledge"`
	// Narrate is the model that words findings; none without its address.
	Narrate   narrateConfig   `json:"narrate"`
	Remediate remediateConfig `json:"remediate"`
	// Slack is where people are told; nobody is without a channel.
	Slack slackConfig `json:"slack"`
	// Kubectl is what kubectl shows of it; nothing by default.
	Kubectl kubectlConfig `json:"kubectl"`
	// Jira is where incidents are tickets; nowhere without its address.
	Jira jiraConfig `json:"jira"`
	// PagerDuty, Opsgenie, Alertmanager and Webhook are who is paged, and of what.
	PagerDuty    pagerDutyConfig    `json:"pagerduty"`
	Opsgenie     opsgenieConfig     `json:"opsgenie"`
	Alertmanager alertmanagerConfig `json:"alertmanager"`
	Webhook      webhookConfig      `json:"webhook"`
	// Outbound says which of the configuration's addresses may lie inside.
	Outbound outboundConfig `json:"outbound"`
	// Hooks are where others may have waiting pods looked at.
	Hooks hooksConfig `json:"hooks"`
	// Routes say of what which place is told; without any, every place of everything.
	Routes []Route   `json:"routes"`
	Bus    busConfig `json:"bus"`
	Web    webConfig `json:"web"`
	// Traces are told of what was done about incidents; nobody is without an address.
	Traces tracesConfig `json:"traces"`
}

// remediateConfig is what the executor is told. The guard-rails are not here: they
// are in the API, where everybody sees them.
type remediateConfig struct {
	// Namespace of the guard-rails, the leader's lease and the locks (the pod's own).
	Namespace string `json:"namespace"`
	// Groups that approvers may be acted for with: those that impersonation is granted of.
	Groups []string `json:"groups"`
	// Identities say of people's ids in Slack, PagerDuty and the web page which Kubernetes
	// users they are, and with which groups they decide. Who is not among them decides
	// nothing.
	Identities []plan.Identity `json:"identities"`
	// Audit is the file of the audit trail: lines of JSON, each with the hash of the one
	// before. Without it there is no trail but the Events and the journals.
	Audit string `json:"audit"`
	// Poll is how often a wait looks again (1s).
	Poll metav1.Duration `json:"poll"`
	// Deadlines of the waits.
	Deadlines struct {
		Evict   metav1.Duration `json:"evict"`   // a budget that says no (5m)
		Leave   metav1.Duration `json:"leave"`   // pods that terminate (5m)
		Manager metav1.Duration `json:"manager"` // MIG manager's work (10m)
		Wedge   metav1.Duration `json:"wedge"`   // MIG manager pending with paused operands (6m)
		Run     metav1.Duration `json:"run"`     // the pod comes to run (5m)
	} `json:"deadlines"`
}

// ReadConfig reads the file strictly; an error names every key that is at fault.
func ReadConfig(path string) (Config, error) {
	var c Config
	c.Web.Metrics = "127.0.0.1:9090"
	c.Watcher.Sweep.Duration = time.Minute
	c.Watcher.Debounce.Duration = 200 * time.Millisecond
	c.RCA.IdleWindow.Duration, c.RCA.IdleThreshold = 30*time.Minute, 5
	if path == "" {
		return c, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return c, fmt.Errorf("read the configuration: %w", err)
	}
	if err := c.decode(data); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := owners.Names(c.RCA.OwnerKinds); err != nil {
		return c, fmt.Errorf("%s: rca.ownerKinds: %w", path, err)
	}
	if err := errors.Join(c.check(), c.CheckRoutes()); err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := c.identities(data); err != nil {
		return c, fmt.Errorf("%s: remediate.identities: %w", path, err)
	}
	return c, nil
}

// GPUWork says where to look up what pods do with their GPUs.
func (c Config) GPUWork() idle.Options {
	return idle.Options{Address: c.RCA.Prometheus, TokenFile: c.RCA.PrometheusTokenFile, Window: c.RCA.IdleWindow.Duration, Threshold: c.RCA.IdleThreshold}
}

// namespace of the executor's own objects: its pod's, unless the configuration says
// another.
func (c remediateConfig) namespace() string {
	for _, name := range []string{c.Namespace, os.Getenv("POD_NAMESPACE")} {
		if name != "" {
			return name
		}
	}
	return "unpend"
}

// Namespace is where the service and the executor keep their own objects.
func (c Config) Namespace() string { return c.Remediate.namespace() }
