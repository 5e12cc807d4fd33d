package paging

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/outbound"
	hooks "github.com/unpend/unpend/watcher/webhook"
)

// Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
const (
	// maxWebhook is of a payload, in bytes: "ideally less than 20kb".
	maxWebhook = 20 << 10
)

// Webhook makes a notifier that posts signed CloudEvents with the proposal in them, to one
// address, by the secrets that the receiver knows: more than one while they are changed.
func Webhook(o Options, secrets []string, address string) (*Pager, error) {
	if o.Client == nil {
		return nil, errors.New("paging: there is no client")
	}
	at, err := o.Client.Parse("webhook.url", address)
	if err != nil {
		return nil, err
	}
	keys, err := hooks.Secrets("webhook.secretFile", secrets)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return newPager(o, &webhook{client: o.Client, at: at, keys: keys, now: o.Now})
}

type webhook struct {
	client *outbound.Client
	at     *url.URL
	keys   [][]byte
	now    func() time.Time
	gone   atomic.Bool
}

func (*webhook) lasts() time.Duration { return 0 }

// event is a CloudEvent in JSON:
// https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
type event struct {
	Version string    `json:"specversion"`
	ID      string    `json:"id"`
	Source  string    `json:"source"`
	Type    string    `json:"type"`
	Subject string    `json:"subject"`
	Time    time.Time `json:"time,omitzero"`
	Content string    `json:"datacontenttype"`
	Data    data      `json:"data"`
}

// data is the proposal, and in words what is left of it where it is too large.
type data struct {
	State   state  `json:"state"`
	Grave   bool   `json:"grave,omitempty"`
	Summary string `json:"summary"`
	// LeftOut says that the proposal is not whole: 'kubectl unpend show' has all of it.
	LeftOut  bool            `json:"leftOut,omitempty"`
	Proposal notice.Proposal `json:"proposal"`
}

func (v *webhook) send(ctx context.Context, was, now page) error {
	if v.gone.Load() {
		return errGone
	}
	e := event{Version: "1.0", Source: "/unpend/" + source(now), Type: kindOf(was, now), Subject: now.Key, Time: newest(now.of), Content: "application/json", Data: data{State: now.State, Grave: now.Grave, Summary: now.Summary}}
	// The specification has no "." in an id, for one parts what is signed.
	e.ID = fmt.Sprintf("msg_%s-%s", strings.ReplaceAll(now.Key, ".", "-"), now.sum())
	body, err := v.fit(e, now.of)
	if err != nil {
		return err
	}
	_, err = v.client.Send(ctx, "post to the webhook", func(ctx context.Context) (*http.Request, error) {
		at := strconv.FormatInt(v.now().Unix(), 10)
		signatures := make([]string, len(v.keys))
		for i, key := range v.keys {
			signatures[i] = hooks.Sign(key, e.ID, at, body)
		}
		return post(v.at, body, http.Header{"Content-Type": {"application/cloudevents+json"}, "Webhook-Id": {e.ID}, "Webhook-Timestamp": {at}, "Webhook-Signature": {strings.Join(signatures, " ")}})(ctx)
	})
	if e, ok := errors.AsType[*outbound.StatusError](err); ok && e.Code == http.StatusGone {
		v.gone.Store(true)
		return errGone
	}
	return err
}

// errGone is of a receiver that wants no more messages: the specification has the sender
// stop.
var errGone = errors.New("the receiver of webhook.url says that it is gone (410): take it out of the configuration, or name another and start again")

func kindOf(was, now page) string {
	switch {
	case now.State == over:
		return "dev.unpend.incident.resolved"
	case was.Key == "":
		return "dev.unpend.incident.opened"
	}
	return "dev.unpend.incident.changed"
}

// newest is the time of the newest that is told.
func newest(p notice.Proposal) time.Time {
	at := p.Read
	for _, t := range []time.Time{p.Resolved} {
		if t.After(at) {
			at = t
		}
	}
	for _, n := range p.Plans {
		if n.Since.After(at) {
			at = n.Since
		}
	}
	return at.UTC()
}

// fit leaves out what the receiver can do without until the whole is small enough.
func (v *webhook) fit(e event, p notice.Proposal) ([]byte, error) {
	e.Data.Proposal = p
	body, err := encode(e, maxWebhook)
	if err == nil || p.Finding == nil {
		return body, err
	}
	d := *p.Finding
	p.Finding, e.Data.LeftOut = &d, true
	for _, less := range []func(){
		func() { d.Knowledge, d.Nodes = nil, nil },
		func() { d.Fixes = d.Fixes[:min(3, len(d.Fixes))] },
		func() { d.Fixes, d.Drawing, d.Unread = nil, nil, nil },
		func() { d.Causes = d.Causes[:min(1, len(d.Causes))] },
		func() { p.Finding = nil; p.Plans = p.Plans[max(0, len(p.Plans)-3):] },
	} {
		less()
		e.Data.Proposal = p
		if body, err = encode(e, maxWebhook); err == nil {
			break
		}
	}
	return body, err
}
