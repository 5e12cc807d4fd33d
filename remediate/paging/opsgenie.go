package paging

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/unpend/unpend/remediate/outbound"
	"github.com/unpend/unpend/remediate/wording"
)

// What the Alert API takes, in characters: https://docs.opsgenie.com/docs/alert-api and
// https://support.atlassian.com/opsgenie/docs/alert-fields. Jira Service Management Operations
// takes the same: https://developer.atlassian.com/cloud/jira/service-desk-ops/rest/v2/intro
const (
	OpsgenieURL        = "https://api.opsgenie.com"
	maxOpsgenieMessage = 130
	maxOpsgenieText    = 15000 // of a description
	maxOpsgenieNote    = 25000
	maxOpsgenieEntity  = 512
	maxOpsgenieSource  = 100
	maxOpsgenieTag     = 50
	// maxOpsgenieDetails is of all details together; each has its part of it.
	maxOpsgenieDetails  = 8000
	maxOpsgenieDetail   = maxOpsgenieDetails/4 - 20 // less its name
	maxOpsgenieRequest  = 64 << 10                  // ours
	opsgenieGrave       = "P1"
	opsgenieNotSoUrgent = "P3"
)

// Opsgenie makes a pager by the Alert API of Opsgenie, or of what has the same: for Jira
// Service Management Operations the address is
// https://api.atlassian.com/jsm/ops/integration.
func Opsgenie(o Options, key, address string) (*Pager, error) {
	if key == "" {
		return nil, errors.New("opsgenie.keyFile: it holds no key")
	}
	if o.Client == nil {
		return nil, errors.New("paging: there is no client")
	}
	if address == "" {
		address = OpsgenieURL
	}
	at, err := o.Client.Parse("opsgenie.url", address)
	if err != nil {
		return nil, err
	}
	return newPager(o, &opsgenie{o.Client, at.JoinPath("v2/alerts"), http.Header{"Authorization": {"GenieKey " + key}}})
}

type opsgenie struct {
	client *outbound.Client
	at     *url.URL
	header http.Header
}

func (*opsgenie) lasts() time.Duration { return 0 }

type opsgenieAlert struct {
	Message     string            `json:"message"`
	Alias       string            `json:"alias"`
	Description string            `json:"description,omitempty"`
	Entity      string            `json:"entity,omitempty"`
	Source      string            `json:"source"`
	Priority    string            `json:"priority"`
	Tags        []string          `json:"tags,omitempty"`
	Details     map[string]string `json:"details,omitempty"`
}

type opsgenieNote struct {
	Source string `json:"source"`
	Note   string `json:"note,omitempty"`
}

// send makes the alert, or adds a note to it: what is there already is not made again, it
// would only be counted.
func (v *opsgenie) send(ctx context.Context, was, now page) error {
	note := opsgenieNote{wording.Fit(source(now), maxOpsgenieSource), wording.Fit(now.Summary+"\n"+now.Text, maxOpsgenieNote)}
	if now.State == over {
		return v.post(ctx, http.MethodPost, "close an alert", v.of(now, "close"), note)
	}
	if was.Key == "" {
		if err := v.create(ctx, now); err != nil {
			return err
		}
	} else if was.sum() != now.sum() && now.State != acknowledged {
		if err := v.post(ctx, http.MethodPost, "add a note", v.of(now, "notes"), note); err != nil {
			return err
		}
	}
	if was.Key != "" && was.Grave != now.Grave {
		if err := v.post(ctx, http.MethodPut, "change the priority of an alert", v.of(now, "priority"), map[string]string{"priority": priority(now)}); err != nil {
			return err
		}
	}
	if now.State == acknowledged {
		return v.post(ctx, http.MethodPost, "acknowledge an alert", v.of(now, "acknowledge"), note)
	}
	return nil
}

func priority(p page) string {
	if p.Grave {
		return opsgenieGrave
	}
	return opsgenieNotSoUrgent
}

func (v *opsgenie) create(ctx context.Context, p page) error {
	a := opsgenieAlert{Message: wording.Fit(p.Summary, maxOpsgenieMessage), Alias: p.Key, Description: wording.Fit(p.Summary+"\n"+p.Text, maxOpsgenieText), Entity: wording.Fit(p.Labels.Namespace+"/"+p.Labels.Workload, maxOpsgenieEntity),
		Source: wording.Fit(source(p), maxOpsgenieSource), Priority: priority(p), Tags: []string{"unpend"}, Details: map[string]string{"incident": p.Labels.Incident, "cluster": p.Labels.Cluster, "namespace": p.Labels.Namespace, "cause": p.Labels.Cause}}
	for name, value := range a.Details {
		a.Details[name] = wording.Fit(value, maxOpsgenieDetail)
	}
	if p.Labels.Cause != "" {
		a.Tags = append(a.Tags, wording.Fit(p.Labels.Cause, maxOpsgenieTag))
	}
	return v.post(ctx, http.MethodPost, "create an alert", v.at, a)
}

// of is the address of what is done to an alert, which its alias names.
func (v *opsgenie) of(p page, what string) *url.URL {
	at := v.at.JoinPath(p.Key, what)
	at.RawQuery = url.Values{"identifierType": {"alias"}}.Encode()
	return at
}

func (v *opsgenie) post(ctx context.Context, method, doing string, at *url.URL, of any) error {
	body, err := encode(of, maxOpsgenieRequest)
	if err != nil {
		return err
	}
	_, err = v.client.Send(ctx, fmt.Sprintf("%s by %s", doing, v.at.Host), request(method, at, body, v.header))
	return err
}
