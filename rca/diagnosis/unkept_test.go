package diagnosis

import "testing"

// What is said of nodes without a blocker, by who has tried them.
func TestUnkept(t *testing.T) {
	cases := map[string]struct {
		placed bool
		cause  CauseID
		nodes  int
		says   string
		fits   bool
	}{
		"one":               {false, QuotaExceeded, 1, "nothing keeps the pod from it", true},
		"several":           {false, QuotaExceeded, 2, "nothing keeps the pod from them", true},
		"refused elsewhere": {false, SchedulerRefused, 1, "kube-scheduler's rules allow it, and do not decide", false},
		"refused, several":  {false, SchedulerRefused, 2, "kube-scheduler's rules allow them, and do not decide", false},
		"has its node":      {true, RuntimeNotConfigured, 2, "not asked for: the pod has its node", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			d := Diagnosis{Pods: WaitingPods{Placed: c.placed}, Causes: []Cause{{ID: Unknown}, {ID: c.cause}}}
			if says, fits := d.Unkept(c.nodes); says != c.says || fits != c.fits {
				t.Errorf("%q, fits %v", says, fits)
			}
			s := Summary{Pods: d.Pods, Causes: []CauseSummary{{ID: Unknown}, {ID: c.cause}}}
			if says, fits := s.Unkept(c.nodes); says != c.says || fits != c.fits {
				t.Errorf("travelled: %q, fits %v", says, fits)
			}
		})
	}
}
