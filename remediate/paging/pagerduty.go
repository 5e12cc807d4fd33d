package paging

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/outbound"
	"github.com/unpend/unpend/remediate/wording"
)

// What Events API v2 takes: https://developer.pagerduty.com/docs/send-alert-event
const (
	PagerDutyURL     = "https://events.pagerduty.com"
	pagerDutyKey     = 32 // of an integration: exactly
	maxPagerDutyKey  = 255
	maxPagerDutyText = 1024      // of the summary
	maxPagerDuty     = 512 << 10 // of an event, in bytes
	// maxPagerDutyDetails is of our own details, far below the limit of an event.
	maxPagerDutyDetails = 16 << 10
)

// PagerDuty makes a pager by the integration key of a service's Events API v2. Address is
// that of the region (https://events.pagerduty.com); only scheme and host count.
func PagerDuty(o Options, key, address string) (*Pager, error) {
	if len(key) != pagerDutyKey {
		return nil, fmt.Errorf("pagerduty.keyFile: it holds %d characters, and an integration key of Events API v2 has %d", len(key), pagerDutyKey)
	}
	if o.Client == nil {
		return nil, errors.New("paging: there is no client")
	}
	if address == "" {
		address = PagerDutyURL
	}
	at, err := o.Client.Parse("pagerduty.url", address)
	if err != nil {
		return nil, err
	}
	return newPager(o, &pagerDuty{o.Client, key, at.JoinPath("/v2/enqueue")})
}

type pagerDuty struct {
	client *outbound.Client
	key    string
	at     *url.URL
}

func (*pagerDuty) lasts() time.Duration { return 0 }

type pagerDutyEvent struct {
	RoutingKey string            `json:"routing_key"`
	Action     string            `json:"event_action"`
	Key        string            `json:"dedup_key"`
	Client     string            `json:"client,omitempty"`
	Payload    *pagerDutyPayload `json:"payload,omitempty"`
}

type pagerDutyPayload struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"`
	Timestamp string         `json:"timestamp,omitempty"`
	Component string         `json:"component,omitempty"`
	Group     string         `json:"group,omitempty"`
	Class     string         `json:"class,omitempty"`
	Details   map[string]any `json:"custom_details,omitempty"`
}

func (v *pagerDuty) send(ctx context.Context, was, now page) error {
	if now.State == over {
		return v.enqueue(ctx, now, "resolve")
	}
	if was.State != acknowledged || now.State != acknowledged || was.sum() != now.sum() {
		if err := v.enqueue(ctx, now, "trigger"); err != nil {
			return err
		}
	}
	if now.State == acknowledged && was.State != acknowledged {
		return v.enqueue(ctx, now, "acknowledge")
	}
	return nil
}

func (v *pagerDuty) enqueue(ctx context.Context, p page, action string) error {
	e := pagerDutyEvent{RoutingKey: v.key, Action: action, Key: p.Key}
	if action == "trigger" {
		e.Client = "unpend"
		e.Payload = &pagerDutyPayload{Summary: wording.Fit(p.Summary, maxPagerDutyText), Source: wording.Fit(source(p), maxPagerDutyKey), Severity: p.Labels.Severity, Component: p.Labels.Workload, Group: p.Labels.Namespace, Class: p.Labels.Cause,
			Details: map[string]any{"labels": p.Labels, "text": strings.Split(wording.Fit(p.Text, maxPagerDutyDetails), "\n")}}
		if !p.Since.IsZero() {
			e.Payload.Timestamp = p.Since.UTC().Format(time.RFC3339)
		}
	}
	body, err := encode(e, maxPagerDuty)
	if err != nil {
		return err
	}
	doing := action + " in PagerDuty"
	return notice.Retry(ctx, v.client.Clock(), func(ctx context.Context) error {
		answer, err := v.client.Once(ctx, doing, post(v.at, body, nil))
		if err != nil {
			return wrongKey(err)
		}
		return queued(doing, answer, p.Key)
	})
}

// CheckKey is of no incident.
const CheckKey = "unpend-check"

// check ends an alert that there is none of: of a key that PagerDuty knows it is dropped without
// a word, of any other it says so. What it cannot tell is whether anybody is paged by a key that
// it knows: a service that is disabled, in maintenance, or whose rules drop the event is
// answered 202, too: https://support.pagerduty.com/docs/why-incidents-fail-to-trigger
func (v *pagerDuty) check(ctx context.Context) error {
	return v.enqueue(ctx, page{Key: CheckKey}, "resolve")
}

func source(p page) string {
	if p.Labels.Cluster != "" {
		return p.Labels.Cluster
	}
	return "unpend"
}

// wrongKey is an error about the key, which is no fault of the page.
func wrongKey(err error) error {
	if e, ok := errors.AsType[*outbound.StatusError](err); ok && e.Code == http.StatusBadRequest && strings.Contains(strings.ToLower(e.Says), "routing") {
		return fmt.Errorf("pagerduty.keyFile holds no key of an integration of Events API v2: %s", strings.TrimPrefix(err.Error(), notice.ErrRefused.Error()+": "))
	}
	return err
}

// queued holds an answer to what it has to say: a 202 alone is no word that anything was
// taken.
func queued(doing string, answer []byte, key string) error {
	var a struct {
		Status, Message string
		Key             string `json:"dedup_key"`
	}
	if err := json.Unmarshal(answer, &a); err != nil || a.Status != "success" {
		return &notice.Passing{Err: fmt.Errorf("%s: it answers %q, not success: %s", doing, wording.Fit(wording.Clean(a.Status), 60), wording.Fit(wording.Clean(a.Message), 200))}
	}
	if a.Key != "" && a.Key != key {
		return fmt.Errorf("%s: it answers for %q, and was told of %s", doing, wording.Fit(wording.Clean(a.Key), 60), key)
	}
	return nil
}
