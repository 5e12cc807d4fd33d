package paging

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/unpend/unpend/remediate/outbound"
	"github.com/unpend/unpend/remediate/wording"
)

const (
	// alertLasts is what an alert's end is put ahead each time: it ends by itself once nobody
	// renews it. Alertmanager's own resolve_timeout is the same by default:
	// https://prometheus.io/docs/alerting/latest/configuration
	alertLasts = 5 * time.Minute
	// maxAlerts is of one request, in bytes; Alertmanager names no limit, its gossip keeps
	// what is small.
	maxAlerts = 64 << 10
	// maxLabel and maxAnnotation are ours: a notification shows them.
	maxLabel, maxAnnotation = 512, 8 << 10
)

// Alertmanager makes a pager by the API v2 of an Alertmanager; token is a bearer token, or
// empty. What its clock says is not asked: ours is taken, for it takes alerts of any time.
func Alertmanager(o Options, address, token string) (*Pager, error) {
	if o.Client == nil {
		return nil, errors.New("paging: there is no client")
	}
	at, err := o.Client.Parse("alertmanager.url", address)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	v := &alertmanager{client: o.Client, at: at.JoinPath("api/v2/alerts"), now: o.Now, header: http.Header{}}
	if token != "" {
		v.header.Set("Authorization", "Bearer "+token)
	}
	return newPager(o, v)
}

type alertmanager struct {
	client *outbound.Client
	at     *url.URL
	header http.Header
	now    func() time.Time
}

func (*alertmanager) lasts() time.Duration { return alertLasts }

// alert as it is posted:
// https://github.com/prometheus/alertmanager/blob/v0.31.1/api/v2/openapi.yaml
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Starts      time.Time         `json:"startsAt,omitzero"`
	Ends        time.Time         `json:"endsAt"`
}

// send posts the alert; one whose labels have changed is another to Alertmanager, so that
// the one before ends in the same request.
func (v *alertmanager) send(ctx context.Context, was, now page) error {
	all := []alert{v.alert(now)}
	if was.Key != "" && was.Labels != now.Labels {
		was.State = over
		all = append(all, v.alert(was))
	}
	body, err := encode(all, maxAlerts)
	if err != nil {
		return err
	}
	_, err = v.client.Send(ctx, "post an alert to Alertmanager", post(v.at, body, v.header))
	return err
}

func (v *alertmanager) alert(p page) alert {
	a := alert{Labels: map[string]string{}, Annotations: map[string]string{"summary": wording.Fit(p.Summary, maxAnnotation), "description": wording.Fit(p.Text, maxAnnotation)}, Starts: p.Since.UTC(), Ends: v.now().UTC().Add(alertLasts)}
	for name, value := range map[string]string{"alertname": p.Labels.Alert, "severity": p.Labels.Severity, "cluster": p.Labels.Cluster, "incident": p.Labels.Incident, "namespace": p.Labels.Namespace, "workload": p.Labels.Workload, "cause": p.Labels.Cause, "node": p.Labels.Node} {
		if value != "" {
			a.Labels[name] = wording.Fit(value, maxLabel)
		}
	}
	if p.State == over {
		a.Ends = v.now().UTC()
	}
	if a.Starts.After(a.Ends) { // a clock that is behind
		a.Starts = a.Ends
	}
	return a
}
