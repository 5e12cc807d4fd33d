package changes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// The request nearest to what is asked is within every LimitRange of the namespace: the
// highest minimum, the lowest maximum and the lowest ratio count.
func TestNearestWithinLimits(t *testing.T) {
	in := func(namespace string, kind corev1.LimitType, least, most, ratio string) *corev1.LimitRange {
		item := corev1.LimitRangeItem{Type: kind, Min: corev1.ResourceList{}, Max: corev1.ResourceList{}, MaxLimitRequestRatio: corev1.ResourceList{}}
		for q, into := range map[string]corev1.ResourceList{"min" + least: item.Min, "max" + most: item.Max, "rat" + ratio: item.MaxLimitRequestRatio} {
			if q[3:] != "" {
				into["cpu"] = list("cpu", q[3:])["cpu"]
			}
		}
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
	}
	container, pod := corev1.LimitTypeContainer, corev1.LimitTypePod
	for name, tc := range map[string]struct {
		ranges         []*corev1.LimitRange
		request, limit string
		want           string
	}{
		"within":                    {[]*corev1.LimitRange{in("a", container, "1", "4", "2")}, "2", "4", "2 4"},
		"the highest minimum":       {[]*corev1.LimitRange{in("a", container, "1", "", ""), in("a", pod, "3", "", ""), in("a", container, "2", "", "")}, "500m", "4", "3 4"},
		"the lowest maximum":        {[]*corev1.LimitRange{in("a", container, "", "8", ""), in("a", pod, "", "2", ""), in("a", container, "", "4", "")}, "9", "9", "2 2"},
		"the lowest ratio":          {[]*corev1.LimitRange{in("a", container, "", "", "8"), in("a", pod, "", "", "2"), in("a", container, "", "", "4")}, "1", "8", "4 8"},
		"no ratio of another":       {[]*corev1.LimitRange{in("a", container, "", "", "8"), in("a", container, "1", "", "")}, "1", "8", "1 8"},
		"of another namespace":      {[]*corev1.LimitRange{in("b", container, "3", "", "")}, "1", "1", "1 1"},
		"of volumes":                {[]*corev1.LimitRange{in("a", corev1.LimitTypePersistentVolumeClaim, "3", "", "")}, "1", "1", "1 1"},
		"no limit is the request's": {nil, "2", "0", "2 2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.LimitRanges = tc.ranges
			c := w.bench(t, "Deployment")
			c.Refused.All = []incident.Refusal{{Pod: w.Wait}}
			asks := list("request", tc.request, "limit", tc.limit)
			p := c.bounded("cpu", pair{asks["request"], asks["limit"]})
			if got := p.request.String() + " " + p.limit.String(); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// A layout is gone back to where it can be told what the GPUs have.
func TestLayoutsThatCannotBeTold(t *testing.T) {
	ones := [][]sim.Placed{sim.All("A100-40GB", "1g.5gb")}
	for name, tc := range map[string]struct {
		node sim.Node
		edit func(*corev1.Node, *nodeprobe.NodeGeometry)
		want string
	}{
		"told":             {sim.Node{Layouts: ones}, func(*corev1.Node, *nodeprobe.NodeGeometry) {}, ""},
		"a sick GPU":       {sim.Node{Layouts: ones}, func(_ *corev1.Node, g *nodeprobe.NodeGeometry) { g.Report.GPUs[0].Healthy = false }, "GPU 0 of it is unhealthy: what MIG manager could make of it nobody knows"},
		"not partitioned":  {sim.Node{MIGOff: []int{0}}, func(*corev1.Node, *nodeprobe.NodeGeometry) {}, "no GPU of it is known to be partitioned"},
		"another strategy": {sim.Node{Layouts: ones}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels[view.LabelMIGStrategy] = "single" }, `under strategy "single" what it advertises does not tell the layout`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			tc.node.Name = "n"
			w.AddNode(tc.node, tc.edit)
			if got := unsureOfLayout(w.bench(t, "Deployment").Node("n")); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	w := newWorld()
	w.AddNode(sim.Node{Name: "n", Layouts: ones})
	n := w.bench(t, "Deployment").Node("n")
	for profile, want := range map[string]bool{"1g.5gb": true, "2g.10gb": false} {
		if got := laidOut(n, view.NamedLayouts{Layouts: map[int]placement.Layout{0: {profile: 7}}}); got != want {
			t.Errorf("laid out with 7 %s: %v", profile, got)
		}
	}
	n.Doubt = "no report of it can be believed"
	if got := unsureOfLayout(n); got != n.Doubt {
		t.Errorf("%q, want the doubt", got)
	}
}
