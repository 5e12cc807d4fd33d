package admit

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
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
		"within, as it is written":  {[]*corev1.LimitRange{in("a", container, "1e3", "1e3", "")}, "1k", "1k", "1k 1k"},
		"the first of equal minima": {[]*corev1.LimitRange{in("a", container, "1k", "", ""), in("a", container, "1e3", "", "")}, "500", "500", "1k 1k"},
		"the first of equal maxima": {[]*corev1.LimitRange{in("a", container, "", "1k", ""), in("a", container, "", "1e3", "")}, "2k", "2k", "1k 1k"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.LimitRanges = tc.ranges
			c := w.bench(t, "Deployment")
			c.Refused.All = []incident.Refusal{{Pod: w.Wait}}
			asks := list("request", tc.request, "limit", tc.limit)
			p := bounded(c, "cpu", edit.Amounts{Request: asks["request"], Limit: asks["limit"]})
			if got := p.Request.String() + " " + p.Limit.String(); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Requests of devices that cannot be are written as they were probably meant; those of init,
// and those that the template does not have, a person corrects.
func TestInvalidRequestsAreCorrected(t *testing.T) {
	container := func(name, request, limit string) corev1.Container {
		k := corev1.Container{Name: name}
		if request != "" {
			k.Resources.Requests = list("nvidia.com/gpu", request)
		}
		if limit != "" {
			k.Resources.Limits = list("nvidia.com/gpu", limit)
		}
		return k
	}
	for name, tc := range map[string]struct {
		containers, init []corev1.Container
		want             string
		is               string
	}{
		"cut":             {[]corev1.Container{container("c", "", "1500m")}, nil, "by plan, medium risk: write 2 nvidia.com/gpu as request and limit in deployment/w", "c 2/2"},
		"not limited":     {[]corev1.Container{container("c", "1", "")}, nil, "by plan, medium risk: write 1 nvidia.com/gpu as request and limit in deployment/w", "c 1/1"},
		"not equal":       {[]corev1.Container{container("c", "1", "2"), container("d", "1", "1")}, nil, "by plan, medium risk: write 2 nvidia.com/gpu as request and limit in deployment/w", "c 2/2 d 1/1"},
		"two":             {[]corev1.Container{container("c", "1", ""), container("d", "2", "")}, nil, "by plan, medium risk: write 1 nvidia.com/gpu as request and limit, 2 nvidia.com/gpu as request and limit in deployment/w", "c 1/1 d 2/2"},
		"of init":         {[]corev1.Container{container("c", "1", "1")}, []corev1.Container{container("i", "1", "")}, "by hand, none risk: correct the init container i", ""},
		"as it should be": {[]corev1.Container{container("c", "1", "1")}, nil, "by hand, none risk: look at what changes the requests of its pods", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Wait.Spec.Containers, w.Wait.Spec.InitContainers = tc.containers, tc.init
			w.Deployed()
			c := w.bench(t, "Deployment")
			c.Refused.All = []incident.Refusal{{Pod: w.Wait}}
			got := CorrectRequests(c)
			if edittest.ToldAll(got) != tc.want {
				t.Errorf("%s, want %s", edittest.ToldAll(got), tc.want)
			}
			if tc.is == "" {
				return
			}
			p := w.Wait.DeepCopy()
			got[0].Pod(p)
			var is []string
			for _, k := range p.Spec.Containers {
				r, l := k.Resources.Requests["nvidia.com/gpu"], k.Resources.Limits["nvidia.com/gpu"]
				is = append(is, fmt.Sprintf("%s %s/%s", k.Name, r.String(), l.String()))
			}
			if strings.Join(is, " ") != tc.is {
				t.Errorf("%q, want %q", is, tc.is)
			}
		})
	}
}

// Requests come within what LimitRanges allow where it can be told whose: of one container,
// or of each by itself.
func TestRequestsComeWithinLimits(t *testing.T) {
	ranges := func(kind corev1.LimitType, most string) []*corev1.LimitRange {
		return []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "l"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: kind, Max: list("cpu", most)}}}}}
	}
	one := func(name, cpu string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list("cpu", cpu), Limits: list("cpu", cpu)}}
	}
	const manual = "by hand, none risk: bring its requests within the LimitRanges of a"
	for name, tc := range map[string]struct {
		ranges           []*corev1.LimitRange
		containers, init []corev1.Container
		want             string
	}{
		"of a container":         {ranges(corev1.LimitTypeContainer, "2"), []corev1.Container{one("c", "4")}, nil, "by plan, medium risk: ask for 2 cpu (what the LimitRange allows) in deployment/w"},
		"of the second":          {ranges(corev1.LimitTypeContainer, "2"), []corev1.Container{one("c", "1"), one("d", "4")}, nil, "by plan, medium risk: ask for 2 cpu (what the LimitRange allows) in deployment/w"},
		"of both":                {ranges(corev1.LimitTypeContainer, "2"), []corev1.Container{one("c", "3"), one("d", "4")}, nil, "by plan, medium risk: ask for 2 cpu, 2 cpu (what the LimitRange allows) in deployment/w"},
		"of the whole pod":       {ranges(corev1.LimitTypePod, "2"), []corev1.Container{one("c", "4")}, nil, "by plan, medium risk: ask for 2 cpu (what the LimitRange allows) in deployment/w"},
		"of it and the pod":      {append(ranges(corev1.LimitTypePod, "2"), ranges(corev1.LimitTypeContainer, "2")...), []corev1.Container{one("c", "4")}, nil, "by plan, medium risk: ask for 2 cpu (what the LimitRange allows) in deployment/w"},
		"of a pod of two":        {ranges(corev1.LimitTypePod, "2"), []corev1.Container{one("c", "1"), one("d", "4")}, nil, manual},
		"beside an init":         {ranges(corev1.LimitTypeContainer, "2"), []corev1.Container{one("c", "4")}, []corev1.Container{one("i", "1")}, manual},
		"nothing is over":        {ranges(corev1.LimitTypeContainer, "4"), []corev1.Container{one("c", "4")}, nil, manual},
		"nothing can be allowed": {append(ranges(corev1.LimitTypeContainer, "2"), &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "m"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Min: list("cpu", "3")}}}}), []corev1.Container{one("c", "4")}, nil, manual},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.LimitRanges, w.Wait.Spec.Containers, w.Wait.Spec.InitContainers = tc.ranges, tc.containers, tc.init
			w.Deployed()
			c := w.bench(t, "Deployment")
			c.Refused.All = []incident.Refusal{{Pod: w.Wait}}
			if got := edittest.ToldAll(ComeWithinLimits(c)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
