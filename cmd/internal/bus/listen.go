package bus

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// shows is what NATS is spoken to with. Files are read at every connection, for what they hold
// is replaced while this runs.
func (b *Bus) shows() []nats.Option {
	o := b.opts
	var out []nats.Option
	if o.TokenFile != "" {
		out = append(out, nats.TokenHandler(func() string {
			token, err := o.token()
			if err != nil {
				b.opts.Logger.Warn("NATS is spoken to without a token", "error", err)
			}
			return token
		}))
	}
	if o.URL == "" {
		return out // what is in this process needs no more
	}
	if o.CredsFile != "" {
		out = append(out, nats.UserCredentials(o.CredsFile))
	}
	if o.CAFile != "" {
		out = append(out, nats.RootCAs(o.CAFile))
	}
	if o.CertFile != "" {
		out = append(out, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	return out
}

func (o Options) token() (string, error) {
	token, err := os.ReadFile(o.TokenFile)
	if err != nil {
		return "", fmt.Errorf("bus.tokenFile: %w", err)
	}
	return strings.TrimSpace(string(token)), nil
}

// listens has the embedded server take others in who show the token.
func (b *Bus) listens(to *server.Options) error {
	o := b.opts
	if o.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err == nil {
		to.Port, err = strconv.Atoi(port)
	}
	if err != nil {
		return fmt.Errorf("listen for NATS on %s: %w", o.Listen, err)
	}
	to.Host, to.DontListen = host, false
	if to.Port == 0 {
		to.Port = server.RANDOM_PORT
	}
	if to.Authorization, err = o.token(); err != nil {
		return err
	}
	if to.Authorization == "" {
		return errors.New("bus.tokenFile: it holds no token, and anybody could write to the bus")
	}
	if o.CertFile == "" {
		return nil
	}
	its, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return fmt.Errorf("bus.certFile and bus.keyFile: %w", err)
	}
	to.TLS, to.TLSConfig = true, &tls.Config{Certificates: []tls.Certificate{its}, MinVersion: tls.VersionTLS12}
	return nil
}
