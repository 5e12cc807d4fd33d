package fakejira

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"
)

// Fault is how a request that would change something is answered.
type Fault struct {
	code  int
	hint  time.Duration
	lost  bool // the connection breaks before it is done
	after bool // and after
	hangs bool
	page  bool
	field [2]string // what is wrong with which
}

// Code is an HTTP status; with a Retry-After where the hint is not 0.
func Code(code int, hint time.Duration) Fault { return Fault{code: code, hint: hint} }

// Missing is a 400 because of a field.
func Missing(id, says string) Fault {
	return Fault{code: http.StatusBadRequest, field: [2]string{id, says}}
}

// The other faults.
var (
	Lost   = Fault{lost: true}  // nothing is done
	Silent = Fault{after: true} // it is done
	Hangs  = Fault{hangs: true} // nothing is done, nothing is answered
	Page   = Fault{page: true}  // nothing is done, and a login page says so with a 200
)

// Fail has the next such requests answered so; those that were to fail before do not.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.Clone(faults)
}

// writing counts a request, and answers as it was said.
func (s *Server) writing(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.writes++
		var f Fault
		if len(s.faults) > 0 {
			f, s.faults = s.faults[0], s.faults[1:]
		}
		s.mu.Unlock()
		switch {
		case f.code != 0:
			s.stumble(w, r, f)
		case f.lost:
			hangUp(w)
		case f.hangs:
			r.Body.Close()
			<-r.Context().Done()
		case f.page:
			fmt.Fprint(w, "<html>log in</html>")
		case f.after:
			next(httptest.NewRecorder(), r)
			hangUp(w)
		default:
			next(w, r)
		}
	}
}

// stumble answers a status, in a body that says too much.
func (s *Server) stumble(w http.ResponseWriter, r *http.Request, f Fault) {
	if f.hint > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(int(f.hint.Seconds())))
	}
	if f.code == http.StatusTooManyRequests {
		w.Header().Set("RateLimit-Reason", "jira-burst-based")
	}
	if f.field[0] != "" {
		s.fail(w, f.code, "", map[string]string{f.field[0]: f.field[1]})
		return
	}
	s.fail(w, f.code, "Error handling "+r.Header.Get("Authorization")+" "+Token, nil)
}

// hangUp breaks the connection.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	conn.Close()
}
