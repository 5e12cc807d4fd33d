package acceptance

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/remediate/executor"
)

// faultProxy stands between one process and the API server: it speaks upstream as a
// user, has the audit log know the process by its user agent, counts its writes, and
// lets a fault answer a request in the API server's stead.
type faultProxy struct {
	kubeconfig string // that points the process here
	agent      string
	up         *httputil.ReverseProxy
	handlers   sync.WaitGroup

	mu     sync.Mutex
	fault  fault
	times  map[string]int
	writes []string
	line   context.Context // that ends when the process is cut off
	cut    context.CancelFunc
}

// A fault looks at a request and says how it is answered; nil: by the API server.
type fault func(*asked) http.HandlerFunc

// asked is one request of the process. Write names the write that it is among all
// that the process has made, "PATCH nodes #2"; it is empty for reads and for writes
// that come at their own time or change nothing.
type asked struct {
	*http.Request
	write string
}

// newFaultProxy listens until the test ends. The user is the executor that the chart
// has installed in the namespace.
func newFaultProxy(t *testing.T, l *lane, ns, agent string) *faultProxy {
	t.Helper()
	return proxyTo(t, l.asExecutor(t, ns), agent)
}

// proxyTo listens until the test ends, and speaks upstream as the configuration says.
func proxyTo(t *testing.T, config *rest.Config, agent string) *faultProxy {
	t.Helper()
	target, err := url.Parse(config.Host)
	must(t, err)
	upstream, err := rest.TransportFor(config)
	must(t, err)
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	p := &faultProxy{agent: agent, times: map[string]int{}, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	p.line, p.cut = context.WithCancel(t.Context())
	p.up = &httputil.ReverseProxy{Transport: upstream, FlushInterval: -1, ErrorLog: quiet, // a watch streams
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("User-Agent", agent)
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := &http.Server{Handler: p, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		p.setCut(nil)
		<-served
		p.handlers.Wait()
		utilnet.CloseIdleConnectionsFor(upstream)
	})
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: test, cluster: {server: \"http://%s\"}}]\nusers: [{name: user, user: {}}]\n"+
		"contexts: [{name: test, context: {cluster: test, user: user}}]\ncurrent-context: test\n", listener.Addr())
	must(t, os.WriteFile(p.kubeconfig, []byte(text), 0o600))
	return p
}

func (p *faultProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.handlers.Add(1)
	defer p.handlers.Done()
	p.mu.Lock()
	a := &asked{Request: r, write: kindOfWrite(r)}
	if a.write != "" {
		p.times[a.write]++
		a.write += fmt.Sprintf(" #%d", p.times[a.write])
		p.writes = append(p.writes, a.write)
	}
	fault, line := p.fault, p.line
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(line, cancel)()
	a.Request = r.WithContext(ctx)
	if fault != nil {
		if answer := fault(a); answer != nil {
			answer(w, a.Request)
			return
		}
	}
	p.up.ServeHTTP(w, a.Request)
}

// set has a fault answer from now on; nil: none.
func (p *faultProxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// setCut has a fault answer from now on, and ends what is being answered: streams too.
func (p *faultProxy) setCut(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	p.cut()
	p.line, p.cut = context.WithCancel(context.WithoutCancel(p.line))
}

// made are the writes so far.
func (p *faultProxy) made() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes)
}

// kindOfWrite says what a request writes to: "PUT remediations/status". The leader's
// lease is renewed at its own time, reviews only ask, and Events only tell.
func kindOfWrite(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return ""
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	parts = parts[min(len(parts), map[string]int{"api": 2, "apis": 3}[parts[0]]):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	resource, name := parts[0], ""
	if len(parts) > 1 {
		name = parts[1]
	}
	if len(parts) > 2 {
		resource += "/" + parts[2]
	}
	switch {
	case resource == "leases" && name == executor.LeaderLease, strings.HasSuffix(resource, "reviews"), resource == "events":
		return ""
	}
	return r.Method + " " + resource
}

// killAt kills the process at a write: before the API server hears of it, or after it
// has answered and before the process hears that.
func (p *faultProxy) killAt(write string, after bool, kill func()) fault {
	return func(a *asked) http.HandlerFunc {
		if a.write != write {
			return nil
		}
		return func(_ http.ResponseWriter, r *http.Request) {
			if after {
				p.up.ServeHTTP(httptest.NewRecorder(), r)
			}
			kill()
			panic(http.ErrAbortHandler)
		}
	}
}

// reset ends the connection without an answer.
func reset(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

// hang answers nothing until the process gives up.
func hang(_ http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body) // whether the client is still there is only looked at then
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// always has every request answered so.
func always(answer http.HandlerFunc) fault {
	return func(*asked) http.HandlerFunc { return answer }
}
