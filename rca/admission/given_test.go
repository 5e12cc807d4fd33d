package admission

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// gives is LimitRange r with a default.
func gives(namespace string, of corev1.LimitType, name corev1.ResourceName) *corev1.LimitRange {
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: of, Default: corev1.ResourceList{name: resource.MustParse("8")}}}}}
}

// What a LimitRange has given is what the API server has noted on the pod, where a range still gives as much.
func TestWhatALimitRangeGives(t *testing.T) {
	const note = "LimitRanger plugin set: cpu, nvidia.com/gpu request for container proxy; nvidia.com/gpu limit for container proxy; nvidia.com/gpu limit for init container setup; cpu request for container main"
	for name, tc := range map[string]struct {
		note, has string
		r         *corev1.LimitRange
		want      string
	}{
		"two containers":        {note, "8", gives("a", corev1.LimitTypeContainer, "nvidia.com/gpu"), "proxy setup"},
		"nothing is noted":      {"", "8", gives("a", corev1.LimitTypeContainer, "nvidia.com/gpu"), ""},
		"the range is gone":     {note, "8", gives("b", corev1.LimitTypeContainer, "nvidia.com/gpu"), ""},
		"it is of pods":         {note, "8", gives("a", corev1.LimitTypePod, "nvidia.com/gpu"), ""},
		"it gives other":        {note, "8", gives("a", corev1.LimitTypeContainer, "cpu"), ""},
		"nobody was given it":   {"LimitRanger plugin set: cpu request for container main", "8", gives("a", corev1.LimitTypeContainer, "nvidia.com/gpu"), ""},
		"it gave more once":     {note, "9", gives("a", corev1.LimitTypeContainer, "nvidia.com/gpu"), ""},
		"another asks for more": {strings.ReplaceAll(note, "setup", "other"), "8", gives("a", corev1.LimitTypeContainer, "nvidia.com/gpu"), "proxy other"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", Annotations: map[string]string{noteOfRange: tc.note}}}
		has := corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", tc.has)}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", "1")}}, {Name: "proxy", Resources: has}}
		pod.Spec.InitContainers = []corev1.Container{{Name: "setup", Resources: has}}
		got := ""
		if g := GivenBy([]*corev1.LimitRange{tc.r}, pod, "nvidia.com/gpu"); g != nil {
			got = strings.Join(g.Containers, " ")
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A default decides where the pod would ask no more than there is without it.
func TestWhetherADefaultDecides(t *testing.T) {
	pod := asking("w", "cpu", "2")
	pod.Namespace, pod.Annotations = "a", map[string]string{noteOfRange: "LimitRanger plugin set: cpu request for container proxy"}
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "proxy", Resources: corev1.ResourceRequirements{Requests: list("cpu", "8"), Limits: list("cpu", "8")}})
	g := GivenBy([]*corev1.LimitRange{gives("a", corev1.LimitTypeContainer, "cpu")}, pod, "cpu")
	for there, want := range map[string]bool{"1999m": false, "2": true, "9": true} {
		if g.Decides(pod, resource.MustParse(there)) != want {
			t.Errorf("of %s: %v", there, !want)
		}
	}
	if rest := g.Without(pod).Spec.Containers; len(rest[1].Resources.Requests)+len(rest[1].Resources.Limits) != 0 || len(rest[0].Resources.Requests) != 1 || len(pod.Spec.Containers[1].Resources.Limits) != 1 {
		t.Errorf("%+v of %+v", rest, pod.Spec.Containers)
	}
	const says = "LimitRange r gives some to containers that state none (proxy)"
	var facts []string
	for _, e := range g.Tell(pod) {
		facts = append(facts, e.Ref+": "+e.Fact)
	}
	if g.Says() != says || strings.Join(facts, "; ") != "Pod/a/w: LimitRanger has set cpu for proxy, which state none; LimitRange/a/r: gives 8 of cpu to containers that state none" {
		t.Errorf("%s: %q", g.Says(), facts)
	}
}

// A quota refuses what nobody wrote: it is told who did, where the quota would take the pod without that.
func TestAQuotaAndTheDefaultsOfARange(t *testing.T) {
	const refusal, by = "quota q refuses it: 0 of 4 %s used, %s asked", "; LimitRange r gives some to containers that state none (%s)"
	for name, tc := range map[string]struct {
		counted        corev1.ResourceName
		request, limit string // that the template states for main
		asked          string
		gives          *corev1.LimitRange
		beside         string // what another container states
		want           string // containers
	}{
		"a request":              {"requests.cpu", "", "", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "", "main"},
		"by its bare name":       {"cpu", "", "", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "", "main"},
		"a limit":                {"limits.cpu", "", "", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "", "main"},
		"a limit over a request": {"limits.cpu", "1", "", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "", "main"},
		"it states a request":    {"requests.cpu", "8", "", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "", ""},
		"it states a limit":      {"requests.cpu", "", "8", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "", ""},
		"it states its limit":    {"limits.cpu", "", "8", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "", ""},
		"no range of it":         {"requests.cpu", "", "", "8", gives("hr", corev1.LimitTypeContainer, "cpu"), "", ""},
		"it gives less by now":   {"requests.cpu", "", "", "9", gives("ml", corev1.LimitTypeContainer, "cpu"), "", ""},
		"a limit, by requests":   {"limits.cpu", "", "", "8", requested(), "", ""},
		"a request, by requests": {"requests.cpu", "", "", "8", requested(), "", "main"},
		"of something else":      {"requests.memory", "", "", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "", ""},
		"the rest is too much":   {"requests.cpu", "", "", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "5", ""},
		"the rest is not":        {"requests.cpu", "", "", "8", gives("ml", corev1.LimitTypeContainer, "cpu"), "4", "main"},
	} {
		t.Run(name, func(t *testing.T) {
			resources := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
			if tc.request != "" {
				resources.Requests["cpu"] = resource.MustParse(tc.request)
			}
			if tc.limit != "" {
				resources.Limits["cpu"] = resource.MustParse(tc.limit)
			}
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"}}
			rs.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Resources: resources}}
			pod := asking("p", "cpu", tc.asked, "memory", "8")
			pod.Spec.Containers[0].Resources.Limits = list("cpu", tc.asked, "memory", "8")
			if tc.request == "1" {
				pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1")
			}
			asked := resource.MustParse(tc.asked)
			if tc.beside != "" {
				side := corev1.Container{Name: "side", Resources: corev1.ResourceRequirements{Requests: list("cpu", tc.beside), Limits: list("cpu", tc.beside)}}
				rs.Spec.Template.Spec.Containers, pod.Spec.Containers = append(rs.Spec.Template.Spec.Containers, side), append(pod.Spec.Containers, side)
				asked.Add(resource.MustParse(tc.beside))
			}
			q := quota("q", list(string(tc.counted), "4"), list(string(tc.counted), "0"))
			c := refused(&cluster.State{ReplicaSets: []*appsv1.ReplicaSet{rs}, Quotas: []*corev1.ResourceQuota{q}, LimitRanges: []*corev1.LimitRange{tc.gives}}, pod, "")
			f, _ := c.Exceeded()
			want := fmt.Sprintf("proven: "+refusal, tc.counted, asked.String())
			if tc.want != "" {
				want += fmt.Sprintf(by, tc.want)
			}
			if told(f) != want {
				t.Fatalf("%s, want %s", told(f), want)
			}
			states, given := "", ""
			for _, e := range f.Evidence {
				switch {
				case strings.HasPrefix(e.Fact, "states no "):
					states = e.Ref + " " + e.Fact + " " + e.Claims[0].Path
				case strings.HasPrefix(e.Ref, "LimitRange/"):
					given = e.Ref + " " + e.Fact + " " + string(e.Claims[0].Op) + e.Claims[0].Value
				case e.Ref == "ResourceQuota/ml/q" && tc.want != "" && e.Claims[len(e.Claims)-1] != diagnosis.That("spec.limits[*]."+map[bool]string{true: "defaultRequest", false: "default"}[tc.gives.Spec.Limits[0].Default == nil], "cpu", diagnosis.Is, "8").Of("LimitRange/ml/r"):
					t.Errorf("%+v", e.Claims)
				}
			}
			if (states == "ReplicaSet/ml/w states no cpu for main spec.template.spec.containers[name=main].resources.limits[cpu]" && given == "LimitRange/ml/r gives 8 of cpu to containers that state none =8") != (tc.want != "") {
				t.Errorf("%q, %q", states, given)
			}
		})
	}
}

// requested is LimitRange r with a default of requests alone.
func requested() *corev1.LimitRange {
	r := gives("ml", corev1.LimitTypeContainer, "cpu")
	r.Spec.Limits[0].Default, r.Spec.Limits[0].DefaultRequest = nil, r.Spec.Limits[0].Default
	return r
}

// A default decides for the quota that would take the rest of the pod, and for no other.
func TestADefaultIsHeldAgainstEachQuota(t *testing.T) {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w"}}
	pod := asking("p", "cpu", "8")
	side := corev1.Container{Name: "side", Resources: corev1.ResourceRequirements{Requests: list("cpu", "3")}}
	rs.Spec.Template.Spec.Containers, pod.Spec.Containers = []corev1.Container{{Name: "main"}, side}, append(pod.Spec.Containers, side)
	r := gives("ml", corev1.LimitTypeContainer, "cpu")
	c := refused(&cluster.State{ReplicaSets: []*appsv1.ReplicaSet{rs}, LimitRanges: []*corev1.LimitRange{r},
		Quotas: []*corev1.ResourceQuota{quota("less", list("cpu", "2"), list("cpu", "0")), quota("more", list("cpu", "4"), list("cpu", "0"))}}, pod, "")
	for _, q := range c.Refusing() {
		if g := c.given(q, "cpu"); (g != nil) != (q.Name == "more") {
			t.Errorf("quota %s: %+v", q.Name, g)
		}
	}
}

// A LimitRange writes its limit into containers that state none, whatever they request: those that request more are invalid by it.
// One that states a limit keeps it.
func TestLimitsByDefaultThatAreTooLittle(t *testing.T) {
	for name, tc := range map[string]struct {
		request, limit string
		kind           corev1.LimitType
		want           string
	}{
		"more is requested":    {"1", "500m", corev1.LimitTypeContainer, "LimitRange r makes its pods invalid: container main requests 1 cpu and states no limit, and the one that it is given is 500m"},
		"as much is requested": {"500m", "500m", corev1.LimitTypeContainer, ""},
		"it states a limit":    {"1", "2", corev1.LimitTypeContainer, ""},
		"of another kind":      {"1", "500m", corev1.LimitTypePod, ""},
	} {
		pod := asking("p", "cpu", tc.request)
		pod.Spec.Containers[0].Resources.Limits = list("cpu", tc.limit)
		r := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: tc.kind, Default: list("cpu", "500m")}}}}
		got := ""
		for _, v := range Violations(&cluster.State{LimitRanges: []*corev1.LimitRange{r}}, pod) {
			got += v.Says()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
