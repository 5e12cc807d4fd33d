package outbound_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/unpend/unpend/remediate/outbound"
)

// where is a set of addresses, for one answer.
func where(all ...string) [][]netip.Addr {
	var out []netip.Addr
	for _, s := range all {
		out = append(out, netip.MustParseAddr(s))
	}
	return [][]netip.Addr{out}
}

// attacks are addresses that somebody may write into a configuration to reach what only the
// service can. PORT is that of a server which must never be reached.
var attacks = []string{
	"http://169.254.169.254/latest/meta-data/", "https://169.254.169.254/", "https://169.254.170.2/v2/credentials", "https://[fd00:ec2::254]/", "https://168.63.129.16/", "https://100.100.100.200/", "https://192.0.0.192/",
	"http://metadata.google.internal/", "https://metadata.google.internal/computeMetadata/v1/", "https://METADATA.google.internal./",
	"http://127.0.0.1:PORT/", "https://127.0.0.1:PORT/", "https://localhost:PORT/", "https://LOCALHOST:PORT/", "https://localhost.:PORT/", "https://127.1.2.3:PORT/", "https://[::1]:PORT/", "https://[::]:PORT/", "https://0.0.0.0:PORT/", "https://0:PORT/",
	"https://2130706433:PORT/", "https://0x7f000001:PORT/", "https://0177.0.0.1:PORT/", "https://127.1:PORT/", "https://127.000.000.001:PORT/",
	"https://[::ffff:127.0.0.1]:PORT/", "https://[::ffff:7f00:1]:PORT/", "https://[::127.0.0.1]:PORT/", "https://[64:ff9b::7f00:1]:PORT/", "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:a9fe:a9fe::]/", "https://[2002:7f00:1::]:PORT/", "https://[::ffff:169.254.169.254]/",
	"https://10.0.0.1/", "https://10.255.255.255/", "https://172.16.0.1/", "https://172.31.255.254/", "https://192.168.1.1/", "https://100.64.0.1/", "https://[fc00::1]/", "https://[fdff::1]/", "https://[fe80::1]/", "https://[fe80::1%25lo]/", "https://[fec0::1]/",
	"https://224.0.0.1/", "https://255.255.255.255/", "https://240.0.0.1/", "https://198.18.0.1/", "https://[ff02::1]/",
	"https://inside.example:PORT/", "https://meta.example/", "https://both.example:PORT/", "https://six.example:PORT/", "https://mapped.example:PORT/", "https://kubernetes.default.svc/api/v1/secrets",
	"http://public.example/", "http://93.184.215.14/", "file:///etc/passwd", "gopher://127.0.0.1:PORT/_x", "ftp://127.0.0.1:PORT/", "dict://127.0.0.1:PORT/", "unix:///var/run/docker.sock", "//127.0.0.1:PORT/", "https:///nohost", "https://user:hunter2@public.example/", "https://public.example@127.0.0.1:PORT/",
	"javascript:alert(1)", "https://127.0.0.1%2f@public.example/",
}

func TestPromise(t *testing.T) { t.Run("S14", promiseS14) }

// Addresses that lead inside are refused, and nothing is dialed.
func promiseS14(t *testing.T) {
	var reached atomic.Int32
	inside := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	inside.Config.ConnState = func(net.Conn, http.ConnState) { reached.Add(1) }
	defer inside.Close()
	_, port, err := net.SplitHostPort(inside.Listener.Addr().String())
	must(t, err)
	dns := &names{stands: map[string][][]netip.Addr{"inside.example": where("127.0.0.1"), "meta.example": where("169.254.169.254"), "both.example": where("127.0.0.1", "127.0.0.2"), "six.example": where("::1"), "mapped.example": where("::ffff:127.0.0.1"),
		"metadata.google.internal": where("169.254.169.254"), "kubernetes.default.svc": where("10.96.0.1"), "public.example": where("93.184.215.14")}}
	c, err := outbound.New(outbound.Options{Resolver: dns.resolver(t), TLS: trust(inside)})
	must(t, err)
	held := 0
	for _, attack := range attacks {
		err := get(t, c, strings.ReplaceAll(attack, "PORT", port))
		unresolved := err != nil && strings.Contains(err.Error(), "no such host") // an address in the notation of C is a name, and none that there is
		if err == nil || !errors.Is(err, outbound.ErrForbidden) && !unresolved && !strings.Contains(err.Error(), "is no address") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", attack, err)
			continue
		}
		held++
	}
	if reached.Load() != 0 {
		t.Errorf("the inside was reached %d times", reached.Load())
	}
	if len(attacks) < 60 {
		t.Errorf("%d addresses", len(attacks))
	}
	fmt.Printf("S14 %d/%d, addresses refused, %d connections made\n", held, len(attacks), reached.Load())
}

// A name that stands for what is allowed, and then for what is not, is judged again for each
// connection; of two addresses the allowed one is taken.
func TestRebinding(t *testing.T) {
	var said atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { said.Add(1); w.Header().Set("Connection", "close") }))
	l, err := net.Listen("tcp", "0.0.0.0:0") //nolint:gosec // all of 127/8 is this machine
	must(t, err)
	server.Listener.Close()
	server.Listener = l
	server.StartTLS()
	defer server.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	must(t, err)
	dns := &names{stands: map[string][][]netip.Addr{"hook.example": {where("127.0.0.1")[0], where("127.0.0.2")[0]}, "two.example": where("127.0.0.2", "127.0.0.1")}}
	c, err := outbound.New(outbound.Options{Resolver: dns.resolver(t), TLS: trust(server), Allow: []string{"127.0.0.1"}})
	must(t, err)
	if err := get(t, c, "http://two.example:"+port); !errors.Is(err, outbound.ErrForbidden) || !strings.Contains(err.Error(), "without TLS") { // which is for what is listed by name
		t.Errorf("plain http: %v", err)
	}
	if err := get(t, c, "https://hook.example:"+port); err != nil || said.Load() != 1 {
		t.Errorf("as long as it stands for what is allowed: %v, %d", err, said.Load())
	}
	want := "ask: hook.example may not be spoken to: it stands for 127.0.0.2, which is loopback; list hook.example in outbound.allow if it is meant"
	if err := get(t, c, "https://hook.example:"+port); fmt.Sprint(err) != want || said.Load() != 1 {
		t.Errorf("%v, %d", err, said.Load())
	}
	if err := get(t, c, "https://two.example:"+port); err != nil || said.Load() != 2 {
		t.Errorf("of two: %v, %d", err, said.Load())
	}
}

// What is listed may be spoken to, and nothing beside it; a name lists no metadata.
func TestAllow(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must(t, err)
	dns := &names{stands: map[string][][]netip.Addr{"am.monitoring.svc": where("127.0.0.1"), "evil.example": where("169.254.169.254")}}
	for _, tc := range []struct {
		allow   []string
		address string
		want    string // in the error
	}{
		{[]string{"127.0.0.0/8"}, "http://127.0.0.1:PORT", "404"},
		{[]string{"127.0.0.1"}, "http://127.0.0.1:PORT", "404"},
		{[]string{"am.monitoring.svc"}, "http://am.monitoring.svc:PORT", "404"},
		{[]string{"AM.monitoring.svc."}, "http://am.monitoring.svc:PORT", "404"},
		{[]string{"am.monitoring.svc"}, "http://127.0.0.1:PORT", "without TLS"},
		{[]string{"monitoring.svc"}, "https://am.monitoring.svc:PORT", "which is loopback; list am.monitoring.svc in outbound.allow"},
		{[]string{"10.0.0.0/8"}, "https://127.0.0.1:PORT", "which is loopback"},
		{[]string{"evil.example"}, "https://evil.example", "which is a cloud's metadata service; list 169.254.169.254 in outbound.allow"},
	} {
		c, err := outbound.New(outbound.Options{Resolver: dns.resolver(t), Allow: tc.allow})
		must(t, err)
		if err := get(t, c, strings.ReplaceAll(tc.address, "PORT", port)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v, %s: %v", tc.allow, tc.address, err)
		}
	}
	for _, entry := range []string{"", "*", "*.svc", "http://x", "x:9093", "10.0.0.0/33", "a b"} {
		if _, err := outbound.New(outbound.Options{Allow: []string{entry}}); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("outbound.allow: %q is no name", entry)) {
			t.Errorf("%q: %v", entry, err)
		}
	}
}
