package fakeslack

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Fault is how a request that would change the channel is answered.
type Fault struct {
	code  int
	hint  time.Duration
	soft  string // the error of a 200
	lost  bool   // the connection breaks before it is done
	after bool   // and after
	hangs bool
}

// Code is an HTTP status; with a Retry-After where the hint is not 0.
func Code(code int, hint time.Duration) Fault { return Fault{code: code, hint: hint} }

// Soft is an error in a 200.
func Soft(name string) Fault { return Fault{soft: name} }

// The other faults.
var (
	Lost   = Fault{lost: true}  // nothing is done
	Silent = Fault{after: true} // it is done
	Hangs  = Fault{hangs: true} // nothing is done, nothing is answered
)

// Fail has the next such requests answered so; those that were to fail before do not.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.Clone(faults)
}

// before answers where nothing is to be done.
func (f Fault) before(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case f.code != 0:
		if f.hint > 0 {
			w.Header().Set("Retry-After", fmt.Sprint(int(f.hint.Seconds())))
		}
		w.WriteHeader(f.code)
		fmt.Fprintf(w, "<html>%s</html>", r.FormValue("token")) // a proxy that says too much
	case f.lost:
		hangUp(w)
	case f.hangs:
		<-r.Context().Done()
	default:
		return false
	}
	return true
}

// hangUp breaks the connection.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	conn.Close()
}
