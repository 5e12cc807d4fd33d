package settings

import (
	"errors"
	"fmt"

	"github.com/unpend/unpend/cmd/internal/bus"
)

// busConfig is the NATS that the processes speak by.
type busConfig struct {
	URL      string    `json:"url"`      // of a NATS cluster; empty: embedded
	StoreDir string    `json:"storeDir"` // of the embedded NATS
	MaxBytes bus.Bytes `json:"maxBytes"` // of all streams (256 MiB)
	Replicas int       `json:"replicas"` // of every stream (3 where NATS is a cluster)
	// Listen is where other processes of ours come to the embedded NATS, such as :4222; nobody
	// does without it.
	Listen string `json:"listen"`
	// TokenFile holds the token that NATS takes, the embedded one that listens too.
	TokenFile string `json:"tokenFile"`
	// CredsFile holds the JWT and the seed of a user of NATS.
	CredsFile string `json:"credsFile"`
	// CAFile holds who vouches for the certificate of NATS; it is spoken to by TLS then.
	CAFile string `json:"caFile"`
	// CertFile holds the certificate that is shown: to NATS, or by the embedded one that
	// listens.
	CertFile string `json:"certFile"`
	// KeyFile holds the key of the certificate.
	KeyFile string `json:"keyFile"`
}

// check says what of it cannot be meant.
func (c busConfig) check() error {
	var wrong []error
	if c.MaxBytes != 0 && (c.MaxBytes < minBytes || c.MaxBytes > maxBytes) {
		wrong = append(wrong, fmt.Errorf("bus.maxBytes is %d: it has to be between %d (%s) and %d (%s)", c.MaxBytes, int64(minBytes), size(minBytes), int64(maxBytes), size(maxBytes)))
	}
	if c.Replicas < 0 || c.Replicas > maxReplicas {
		wrong = append(wrong, fmt.Errorf("bus.replicas is %d: it has to be between 1 and %d", c.Replicas, maxReplicas))
	}
	if c.Listen != "" && c.TokenFile == "" {
		wrong = append(wrong, fmt.Errorf("bus.tokenFile is not given and bus.listen is %q: it has to be a file that holds a token, for anybody could write to the bus", c.Listen))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		wrong = append(wrong, fmt.Errorf("bus.certFile is %q and bus.keyFile is %q: it has to be both, or neither", c.CertFile, c.KeyFile))
	}
	if c.TokenFile != "" && c.CredsFile != "" {
		wrong = append(wrong, errors.New("bus.tokenFile and bus.credsFile are two ways to be let in: it has to be one"))
	}
	return errors.Join(wrong...)
}
