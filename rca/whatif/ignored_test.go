package whatif

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What HAMi counts by itself keeps a pod of HAMi's scheduler from no node, in any container; a pod of the default scheduler it
// keeps from all, and other resources keep either. The pod itself asks for as much as before.
func TestWhatHAMiCountsIsLeftOut(t *testing.T) {
	s := snapshot(t, Objects{Nodes: []*corev1.Node{node("a", 8, 1)}})
	one := resource.MustParse("1")
	for name, tc := range map[string]struct {
		scheduler string
		asks      []corev1.ResourceName
		init      bool
		fits      bool
	}{
		"HAMi's":                   {"hami-scheduler", OfHAMi, false, true},
		"in an init container":     {"hami-scheduler", OfHAMi[:1], true, true},
		"the default one's":        {corev1.DefaultSchedulerName, OfHAMi[:1], false, false},
		"nobody's by name":         {"", OfHAMi[:1], false, false},
		"and what no node has":     {"hami-scheduler", []corev1.ResourceName{OfHAMi[0], "example.org/x"}, false, false},
		"nothing of HAMi's at all": {"other", nil, false, true},
	} {
		p := pod("w", 1, 1)
		p.Spec.SchedulerName = tc.scheduler
		k := &p.Spec.Containers[0]
		if tc.init {
			p.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{}}}}
			k = &p.Spec.InitContainers[0]
		}
		for _, name := range tc.asks {
			k.Resources.Limits[name] = one
		}
		before := len(k.Resources.Limits)
		v := explain(t, s, p)
		if fits := len(v.Feasible()) == 1; fits != tc.fits || len(k.Resources.Limits) != before {
			t.Errorf("%s: fits %v, %v; asks %v", name, fits, v.Nodes, k.Resources.Limits)
		}
	}
}
