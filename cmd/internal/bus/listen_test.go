package bus

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Other processes come to the embedded server that listens, with the token, and by TLS where it
// has a certificate: what one publishes the other reads. Who has no token, or another, or trusts
// somebody else, is told so.
func TestListen(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cert, key := certificate(t)
	other, _ := certificate(t)
	token := file("token", "let me in\n")
	its := Options{Cluster: "here", StoreDir: t.TempDir(), Listen: "127.0.0.1:0", TokenFile: token, CertFile: file("cert", cert), KeyFile: file("key", key)}
	serves, err := Open(t.Context(), its)
	if err != nil {
		t.Fatal(err)
	}
	defer serves.Close()
	to := "tls://" + serves.server.Addr().String()
	comes, err := Open(t.Context(), Options{Cluster: "here", URL: to, TokenFile: token, CAFile: its.CertFile})
	if err != nil {
		t.Fatal(err)
	}
	defer comes.Close()
	eventually(t, comes, "")
	if err := comes.Publish(t.Context(), Incidents, "a", "1", []byte("from afar")); err != nil {
		t.Fatal(err)
	}
	if body, _, err := serves.Newest(t.Context(), Incidents, "a"); err != nil || string(body) != "from afar" {
		t.Errorf("%q, %v", body, err)
	}
	for name, o := range map[string]struct {
		Options
		says string
	}{
		"no token":      {Options{CAFile: its.CertFile}, "Authorization Violation"},
		"another token": {Options{CAFile: its.CertFile, TokenFile: file("other", "let me in too")}, "Authorization Violation"},
		"another CA":    {Options{CAFile: file("ca", other), TokenFile: token}, "certificate signed by unknown authority"},
	} {
		o.Cluster, o.URL = "here", to
		b, err := Open(t.Context(), o.Options)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		eventually(t, b, o.says)
		if err := b.Publish(t.Context(), Incidents, "a", "2", []byte("forged")); err == nil {
			t.Errorf("%s: it may publish", name)
		}
	}
	if body, _, err := serves.Newest(t.Context(), Incidents, "a"); err != nil || string(body) != "from afar" {
		t.Errorf("%q, %v", body, err)
	}
}

// An embedded server does not listen for everybody.
func TestListenNeedsAToken(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, says := range map[string]string{empty: "bus.tokenFile: it holds no token, and anybody could write to the bus", "/nowhere": "bus.tokenFile: open /nowhere: no such file or directory"} {
		if _, err := Open(t.Context(), Options{Cluster: "here", StoreDir: t.TempDir(), Listen: "127.0.0.1:0", TokenFile: file}); err == nil || err.Error() != says {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

// eventually waits until the bus is well, or says why it is not.
func eventually(t *testing.T, b *Bus, says string) {
	t.Helper()
	until := time.After(30 * time.Second)
	for {
		err := b.Healthy()
		if says == "" && err == nil || says != "" && err != nil && strings.Contains(err.Error(), says) {
			return
		}
		select {
		case <-until:
			t.Fatalf("it says %v, want %q", err, says)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// certificate vouches for itself at 127.0.0.1.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nats"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	its, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: its})), string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}))
}
