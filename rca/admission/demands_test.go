package admission

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// A quota on CPU or memory takes only containers that state them: each that does not is told,
// with what the quota allows of it. One that is used up is not told here.
func TestQuotasThatDemand(t *testing.T) {
	pod := asking("p", "cpu", "1")
	pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "side"})
	demanding := quota("q", list("limits.cpu", "4", "requests.memory", "8Gi"), list("limits.cpu", "3"))
	for name, tc := range map[string]struct {
		quotas   []*corev1.ResourceQuota
		says     string
		evidence []diagnosis.Evidence
	}{
		"none":                {nil, "", nil},
		"one that is used up": {[]*corev1.ResourceQuota{quota("q", list("pods", "0"), list("pods", "0"))}, "", nil},
		"one that demands": {[]*corev1.ResourceQuota{demanding, quota("r", list("pods", "0"), list("pods", "0"))},
			"proven: quota q takes only pods whose containers state what it limits: its containers must specify limits.cpu for: main,side; requests.memory for: main,side; nothing is used up by that",
			[]diagnosis.Evidence{
				diagnosis.Fact("ResourceQuota/ml/q", "limits limits.cpu to 4 (3 used): container main, side states none", diagnosis.That("status.hard", "limits.cpu", diagnosis.Is, "4"), diagnosis.That("status.used", "limits.cpu", diagnosis.Is, "3")),
				diagnosis.Fact("ResourceQuota/ml/q", "limits requests.memory to 8Gi (0 used): container main, side states none", diagnosis.That("status.hard", "requests.memory", diagnosis.Is, "8Gi"), diagnosis.That("status.used", "requests.memory", diagnosis.Is, "0"))}},
		"two that do": {[]*corev1.ResourceQuota{quota("q", list("limits.cpu", "4"), nil), quota("r", list("limits.memory", "4"), nil)},
			"proven: quota q takes only pods whose containers state what it limits: its containers must specify limits.cpu for: main,side; quota r takes only pods whose containers state what it limits: its containers must specify limits.memory for: main,side; nothing is used up by that",
			[]diagnosis.Evidence{
				diagnosis.Fact("ResourceQuota/ml/q", "limits limits.cpu to 4 (0 used): container main, side states none", diagnosis.That("status.hard", "limits.cpu", diagnosis.Is, "4"), diagnosis.That("status.used", "limits.cpu", diagnosis.Is, "0")),
				diagnosis.Fact("ResourceQuota/ml/r", "limits limits.memory to 4 (0 used): container main, side states none", diagnosis.That("status.hard", "limits.memory", diagnosis.Is, "4"), diagnosis.That("status.used", "limits.memory", diagnosis.Is, "0"))}},
	} {
		t.Run(name, func(t *testing.T) {
			c := refused(&cluster.State{Now: rcatest.Noon, Quotas: tc.quotas}, pod, "")
			f, words := c.Demands()
			if told(f) != tc.says || words != "" {
				t.Fatalf("%q, %q; want %q", told(f), words, tc.says)
			}
			if f != nil && fmt.Sprint(f.Evidence) != fmt.Sprint(append(tc.evidence, c.lacks()...)) {
				t.Errorf("%v, want %v", f.Evidence, tc.evidence)
			}
		})
	}
	if f, words := (&Refused{Cluster: &view.Cluster{State: &cluster.State{}}}).Demands(); f != nil || words != "" {
		t.Errorf("of pods that exist: %v", f)
	}
}

// Containers that a quota's refusal names and the template has not are put in by a webhook; the
// quota has to be one of the namespace.
func TestContainersThatAreInjected(t *testing.T) {
	const said = `pods "w-1" is forbidden: failed quota: q: must specify limits.cpu for: `
	for name, tc := range map[string]struct{ quota, namespace, said, want string }{
		"one":                  {"q", "ml", said + "proxy", "likely: quota q takes only pods whose containers state what it limits, and proxy, which its template does not have, does not: they are put in on the way (by a webhook), and have to state it there; nothing is used up by that"},
		"two, of two limits":   {"q", "ml", said + "proxy; limits.memory for: proxy, agent", "likely: quota q takes only pods whose containers state what it limits, and proxy, agent, which its template does not have, do not: they are put in on the way (by a webhook), and have to state it there; nothing is used up by that"},
		"one beside its own":   {"q", "ml", said + "main,setup,proxy", "likely: quota q takes only pods whose containers state what it limits, and proxy, which its template does not have, does not: they are put in on the way (by a webhook), and have to state it there; nothing is used up by that"},
		"its own":              {"q", "ml", said + "main,setup", ""},
		"another quota":        {"r", "ml", said + "proxy", ""},
		"another namespace's":  {"q", "hr", said + "proxy", ""},
		"it says another word": {"q", "ml", "exceeded quota: q", ""},
		"it says nothing":      {"q", "ml", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := asking("p", "cpu", "1")
			pod.Spec.InitContainers = []corev1.Container{{Name: "setup"}}
			st := &cluster.State{Now: rcatest.Noon, Quotas: []*corev1.ResourceQuota{in(tc.namespace, quota(tc.quota, gpus("1"), gpus("0")))}}
			if f, words := refused(st, pod, tc.said).Demands(); told(f) != tc.want || words != "" {
				t.Errorf("%q, %q; want %q", told(f), words, tc.want)
			}
		})
	}
}

// The API server may want a quota for a priority class where the namespace has none; where there
// is one now, or where quotas were not read, that is less sure.
func TestPodsThatNoQuotaCovers(t *testing.T) {
	const scopes, consume = `pods "w-1" is forbidden: insufficient quota to match these scopes: [{PriorityClass In [high]}]`, `pods "w-1" is forbidden: insufficient quota to consume: requests.nvidia.com/gpu`
	type terms = []corev1.ScopedResourceSelectorRequirement
	covering := func(all terms) *corev1.ResourceQuota {
		q := quota("q", list("pods", "9"), nil)
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: all}
		return q
	}
	class := func(op corev1.ScopeSelectorOperator, values ...string) corev1.ScopedResourceSelectorRequirement {
		return corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values}
	}
	other := class(corev1.ScopeSelectorOpExists)
	other.ScopeName = corev1.ResourceQuotaScopeBestEffort
	const none, now = "likely: the API server takes pods of priority class high only in a namespace with a quota for that class, and ml has none: ", "possible: the API server wanted a quota for priority class high; ml has q now: "
	for name, tc := range map[string]struct {
		quota       *corev1.ResourceQuota
		class, said string
		unread      string
		want        string
	}{
		"none":                     {nil, "high", scopes, "", none + scopes},
		"of no scopes":             {quota("q", list("pods", "9"), nil), "high", scopes, "", none + scopes},
		"of its class":             {covering(terms{class(corev1.ScopeSelectorOpIn, "low", "high")}), "high", scopes, "", now + scopes},
		"of any class":             {covering(terms{class(corev1.ScopeSelectorOpExists)}), "high", scopes, "", now + scopes},
		"of its class, as second":  {covering(terms{other, class(corev1.ScopeSelectorOpIn, "high")}), "high", scopes, "", now + scopes},
		"of another class":         {covering(terms{class(corev1.ScopeSelectorOpIn, "low")}), "high", scopes, "", none + scopes},
		"of no class":              {covering(terms{class(corev1.ScopeSelectorOpDoesNotExist)}), "high", scopes, "", none + scopes},
		"of all but its class":     {covering(terms{class(corev1.ScopeSelectorOpNotIn, "high")}), "high", scopes, "", none + scopes},
		"of another scope":         {covering(terms{other}), "high", scopes, "", none + scopes},
		"another namespace's":      {in("hr", covering(terms{class(corev1.ScopeSelectorOpExists)})), "high", scopes, "", none + scopes},
		"they were not read":       {nil, "high", scopes, "forbidden", "possible: the API server wants a quota that covers it; which quotas ml has was not read: " + scopes},
		"a pod without a class":    {nil, "", scopes, "", "likely: the API server takes such pods only in a namespace with a quota that covers them, and ml has none: " + scopes},
		"it is about something":    {nil, "high", consume, "", "likely: the API server takes such pods only in a namespace with a quota that covers them, and ml has none: " + consume},
		"it is about quotas alone": {nil, "high", "exceeded quota: q", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := asking("p")
			pod.Spec.PriorityClassName = tc.class
			st := &cluster.State{Now: rcatest.Noon, Unread: map[string]string{"ResourceQuota": tc.unread}}
			if tc.quota != nil {
				st.Quotas = []*corev1.ResourceQuota{tc.quota}
			}
			words := ""
			if tc.want != "" {
				words = "no quota covers it"
			}
			if f, got := refused(st, pod, tc.said).Demands(); told(f) != tc.want || got != words {
				t.Errorf("%q, %q; want %q, %q", told(f), got, tc.want, words)
			}
		})
	}
}

// A demand of a quota that was not read is told by the API server's words alone.
func TestDemandsThatWereNotRead(t *testing.T) {
	const said = "failed quota: q: must specify limits.cpu for: main"
	for unread, want := range map[string]string{"": "", "forbidden": "possible: the API server said: " + said} {
		if f, words := refused(&cluster.State{Unread: map[string]string{"ResourceQuota": unread}}, asking("p"), said).Demands(); told(f) != want || words != "" {
			t.Errorf("%q: %q, %q; want %q", unread, told(f), words, want)
		}
	}
}
