package guard

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

func TestTripped(t *testing.T) {
	lately := noon.Add(-10*time.Minute + time.Nanosecond)
	lose := func(v *View, n int, how func(*corev1.Node, time.Time), since time.Time) {
		for i := range n {
			how(v.Nodes[i], since)
		}
	}
	byFields := func(field string) func(*corev1.Node, time.Time) {
		return func(n *corev1.Node, since time.Time) {
			n.Spec.Unschedulable = true
			f := metav1.ManagedFieldsEntry{Manager: "kubectl", Time: new(metav1.NewTime(since)), FieldsV1: new(metav1.FieldsV1{})}
			if err := f.FieldsV1.UnmarshalJSON([]byte(`{"f:spec":{"` + field + `":{}}}`)); err != nil {
				t.Fatal(err)
			}
			n.ManagedFields = append(n.ManagedFields, f)
		}
	}
	// written has nodes be cordoned twice by their fields. What else was written, and entries
	// without fields or a time, tell nothing.
	written := func(last, before time.Time) func(*View) {
		return func(v *View) {
			lose(v, 3, byFields("f:unschedulable"), last)
			lose(v, 3, byFields("f:unschedulable"), before)
			lose(v, 3, byFields("f:podCIDR"), noon)
			for _, n := range v.Nodes {
				n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{Manager: "old"}, metav1.ManagedFieldsEntry{Manager: "empty", Time: new(metav1.NewTime(noon))})
			}
		}
	}
	const limit = "the limit is 20 %"
	var never time.Time
	for _, c := range []struct {
		name         string
		nodes        int
		may, not     func(*View)
		mayR, resetR time.Time // when it was last reset
		why          string
	}{
		{"share", 20, func(v *View) { lose(v, 4, notReady, lately) }, func(v *View) { lose(v, 5, notReady, lately) }, never, never,
			"5 of 20 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3 and 2 more), " + limit},
		{"at least 3", 4, func(v *View) { lose(v, 2, notReady, lately) }, func(v *View) { lose(v, 3, notReady, lately) }, never, never,
			"3 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3), " + limit},
		{"window", 4, func(v *View) { lose(v, 4, notReady, lately.Add(-time.Nanosecond)) }, func(v *View) { lose(v, 4, notReady, lately) }, never, never,
			"4 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3 and 1 more), " + limit},
		{"reset", 4, func(v *View) { lose(v, 4, notReady, lately) }, func(v *View) { lose(v, 4, notReady, lately) }, lately, lately.Add(-time.Nanosecond),
			"4 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3 and 1 more), " + limit},
		{"cordons of others", 4, func(v *View) { lose(v, 3, cordon, lately.Add(-time.Nanosecond)) }, func(v *View) { lose(v, 3, cordon, lately) }, never, never,
			"3 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3), " + limit},
		{"cordons whose time only the fields tell", 4, func(v *View) { lose(v, 3, byFields("f:podCIDR"), lately) }, func(v *View) { lose(v, 3, byFields("f:unschedulable"), lately) }, never, never,
			"3 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3), " + limit},
		{"the last writer of a cordon", 4, written(lately.Add(-time.Nanosecond), lately.Add(-time.Hour)), written(lately, lately.Add(-time.Hour)), never, never,
			"3 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3), " + limit},
		{"own cordons", 4, func(v *View) {
			lose(v, 2, cordon, lately)
			marked(v.Nodes[2], planFor(1, "gpu-3"), "")
			marked(v.Nodes[3], planFor(2, "gpu-4"), "stuck")
		}, func(v *View) {
			lose(v, 3, cordon, lately)
			marked(v.Nodes[3], planFor(2, "gpu-4"), "stuck")
		}, never, never, "3 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3), " + limit},
		{"own nodes that break", 4, func(v *View) { marked(v.Nodes[0], planFor(1, "gpu-1"), ""); lose(v, 2, notReady, lately) },
			func(v *View) { marked(v.Nodes[0], planFor(1, "gpu-1"), ""); lose(v, 3, notReady, lately) }, never, never,
			"3 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3), " + limit},
		{"nodes that are being added", 4, func(v *View) {
			lose(v, 4, notReady, lately)
			for _, n := range v.Nodes {
				n.CreationTimestamp = metav1.NewTime(lately)
			}
		}, func(v *View) {
			lose(v, 4, notReady, lately)
			for _, n := range v.Nodes {
				n.CreationTimestamp = metav1.NewTime(lately.Add(-time.Nanosecond))
			}
		}, never, never, "4 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3 and 1 more), " + limit},
		{"nodes without GPUs", 6, func(v *View) {
			lose(v, 3, notReady, lately)
			v.Nodes[0].Status.Capacity = nil
		}, func(v *View) {
			lose(v, 3, notReady, lately)
			v.Nodes[4].Status.Capacity, v.Nodes[5].Status.Capacity = nil, nil
		}, never, never, "3 of 4 GPU nodes were cordoned or became not Ready within 10m (gpu-1, gpu-2, gpu-3), " + limit},
		{"failures", 4, func(v *View) { fail(v, noon, v1alpha1.Failed, v1alpha1.Parked, v1alpha1.Stale) },
			func(v *View) { fail(v, noon, v1alpha1.Failed, v1alpha1.Parked, v1alpha1.Failed) }, never, never,
			"3 plans failed within 1h (gpu-0000000000#1 (00000000), gpu-0000000001#1 (00000001), gpu-0000000002#1 (00000002)), the limit is 3"},
		{"what people stopped", 4, func(v *View) {
			fail(v, noon, v1alpha1.Stopped, v1alpha1.Stopped, v1alpha1.Stopped, v1alpha1.Failed, v1alpha1.Stopped, v1alpha1.Failed)
		}, func(v *View) { fail(v, noon, v1alpha1.Stopped, v1alpha1.Failed, v1alpha1.Failed, v1alpha1.Parked) }, never, never,
			"3 plans failed within 1h (gpu-0000000001#1 (00000001), gpu-0000000002#1 (00000002), gpu-0000000003#1 (00000003)), the limit is 3"},
		{"failures of the hour", 4, func(v *View) { fail(v, noon.Add(-time.Hour), v1alpha1.Failed, v1alpha1.Failed, v1alpha1.Failed) },
			func(v *View) {
				fail(v, noon.Add(-time.Hour+time.Nanosecond), v1alpha1.Failed, v1alpha1.Failed, v1alpha1.Failed)
			}, never, never,
			"3 plans failed within 1h (gpu-0000000000#1 (00000000), gpu-0000000001#1 (00000001), gpu-0000000002#1 (00000002)), the limit is 3"},
		{"failures since the reset", 4, func(v *View) { fail(v, noon, v1alpha1.Failed, v1alpha1.Failed, v1alpha1.Failed) },
			func(v *View) { fail(v, noon, v1alpha1.Failed, v1alpha1.Failed, v1alpha1.Failed) }, noon, noon.Add(-time.Nanosecond),
			"3 plans failed within 1h (gpu-0000000000#1 (00000000), gpu-0000000001#1 (00000001), gpu-0000000002#1 (00000002)), the limit is 3"},
	} {
		v := View{Now: noon, Nodes: gpuNodes(c.nodes)}
		c.may(&v)
		if why, open := Defaults().Tripped(v, c.mayR); open || why != "" {
			t.Errorf("%s: this side: open: %s", c.name, why)
		}
		v = View{Now: noon, Nodes: gpuNodes(c.nodes)}
		c.not(&v)
		if why, open := Defaults().Tripped(v, c.resetR); !open || why != c.why {
			t.Errorf("%s: other side: %t\n got %s\nwant %s", c.name, open, why, c.why)
		}
	}
}

func fail(v *View, at time.Time, phases ...v1alpha1.Phase) {
	for i, p := range phases {
		v.Plans = append(v.Plans, *in(planFor(i, "gpu-1"), p, at))
	}
}

// Cordons of unknown age would trip it again after each reset.
func TestCordonsWithoutATimeDoNotTrip(t *testing.T) {
	v := View{Now: noon, Nodes: gpuNodes(4)}
	for _, n := range v.Nodes {
		n.Spec.Unschedulable = true
	}
	if why, open := Defaults().Tripped(v, time.Time{}); open {
		t.Error(why)
	}
}

func TestBreakerIsKept(t *testing.T) {
	instants := rapid.Map(rapid.Int64Range(0, 1<<61), func(n int64) time.Time {
		if n%5 == 0 {
			return time.Time{}
		}
		return time.Unix(0, n).UTC()
	})
	rapid.Check(t, func(r *rapid.T) {
		s := BreakerState{rapid.Bool().Draw(r, "open"), instants.Draw(r, "since"), rapid.String().Draw(r, "why"), instants.Draw(r, "reset")}
		if got, err := ReadBreaker(s.Data()); err != nil || got != s {
			r.Fatalf("got %+v, %v; want %+v", got, err, s)
		}
	})
}

func TestReadBreaker(t *testing.T) {
	reset := map[string]string{"open": "false", "since": "", "why": "", "resetAt": "2026-11-20T12:00:00Z"} // as ResetCommand leaves it
	if got, err := ReadBreaker(reset); err != nil || got != (BreakerState{ResetAt: noon}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := ReadBreaker(nil); err != nil || got != (BreakerState{}) {
		t.Errorf("never written: got %+v, %v", got, err)
	}
	for key, want := range map[string]string{
		"open":    `read ConfigMap unpend-breaker: open is "shut": strconv.ParseBool: parsing "shut": invalid syntax`,
		"resetAt": `read ConfigMap unpend-breaker: resetAt is "shut": parsing time "shut" as "2006-01-02T15:04:05.999999999Z07:00": cannot parse "shut" as "2006"`,
		"opened":  `read ConfigMap unpend-breaker: opened is "shut": no such key is known`,
	} {
		data := maps.Clone(reset)
		data["resetAt"], data[key] = "", "shut"
		got, err := ReadBreaker(data)
		if err == nil || err.Error() != want || got != (BreakerState{Open: true, Why: want}) {
			t.Errorf("%s: got %+v, %v\nwant open: %s", key, got, err, want)
		}
	}
}
