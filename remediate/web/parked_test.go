package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/unpend/unpend/remediate/notice"
)

// With three fixes, one plan under way and one that was parked, the page says how far the one
// is, which node somebody has to come to for the other and since when, and offers nothing.
func TestOneParkedOneUnderWay(t *testing.T) {
	s := newSite(t)
	p := scenario(t, "all-1g")
	f := *p.Finding
	f.Fixes = append(f.Fixes[:2:2], f.Fixes[1])
	f.Fixes[2].ID = 3
	p.Finding = &f
	parked := underWay(p)
	parked.What, parked.Plan, parked.Node, parked.Progress, parked.Since = notice.Parked, hash, "gpu-2", "", noon.Add(-2*time.Hour)
	p.Plans = []notice.Notice{parked, underWay(p)}
	s.tell(t, p)
	got := s.browser(t).signIn(t, adas).get(t, "/incidents/"+p.Incident).body
	for part, times := range map[string]int{"step 3 of 9: evict": 1, "Node <code>gpu-2</code> is cordoned for <time": 1, ">2 h 0 min</time> now": 1, "<code>kubectl unpend release gpu-2</code>": 1, "Nothing can be chosen now": 3, "Review fix": 0} {
		if n := strings.Count(got, part); n != times {
			t.Errorf("%q stands there %d times:\n%s", part, n, got)
		}
	}
}
