package acceptance

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/testdata/controlplane"
)

// The built service tells a channel what the real scheduler refused, edits that message
// when nobody waits any more, posts nothing else, and speaks to nobody but Slack. It
// reaches it through the proxy of its environment, as it would from many clusters.
func TestPeopleAreToldInSlack(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	channel := fakeslack.New(time.Now)
	t.Cleanup(channel.Close)
	way := forwardTo(t, "slack.com:443", channel.URL())
	dir, metrics := t.TempDir(), controlplane.FreeAddress(t)
	config, token := filepath.Join(dir, "unpend.yaml"), filepath.Join(dir, "token")
	must(t, os.WriteFile(token, []byte(fakeslack.Token+"\n"), 0o600))
	must(t, os.WriteFile(config, fmt.Appendf(nil, "remediate: {namespace: default}\nbus: {storeDir: %s}\nweb: {metrics: %q}\nslack: {tokenFile: %s, channel: %s, cluster: prod}\n", t.TempDir(), metrics, token, fakeslack.Channel), 0o600))
	p := newProcess(t, []string{"HTTPS_PROXY=" + way.address, "SSL_CERT_FILE=" + way.roots}, "unpend", "run", "--config", config, "--kubeconfig", c.Kubeconfig())
	p.start(t)
	controlplane.Eventually(t, time.Minute, "the service is ready", func() (bool, string) { return answers(metrics, "/readyz", "ok") })

	job("2g.10gb", "")(t, c)
	var said fakeslack.Message
	controlplane.Eventually(t, time.Minute, "the channel is told of the Job", func() (bool, string) {
		all := channel.Messages("")
		if len(all) == 1 {
			said = all[0]
		}
		return len(all) == 1, fmt.Sprint(len(all), " messages")
	})
	for _, part := range []string{"default/training", "needs 1×2g.10gb", "MIGLayoutMismatch", "gpu-1/GPU 0", "repartition gpu-1/GPU 0", "schedules: the scheduler's filters accept gpu-1"} {
		if !strings.Contains(said.Shown(), part) {
			t.Errorf("the message lacks %q:\n%s", part, said.Shown())
		}
	}

	background := metav1.DeletePropagationBackground
	must(t, c.Client().BatchV1().Jobs("default").Delete(t.Context(), "training", metav1.DeleteOptions{PropagationPolicy: &background}))
	controlplane.Eventually(t, time.Minute, "the message says that it is over", func() (bool, string) {
		all := channel.Messages("")
		return len(all) == 1 && all[0].TS == said.TS && strings.Contains(all[0].Shown(), "Resolved"), all[0].Shown()
	})
	if wrong := channel.Complaints(); len(wrong) > 0 {
		t.Errorf("Slack would not have taken it: %q", wrong)
	}
	if others := way.others(); len(others) > 0 {
		t.Errorf("it asked for %q", others)
	}
	if all := strings.Join(p.out.all(), "\n"); strings.Contains(all, fakeslack.Token) {
		t.Error("its log has the token")
	}
}

// proxy lets through to one host, and notes who else was asked for.
type proxy struct {
	address string // for HTTPS_PROXY
	roots   string // file of the certificate that speaks for the host

	mu    sync.Mutex
	asked []string
}

func (p *proxy) others() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// forwardTo is a forward proxy behind which a host's TLS ends, and what is asked of it is
// asked at another address.
func forwardTo(t *testing.T, host, instead string) *proxy {
	t.Helper()
	to, err := url.Parse(instead)
	must(t, err)
	cert, roots := certificateOf(t, strings.TrimSuffix(host, ":443"))
	inner := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host }})
	inner.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	inner.StartTLS()
	t.Cleanup(inner.Close)
	p := &proxy{roots: roots}
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect || r.Host != host {
			p.mu.Lock()
			p.asked = append(p.asked, r.Method+" "+r.Host)
			p.mu.Unlock()
			w.WriteHeader(http.StatusForbidden)
			return
		}
		p.tunnel(w, inner.Listener.Addr().String())
	}))
	t.Cleanup(outer.CloseClientConnections)
	p.address = outer.URL
	return p
}

// tunnel joins the caller with an address until either hangs up.
func (p *proxy) tunnel(w http.ResponseWriter, address string) {
	there, err := net.Dial("tcp", address)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	var up sync.WaitGroup
	up.Go(func() {
		io.Copy(there, buffered)
		there.Close()
	})
	io.Copy(here, there)
	here.Close()
	up.Wait()
}

// certificateOf is one for a host, and the file of roots that trusts it alone.
func certificateOf(t *testing.T, host string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	must(t, os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
