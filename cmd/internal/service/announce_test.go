package service

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/unpend/unpend/remediate/plan"
)

// The log holds the configuration in force and no password.
func TestShownConfigHoldsNoSecret(t *testing.T) {
	var c Config
	c.Bus.URL, c.RCA.Prometheus = "nats://unpend:hunter2@nats:4222", "https://x:hunter2@prometheus"
	c.Remediate.Identities = []plan.Identity{{User: "ada@example.com"}}
	text, err := json.Marshal(c.shown())
	must(t, err)
	for _, secret := range []string{"hunter2", "ada@"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
	if !strings.Contains(string(text), `"url":"nats://unpend:xxxxx@nats:4222"`) || c.Remediate.Identities[0].User != "ada@example.com" {
		t.Errorf("shown %s, left %+v", text, c)
	}
}
