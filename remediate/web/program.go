package web

import (
	"net/http"
	"time"
)

const (
	// mostPrograms are answered or wait at once: a flood of them costs readers nothing.
	mostPrograms = 16
	// programFor is how long one may take, which is longer than a person's page may; who
	// answers it gives up before.
	programFor = 3 * time.Minute
)

// program lets an agent through to who answers it. No session counts there: a token comes with
// every request, or it is refused.
func (p *Page) program(w http.ResponseWriter, r *http.Request) {
	select {
	case p.programs <- struct{}{}:
		defer func() { <-p.programs }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many questions are being answered: ask again", http.StatusServiceUnavailable)
		return
	}
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(programFor)); err != nil {
		http.Error(w, "the connection is gone", http.StatusInternalServerError)
		return
	}
	p.opts.Agents.ServeHTTP(w, r)
}
