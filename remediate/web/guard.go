package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// policy has the browser load nothing but files of ours, send forms to nobody else, and show
// the page in no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded is the way of every request: who it is for, what its answer may do, who sent it,
// how much of it is read.
func (p *Page) guarded(next http.Handler) http.Handler {
	csrf := http.NewCrossOriginProtection()
	csrf.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "This came from another site's page, and was not done.", http.StatusForbidden)
	}))
	inner := csrf.Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		if !p.mine(r.Host) {
			http.Error(w, "This page is not served under that name. Open it by 127.0.0.1 or localhost, or list the name in web.hosts.", http.StatusMisdirectedRequest)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		inner.ServeHTTP(w, r)
	})
}

// mine says whether a request was meant for this page: another site's name that resolves
// to our address would make its pages ours (DNS rebinding).
func (p *Page) mine(host string) bool {
	name := hostOf(host)
	return loopback(name) || slices.Contains(p.opts.Hosts, name)
}

func hostOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// loopback says whether a name is this machine's, whatever a name server says.
func loopback(name string) bool {
	address, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && address.IsLoopback()
}
