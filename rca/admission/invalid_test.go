package admission

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// container requests and is limited to what is given.
func container(name string, requests, limits corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
}

// Devices are limited to as many whole ones as are requested; other resources are nobody's
// matter here.
func TestRequestsThatValidationRefuses(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	for name, tc := range map[string]struct {
		requests, limits corev1.ResourceList
		want, whole      string
	}{
		"as many":                 {list(gpu, "2"), list(gpu, "2"), "", ""},
		"limited alone":           {nil, list(gpu, "2"), "", ""},
		"requested alone":         {list(gpu, "2"), nil, "container main requests 2 nvidia.com/gpu and has no limit of it", "2"},
		"more than is requested":  {list(gpu, "1"), list(gpu, "2"), "container main requests 1 nvidia.com/gpu and is limited to 2: they must be equal", "2"},
		"less than is requested":  {list(gpu, "2"), list(gpu, "1"), "container main requests 2 nvidia.com/gpu and is limited to 1: they must be equal", "1"},
		"half a device":           {list(gpu, "500m"), list(gpu, "500m"), "container main asks for 500m nvidia.com/gpu, and a device cannot be cut", "1"},
		"half a device requested": {list(gpu, "1500m"), nil, "container main requests 1500m nvidia.com/gpu and has no limit of it", "2"},
		"of CPUs any":             {list("cpu", "500m"), list("cpu", "2"), "", ""},
		"of Kubernetes' own any":  {list("example.kubernetes.io/x", "1"), nil, "", ""},
		"of two, the first":       {list("a.com/a", "1", gpu, "1"), list(gpu, "1"), "container main requests 1 a.com/a and has no limit of it", "1"},
		"of two, both":            {list("a.com/a", "1"), list(gpu, "500m"), "container main requests 1 a.com/a and has no limit of it; container main asks for 500m nvidia.com/gpu, and a device cannot be cut", "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			var says, whole []string
			for _, bad := range InvalidRequests(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("main", tc.requests, tc.limits)}}}) {
				q := bad.Whole()
				says, whole = append(says, bad.Says()), append(whole, q.String())
				if bad.Init || bad.Container != "main" {
					t.Errorf("%+v", bad)
				}
			}
			if got := strings.Join(says, "; "); got != tc.want || strings.Join(whole, " ") != tc.whole {
				t.Errorf("%q, %v; want %q, %s", got, whole, tc.want, tc.whole)
			}
		})
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("a", list(gpu, "1"), nil)}, InitContainers: []corev1.Container{container("i", list(gpu, "1"), nil), container("j", nil, nil)}}}
	if bad := InvalidRequests(pod); len(bad) != 2 || bad[0].Init || bad[0].Container != "a" || !bad[1].Init || bad[1].Container != "i" {
		t.Errorf("%+v", bad)
	}
}

// Devices have a domain that is not Kubernetes' own.
func TestWhatIsADevice(t *testing.T) {
	for name, want := range map[corev1.ResourceName]bool{"nvidia.com/gpu": true, "nvidia.com/mig-1g.5gb": true, "cpu": false, "nvidia.com": false, "kubernetes.io/x": false, "a.kubernetes.io/x": false, "requests.nvidia.com/gpu": false} {
		if got := IsExtended(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A request that is invalid is told of its owner, with the LimitRanges of the namespace that
// fill in what the template leaves out: a default, or the least where there is none.
func TestInvalidRequestsAreShown(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	ranged := func(name string, item corev1.LimitRangeItem) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
	}
	of := func(kind corev1.LimitType, least, preset corev1.ResourceList) corev1.LimitRangeItem {
		return corev1.LimitRangeItem{Type: kind, Min: least, DefaultRequest: preset}
	}
	const at = "spec.template.spec.containers[name=main].resources."
	own := func(template []corev1.Container, by []diagnosis.Evidence) diagnosis.Evidence {
		var claims []diagnosis.Claim
		for _, k := range template[:min(len(template), 1)] {
			if len(k.Resources.Requests) > 0 {
				claims = append(claims, diagnosis.That("sum("+at+"requests["+gpu+"])", "", diagnosis.Is, "1"))
			}
			if len(k.Resources.Limits) > 0 {
				claims = append(claims, diagnosis.That("sum("+at+"limits["+gpu+"])", "", diagnosis.Is, "1"))
			} else {
				claims = append(claims, diagnosis.That(at+"limits["+gpu+"]", "", diagnosis.Absent, ""))
			}
		}
		for _, e := range by {
			claims = append(claims, e.Claims...)
		}
		return diagnosis.Fact("ReplicaSet/ml/w", "its pods: container main requests 1 nvidia.com/gpu and has no limit of it", claims...)
	}
	filled := func(n string) diagnosis.Evidence {
		return diagnosis.Fact("LimitRange/ml/lr", "makes "+n+" nvidia.com/gpu the default request", diagnosis.That("spec.limits[*].defaultRequest", gpu, diagnosis.Is, n))
	}
	bare := []corev1.Container{container("main", nil, nil), container("side", list(gpu, "1"), list(gpu, "1"))}
	for name, tc := range map[string]struct {
		template []corev1.Container
		ranges   []*corev1.LimitRange
		want     []diagnosis.Evidence
	}{
		"nothing fills in":       {bare, nil, nil},
		"a default":              {bare, []*corev1.LimitRange{ranged("lr", of(corev1.LimitTypeContainer, list(gpu, "3"), list(gpu, "2")))}, []diagnosis.Evidence{filled("2")}},
		"the least":              {bare, []*corev1.LimitRange{ranged("lr", of(corev1.LimitTypeContainer, list(gpu, "3"), nil))}, []diagnosis.Evidence{filled("3")}},
		"of another resource":    {bare, []*corev1.LimitRange{ranged("lr", of(corev1.LimitTypeContainer, list("cpu", "3"), list("cpu", "3")))}, nil},
		"of whole pods":          {bare, []*corev1.LimitRange{ranged("lr", of(corev1.LimitTypePod, list(gpu, "3"), nil))}, nil},
		"another namespace's":    {bare, []*corev1.LimitRange{in("hr", ranged("lr", of(corev1.LimitTypeContainer, list(gpu, "3"), nil)))}, nil},
		"the template requests":  {[]corev1.Container{container("main", list(gpu, "1"), nil)}, []*corev1.LimitRange{ranged("lr", of(corev1.LimitTypeContainer, list(gpu, "3"), nil))}, nil},
		"the template limits":    {[]corev1.Container{container("main", nil, list(gpu, "1"))}, []*corev1.LimitRange{ranged("lr", of(corev1.LimitTypeContainer, list(gpu, "3"), nil))}, nil},
		"the template is gone":   {nil, []*corev1.LimitRange{ranged("lr", of(corev1.LimitTypeContainer, list(gpu, "3"), nil))}, nil},
		"one of two fills it in": {bare, []*corev1.LimitRange{ranged("no", of(corev1.LimitTypePod, nil, nil)), ranged("lr", of(corev1.LimitTypeContainer, nil, list(gpu, "1")))}, []diagnosis.Evidence{filled("1")}},
	} {
		t.Run(name, func(t *testing.T) {
			st := &cluster.State{LimitRanges: tc.ranges}
			if tc.template != nil {
				st.ReplicaSets = []*appsv1.ReplicaSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"}, Spec: appsv1.ReplicaSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: tc.template}}}}}
			}
			c := refused(st, asking("p", gpu, "1"), "")
			f := c.Invalid()
			if want := "proven: container main requests 1 nvidia.com/gpu and has no limit of it"; told(f) != want {
				t.Fatalf("%q, want %q", told(f), want)
			}
			if want := append(append([]diagnosis.Evidence{own(tc.template, tc.want)}, tc.want...), c.lacks()...); fmt.Sprint(f.Evidence) != fmt.Sprint(want) {
				t.Errorf("%v, want %v", f.Evidence, want)
			}
		})
	}
}

// Where the template is valid, the words by which validation refuses are a hint.
func TestInvalidRequestsBySaying(t *testing.T) {
	for said, want := range map[string]string{
		"": "",
		"spec.containers[0].resources.limits: Limit must be set for non overcommitable resources": "possible: something changes its pods, and the API server said: spec.containers[0].resources.limits: Limit must be set for non overcommitable resources",
		"requests: Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2":              "possible: something changes its pods, and the API server said: requests: Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2",
		"requests: must be equal to example.com/x limit":                                          "",
	} {
		if got := told(refused(&cluster.State{}, asking("p"), said).Invalid()); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
	if f := (&Refused{Cluster: &view.Cluster{State: &cluster.State{}}}).Invalid(); f != nil {
		t.Errorf("of pods that exist: %v", f)
	}
}

// A pod out of the bounds of a LimitRange of its namespace is told by each bound; one that was
// not read, by the API server's words.
func TestBoundsOfLimitRanges(t *testing.T) {
	lr := func(namespace string, items ...corev1.LimitRangeItem) *corev1.LimitRange {
		return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lr"}, Spec: corev1.LimitRangeSpec{Limits: items}}
	}
	one := func(kind corev1.LimitType, bound string, cpu string) corev1.LimitRangeItem {
		item := corev1.LimitRangeItem{Type: kind}
		*map[string]*corev1.ResourceList{"min": &item.Min, "max": &item.Max, "maxLimitRequestRatio": &item.MaxLimitRequestRatio}[bound] = list("cpu", cpu)
		return item
	}
	const c = corev1.LimitTypeContainer
	for name, tc := range map[string]struct {
		requests, limits corev1.ResourceList
		ranges           *corev1.LimitRange
		want, claim      string
	}{
		"within all":            {list("cpu", "2"), list("cpu", "4"), lr("ml", one(c, "min", "2"), one(c, "max", "4"), one(c, "maxLimitRequestRatio", "2")), "", ""},
		"another namespace's":   {list("cpu", "2"), nil, lr("hr", one(c, "min", "3")), "", ""},
		"no request":            {nil, nil, lr("ml", one(c, "min", "1")), "container main requests no cpu, the least is 1", "spec.limits[type=Container].min[cpu] 1"},
		"too little a request":  {list("cpu", "1"), list("cpu", "4"), lr("ml", one(c, "min", "2")), "container main requests 1 cpu, the least is 2", "spec.limits[type=Container].min[cpu] 2"},
		"too little a limit":    {list("cpu", "2"), list("cpu", "1"), lr("ml", one(c, "min", "2")), "container main is limited to 1 cpu, the least is 2", "spec.limits[type=Container].min[cpu] 2"},
		"a request and no more": {list("cpu", "2"), nil, lr("ml", one(c, "min", "2")), "", ""},
		"no limit":              {list("cpu", "2"), nil, lr("ml", one(c, "max", "4")), "container main has no limit of cpu, the most is 4", "spec.limits[type=Container].max[cpu] 4"},
		"too large a limit":     {list("cpu", "2"), list("cpu", "5"), lr("ml", one(c, "max", "4")), "container main is limited to 5 cpu, the most is 4", "spec.limits[type=Container].max[cpu] 4"},
		"too large a request":   {list("cpu", "5"), list("cpu", "4"), lr("ml", one(c, "max", "4")), "container main requests 5 cpu, the most is 4", "spec.limits[type=Container].max[cpu] 4"},
		"too far a ratio":       {list("cpu", "1"), list("cpu", "3"), lr("ml", one(c, "maxLimitRequestRatio", "2")), "container main requests 1 cpu under a limit of 3, the limit may be 2 times the request", "spec.limits[type=Container].maxLimitRequestRatio[cpu] 2"},
		"the whole pod":         {list("cpu", "5"), list("cpu", "5"), lr("ml", one(corev1.LimitTypePod, "max", "4")), "the pod is limited to 5 cpu, the most is 4", "spec.limits[type=Pod].max[cpu] 4"},
		"of claims of disks":    {list("cpu", "5"), list("cpu", "5"), lr("ml", one(corev1.LimitTypePersistentVolumeClaim, "max", "4")), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := asking("p")
			pod.Spec.Containers = []corev1.Container{container("main", tc.requests, tc.limits)}
			f := refused(&cluster.State{LimitRanges: []*corev1.LimitRange{tc.ranges}}, pod, "").Bounds()
			if tc.want == "" {
				if f != nil {
					t.Errorf("%+v", f)
				}
				return
			}
			if want := "proven: LimitRange lr refuses it: " + tc.want; told(f) != want {
				t.Fatalf("%q, want %q", told(f), want)
			}
			if e := f.Evidence[0]; e.Ref != "LimitRange/ml/lr" || e.Fact != tc.want || len(e.Claims) != 1 || e.Claims[0].Op != diagnosis.Is || e.Claims[0].Path+" "+e.Claims[0].Value != tc.claim || len(f.Evidence) != 2 {
				t.Errorf("%+v, want %s", f.Evidence, tc.claim)
			}
		})
	}
	for said, want := range map[string]string{"maximum cpu usage per Container is 4": "possible: the API server said: maximum cpu usage per Container is 4", "cpu max limit to request ratio per Pod is 2": "possible: the API server said: cpu max limit to request ratio per Pod is 2", "exceeded quota: q": ""} {
		if got := told(refused(&cluster.State{Unread: map[string]string{"LimitRange": "forbidden"}}, asking("p"), said).Bounds()); got != want {
			t.Errorf("%s: %q", said, got)
		}
	}
	if f := (&Refused{Cluster: &view.Cluster{State: &cluster.State{}}}).Bounds(); f != nil {
		t.Errorf("of pods that exist: %v", f)
	}
}
