package web

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/unpend/unpend/remediate/notice"
	"github.com/unpend/unpend/remediate/wording"
)

const (
	// mostStreams of events are open at once, in all; a browser without one shows what is
	// there, and asks again when it is loaded again.
	mostStreams = 256
	// beat is how often a stream says that it is alive, and asks again what its reader may
	// read.
	beat = 15 * time.Second
	// streamFor ends a stream: the browser opens another, as who it is then.
	streamFor = 10 * time.Minute
	// gather what comes together.
	gather = 200 * time.Millisecond
)

// digest tells whether what is shown has changed, and nothing else.
func digest(of ...any) string {
	text, err := json.Marshal(of)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// findingSeen tells whether what was found is shown otherwise than it was.
func findingSeen(i notice.Proposal) string {
	if i.Wording == nil {
		return digest(i.Finding)
	}
	return digest(i.Finding, i.Wording)
}

// seenPlans tells whether what people do about an incident has changed.
func seenPlans(p notice.Proposal) string {
	return digest(p.Plans, p.Resolved, wording.Taken(p), wording.Snoozed(p))
}

// events tells a page, by server-sent events, that what it shows has changed; it then asks
// for that. So nothing is shown by this way that is not by the other.
func (p *Page) events(w http.ResponseWriter, r *http.Request, who *reader) {
	select {
	case p.streams <- struct{}{}:
		defer func() { <-p.streams }()
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	q := r.URL.Query()
	s := &stream{Page: p, who: who, incident: q.Get("incident"), seen: map[string]string{"list": q.Get("list"), "finding": q.Get("finding"), "plans": q.Get("plans")}}
	w.Header().Set("Content-Type", "text/event-stream")
	s.w, s.out = w, http.NewResponseController(w)
	if !s.send(": unpend\n\n") {
		return
	}
	s.run(r)
}

// stream is one open page.
type stream struct {
	*Page
	who      *reader
	incident string // empty: the list
	seen     map[string]string
	w        http.ResponseWriter
	out      *http.ResponseController
}

func (s *stream) run(r *http.Request) {
	alive, end := time.NewTicker(beat), time.NewTimer(streamFor)
	defer alive.Stop()
	defer end.Stop()
	for {
		changed := s.board.changed()
		if !s.tell(r) {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-end.C:
			return
		case <-alive.C:
			if !s.send(": alive\n\n") {
				return
			}
		case <-changed:
			select { // what comes at once is told at once
			case <-r.Context().Done():
				return
			case <-time.After(gather):
			}
		}
	}
}

// tell says what has changed since the page was made; false when there is nobody to tell.
func (s *stream) tell(r *http.Request) bool {
	now := map[string]string{}
	if s.incident == "" {
		all, err := s.visible(r.Context(), s.who)
		if err != nil {
			return false
		}
		now["list"] = digest(all)
	} else {
		i, ok := s.board.get(s.incident)
		if !ok {
			return false
		}
		v, err := s.veil(r.Context(), s.who, []notice.Proposal{i})
		if err != nil {
			return false
		}
		if i, ok = v.proposal(i); !ok {
			return false
		}
		now["finding"], now["plans"] = findingSeen(i), seenPlans(i)
	}
	for _, name := range []string{"list", "finding", "plans"} {
		if is, ok := now[name]; ok && is != s.seen[name] {
			s.seen[name] = is
			if !s.send(fmt.Sprintf("event: %s\ndata: %s\n\n", name, is)) {
				return false
			}
		}
	}
	return true
}

// send writes, within a time: who does not read is gone.
func (s *stream) send(text string) bool {
	if s.out.SetWriteDeadline(time.Now().Add(beat)) != nil {
		return false
	}
	if _, err := fmt.Fprint(s.w, text); err != nil {
		return false
	}
	return s.out.Flush() == nil
}
