package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"time"
)

// again is how long the same alert is not looked at again: an Alertmanager repeats itself,
// and others of its cluster say the same.
const again = time.Minute

// notification is what an Alertmanager posts, as far as it is read:
// https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
type notification struct {
	Version string `json:"version"`
	Alerts  []struct {
		Status      string            `json:"status"`
		Labels      map[string]string `json:"labels"`
		Starts      time.Time         `json:"startsAt"`
		Fingerprint string            `json:"fingerprint"`
	} `json:"alerts"`
}

// alerts reads a call of the Alertmanager: the pods of alerts that fire, by the labels
// namespace and pod.
func (h *Hooks) alerts(w http.ResponseWriter, r *http.Request) (called, error) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	is, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(h.opts.Token))
	if !bearer || subtle.ConstantTimeCompare(is[:], want[:]) != 1 {
		return called{}, refuse(http.StatusUnauthorized, "forged", "the bearer token is not that of hooks.tokenFile")
	}
	all, err := body(w, r, maxAlerts)
	if err != nil {
		return called{}, err
	}
	var n notification
	if err := json.Unmarshal(all, &n); err != nil || n.Alerts == nil {
		return called{}, refuse(http.StatusBadRequest, "malformed", "the body is no notification of an Alertmanager")
	}
	if n.Version != "" && n.Version != "4" { // a template may leave it out
		return called{}, refuse(http.StatusBadRequest, "malformed", "the notification is of version %.10q, and 4 is known", n.Version)
	}
	var pods []Pod
	var claimed []string
	for _, a := range n.Alerts {
		p := Pod{a.Labels["namespace"], a.Labels["pod"]}
		if a.Status != "firing" || len(sound([]Pod{p})) == 0 || len(pods) == maxPods {
			continue
		}
		key := "alert/" + a.Fingerprint + "/" + a.Starts.UTC().Format(time.RFC3339Nano) + "/" + p.Namespace + "/" + p.Name
		if _, fresh := h.claim(key, h.opts.Now(), again); fresh {
			pods, claimed = append(pods, p), append(claimed, key)
		}
	}
	return called{do: h.look(pods), claimed: claimed}, nil
}
