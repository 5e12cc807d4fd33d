package admission

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/watcher/incident"
)

// A pod that is not there yet has the priority that admission would give it.
func TestPriorityOfTheNextPod(t *testing.T) {
	class := func(name string, value int32, all bool) *schedulingv1.PriorityClass {
		never := corev1.PreemptNever
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: all, PreemptionPolicy: &never}
	}
	all := []*schedulingv1.PriorityClass{class("low", 1, false), class("b", 7, true), class("a", 5, true), class("c", 6, true), class("d", 5, true), class("high", 9, false)}
	for _, c := range []struct {
		named, want string
		value       int32
	}{{"", "a", 5}, {"low", "low", 1}, {"high", "high", 9}} {
		p := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: c.named}}
		withPriority(p, all)
		if p.Spec.PriorityClassName != c.want || p.Spec.Priority == nil || *p.Spec.Priority != c.value || p.Spec.PreemptionPolicy == nil || *p.Spec.PreemptionPolicy != corev1.PreemptNever {
			t.Errorf("%q: %+v, want %s, %d", c.named, p.Spec, c.want, c.value)
		}
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: "gone"}}
	if withPriority(p, all); p.Spec.Priority != nil || p.Spec.PriorityClassName != "gone" {
		t.Errorf("a class that does not exist: %+v", p.Spec)
	}
}

// What waits has the priority that its pods say, else that of their class, or of the one that
// is everybody's; it has none, 0, where there are only others; where classes were not read, or
// the class is not there, nobody can say.
func TestPriorityOfAnIncident(t *testing.T) {
	class := func(name string, value int32, all bool) *schedulingv1.PriorityClass {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, GlobalDefault: all}
	}
	low, usual, seven := class("low", 1, false), class("usual", 5, true), int32(7)
	for name, c := range map[string]struct {
		says    *int32
		named   string
		classes []*schedulingv1.PriorityClass
		want    string
	}{
		"its pods say":       {&seven, "low", []*schedulingv1.PriorityClass{low, usual}, "7"},
		"of its class":       {nil, "low", []*schedulingv1.PriorityClass{low, usual}, "1"},
		"of everybody's":     {nil, "", []*schedulingv1.PriorityClass{low, usual}, "5"},
		"of none":            {nil, "", []*schedulingv1.PriorityClass{low}, "0"},
		"of one that is not": {nil, "gone", []*schedulingv1.PriorityClass{low, usual}, "unknown"},
		"nothing was read":   {nil, "", nil, "unknown"},
	} {
		got := "unknown"
		if p := PriorityOf(incident.Incident{Priority: c.says}, &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: c.named}}, c.classes); p != nil {
			got = strconv.Itoa(int(*p))
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Only a limit of so many times its request is within a ratio.
func TestRatios(t *testing.T) {
	for _, c := range []struct {
		request, limit, ratio string
		want                  bool
	}{{"1", "2", "2", true}, {"1", "3", "2", false}, {"0", "2", "2", false}, {"1", "0", "2", false}, {"500m", "1", "2", true}} {
		if got := WithinRatio(resource.MustParse(c.request), resource.MustParse(c.limit), resource.MustParse(c.ratio)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
