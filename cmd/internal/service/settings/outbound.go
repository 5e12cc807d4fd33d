package settings

import (
	"time"

	"github.com/unpend/unpend/remediate/outbound"
)

// outboundConfig says where the service may speak to.
type outboundConfig struct {
	// Allow lists names, addresses and networks that may be spoken to although they are not
	// public, and by plain http.
	Allow []string `json:"allow"`
}

// Client speaks to addresses of the configuration; no error of it shows a secret.
func (c outboundConfig) Client(secrets ...string) (*outbound.Client, error) {
	return c.Within(0, secrets...)
}

// Within is a client whose answers may take a time; 0: the usual.
func (c outboundConfig) Within(timeout time.Duration, secrets ...string) (*outbound.Client, error) {
	return outbound.New(outbound.Options{Allow: c.Allow, Secrets: secrets, Timeout: timeout})
}
