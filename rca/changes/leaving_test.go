package changes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// Pods in deletion are waited for where what they have is enough; with one whose time was over long
// ago somebody has to see to it, and only where the others are too few.
func TestWhoIsLeaving(t *testing.T) {
	const soon, late = 10 * time.Second, -6 * time.Minute
	for name, tc := range map[string]struct {
		gone [3]time.Duration // of h0, h1, h2 after noon; 0: it stays
		asks string
		want string
	}{
		"nobody leaves":            {[3]time.Duration{}, "1", ""},
		"one does":                 {[3]time.Duration{0, soon}, "1", "wait until a/h1 is gone: h1"},
		"one is too few":           {[3]time.Duration{0, soon}, "2", ""},
		"two do":                   {[3]time.Duration{0, soon, soon}, "2", "wait until 2 pods (a/h1, …) are gone: h1 h2"},
		"its time was over":        {[3]time.Duration{late}, "1", "see why a/h0 does not end on n, whose time was over at 11:54:00 UTC: h0"},
		"another leaves in time":   {[3]time.Duration{late, soon}, "1", "wait until a/h1 is gone: h1"},
		"which is too few":         {[3]time.Duration{soon, late}, "2", "see why a/h1 does not end on n, whose time was over at 11:54:00 UTC: h0 h1"},
		"two are late":             {[3]time.Duration{late, late}, "2", "see why 2 pods (a/h0, …) do not end on n, whose time was over long ago: h0 h1"},
		"all are too few together": {[3]time.Duration{late, soon}, "3", ""},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", GPUs: 3, MIGOff: []int{0, 1, 2}})
		for i, after := range tc.gone {
			if p := w.AddHolder(fmt.Sprint("h", i), "n", "nvidia.com/gpu", i); after != 0 {
				p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon.Add(after)}
			}
		}
		w.Asking(list("nvidia.com/gpu", tc.asks))
		c := w.bench(t, "Pod")
		lack, _ := c.Node("n").DeficitsOf(c.Wants)
		ch, ok := leaving(c, c.Node("n"), diagnosis.GPUsInUse, lack)
		got := ""
		if ok {
			var pods []string
			for _, p := range ch.Victims {
				pods = append(pods, p.Name)
			}
			got = ch.Title + ": " + strings.Join(pods, " ")
		}
		for i, after := range tc.gone {
			if told := strings.Contains(strings.Join(ch.Commands, "\n"), fmt.Sprintf("delete pod h%d ", i)); told && after != late || strings.HasPrefix(got, "see why 2") && after == late && !told {
				t.Errorf("%s: h%d in %q", name, i, ch.Commands)
			}
		}
		if got != tc.want || ok && (ch.Kind != diagnosis.Wait || ch.Untestable != "" || !ch.Manual || !strings.HasSuffix(ch.Until, "gone")) {
			t.Errorf("%s: %q, want %q; %+v", name, got, tc.want, ch)
		}
	}
}
