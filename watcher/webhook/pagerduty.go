package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Said is what somebody has said of a page in PagerDuty.
type Said struct {
	Key  string    // of the page, as it was sent
	By   string    // the person's name, as PagerDuty has it
	At   time.Time // when
	Sees bool      // they see to it; else nobody does any more
}

// sees is what events say of who sees to a page; others say nothing of it:
// https://developer.pagerduty.com/docs/webhooks-overview
var sees = map[string]bool{"incident.acknowledged": true, "incident.unacknowledged": false, "incident.reopened": false, "incident.resolved": false}

// leastPagerDutySecret is ours, in characters: PagerDuty makes secrets that are far longer.
const leastPagerDutySecret = 16

func pagerDutySecrets(secrets []string) (keys [][]byte, err error) {
	for _, s := range secrets {
		if len(s) < leastPagerDutySecret {
			return nil, fmt.Errorf("hooks.pagerDutySecretFile: a line has %d characters, and the secret that PagerDuty shows when a webhook subscription is made has %d at least", len(s), leastPagerDutySecret)
		}
		keys = append(keys, []byte(s))
	}
	return keys, nil
}

// signPagerDuty is a signature as X-PagerDuty-Signature has it, of which there may be several
// while a secret is changed: https://developer.pagerduty.com/docs/verifying-webhook-signatures
func signPagerDuty(key, body []byte) string {
	m := hmac.New(sha256.New, key)
	m.Write(body)
	return "v1=" + hex.EncodeToString(m.Sum(nil))
}

// outbound event of PagerDuty, as far as it is read.
type event struct {
	Event struct {
		ID    string    `json:"id"`
		Type  string    `json:"event_type"`
		At    time.Time `json:"occurred_at"`
		Agent struct {
			Summary string `json:"summary"`
		} `json:"agent"`
		Data struct {
			Key string `json:"incident_key"`
		} `json:"data"`
	} `json:"event"`
}

// pagerDuty reads a call of PagerDuty's webhooks, version 3. PagerDuty signs no time: what
// came before is known by its id, and who hears what is said knows the time of the last. It
// delivers events of up to 55 kB for certain, and turns a subscription off for a day after
// three that were answered with a 4xx:
// https://developer.pagerduty.com/docs/webhooks-behavior
// So what is PagerDuty's and says nothing to us is taken, and passed over.
func (h *Hooks) pagerDuty(keys [][]byte) reader {
	return func(w http.ResponseWriter, r *http.Request) (called, error) {
		all, err := body(w, r, maxBody)
		if err != nil {
			return called{}, err
		}
		var given []string
		for s := range strings.SplitSeq(r.Header.Get("X-PagerDuty-Signature"), ",") {
			given = append(given, strings.TrimSpace(s))
		}
		if !anyOf(given, keys, func(key []byte) string { return signPagerDuty(key, all) }) {
			return called{}, refuse(http.StatusUnauthorized, "forged", "no signature in X-PagerDuty-Signature is by a secret of hooks.pagerDutySecretFile")
		}
		var e event
		err = json.Unmarshal(all, &e)
		is, known := sees[e.Event.Type]
		if err != nil || !known || e.Event.ID == "" || len(e.Event.ID) > maxID || e.Event.Data.Key == "" || e.Event.At.IsZero() {
			return passed("passed over", "it says nothing of who sees to a page"), nil
		}
		key := "pagerduty/" + e.Event.ID
		if _, fresh := h.claim(key, h.opts.Now(), remembered); !fresh {
			return passed("replayed", "this event came before"), nil
		}
		said := Said{Key: e.Event.Data.Key, By: e.Event.Agent.Summary, At: e.Event.At.UTC(), Sees: is}
		return called{claimed: []string{key}, do: func(ctx context.Context) (string, error) {
			return "it is told where the incident is", h.opts.Said(ctx, said)
		}}, nil
	}
}

// passed is a call of which nothing comes.
func passed(result, says string) called {
	return called{result: result, do: func(context.Context) (string, error) { return says, nil }}
}
