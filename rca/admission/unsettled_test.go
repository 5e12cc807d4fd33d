package admission

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Whether a class is there objects tell, and words only where they were not read, or where the
// class has come since.
func TestClassesThatPodsName(t *testing.T) {
	const missed = `pods "w-1" is forbidden: no PriorityClass with name high was found`
	const noRuntime = `pod rejected: RuntimeClass "nvidia" not found`
	high, nvidia := []*schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "low"}}, {ObjectMeta: metav1.ObjectMeta{Name: "high"}}}, []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "gvisor"}}, {ObjectMeta: metav1.ObjectMeta{Name: "nvidia"}}}
	const unreadPriority, unreadRuntime = "PriorityClass", "RuntimeClass"
	for name, tc := range map[string]struct {
		priority, runtime string
		classes           []*schedulingv1.PriorityClass
		runtimes          []*nodev1.RuntimeClass
		unread, said      string
		want              string
	}{
		"none is named":                   {"", "", nil, nil, "", "", ""},
		"the refusal alone names one":     {"", "", nil, nil, "", missed, "likely: PriorityClass high: its PriorityClass is missing: PriorityClass high does not exist; its template does not name it: something gives it to its pods as they are made (a webhook)"},
		"it names another":                {"low", "", high[:1], nil, "", missed, "likely: PriorityClass high: its PriorityClass is missing: PriorityClass high does not exist; its template does not name it: something gives it to its pods as they are made (a webhook)"},
		"it is there":                     {"high", "nvidia", high, nvidia, "", "", ""},
		"it is missing":                   {"high", "", high[:1], nil, "", "", "proven: PriorityClass high: its PriorityClass is missing: PriorityClass high does not exist"},
		"it is misspelled":                {"hgih", "", high, nil, "", "", "proven: PriorityClass hgih: its PriorityClass is missing: PriorityClass hgih does not exist (nearest: high)"},
		"it is missing and said so":       {"high", "", high[:1], nil, "", missed, "proven: PriorityClass high: its PriorityClass is missing: PriorityClass high does not exist"},
		"it has come":                     {"high", "", high, nil, "", missed, "possible: PriorityClass high gone: its PriorityClass is there by now: PriorityClass high was missing and is there by now; its controller has not tried again (its back-off reaches minutes)"},
		"not read, nothing said":          {"high", "", nil, nil, unreadPriority, "", ""},
		"not read, but said":              {"high", "", nil, nil, unreadPriority, missed, "possible: PriorityClass high: its PriorityClass is missing: the API server finds no PriorityClass high (these were not read)"},
		"the API server's own for nodes":  {"system-node-critical", "", nil, nil, "", "", ""},
		"the API server's own for all":    {"system-cluster-critical", "", nil, nil, "", "", ""},
		"a runtime that is missing":       {"", "nvidia", nil, nvidia[:1], "", "", "proven: RuntimeClass nvidia: its RuntimeClass is missing: RuntimeClass nvidia does not exist"},
		"a runtime that has come":         {"", "nvidia", nil, nvidia, "", noRuntime, "possible: RuntimeClass nvidia gone: its RuntimeClass is there by now: RuntimeClass nvidia was missing and is there by now; its controller has not tried again (its back-off reaches minutes)"},
		"runtimes not read, nothing said": {"", "nvidia", nil, nil, unreadRuntime, "", ""},
		"runtimes not read, but said":     {"", "nvidia", nil, nil, unreadRuntime, noRuntime, "possible: RuntimeClass nvidia: its RuntimeClass is missing: the API server finds no RuntimeClass nvidia (these were not read)"},
		"both are missing":                {"high", "nvidia", nil, nil, "", "", "proven: PriorityClass high: its PriorityClass is missing: PriorityClass high does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := asking("p")
			if pod.Spec.PriorityClassName = tc.priority; tc.runtime != "" {
				pod.Spec.RuntimeClassName = &tc.runtime
			}
			c := refused(&cluster.State{PriorityClasses: tc.classes, RuntimeClasses: tc.runtimes, Unread: map[string]string{tc.unread: "forbidden"}}, pod, tc.said)
			r := c.Refuses()
			if got := toldRefusal(r); got != tc.want {
				t.Fatalf("%q, want %q", got, tc.want)
			}
			if r.certainty != diagnosis.Proven {
				if (r.evidence != nil) != (r.certainty == diagnosis.Likely) {
					t.Errorf("shown by %v", r.evidence)
				}
				return
			}
			want := diagnosis.Fact("ReplicaSet/ml/w", "its pods name "+r.Kind+" "+r.Name+", and no such object was read", diagnosis.That("spec", "", diagnosis.Contains, r.Name), diagnosis.That("", "", diagnosis.Absent, "").Of(r.Kind+"/"+r.Name))
			if len(r.evidence) != 1 || r.evidence[0].Ref != want.Ref || r.evidence[0].Fact != want.Fact || !slices.Equal(r.evidence[0].Claims, want.Claims) {
				t.Errorf("shown by %v, want %v", r.evidence, want)
			}
		})
	}
}

func toldRefusal(r APIRefusal) string {
	if r.Kind == "" {
		return ""
	}
	gone := ""
	if r.Gone {
		gone = " gone"
	}
	return strings.TrimSpace(string(r.certainty)+": "+r.Kind+" "+r.Name) + gone + ": " + r.words + ": " + r.says
}

// What no object tells is told by words that one admission plugin alone uses.
func TestRefusalsByTheirWords(t *testing.T) {
	for name, tc := range map[string]struct{ account, unread, said, want string }{
		"nothing said":           {"", "", "", ""},
		"words of nobody":        {"", "", "no luck", ""},
		"a service account":      {"robot", "", `error looking up service account ml/robot: serviceaccount "robot" not found`, "possible: ServiceAccount robot: its ServiceAccount is missing: the API server finds no ServiceAccount robot in ml (ServiceAccounts are not read here)"},
		"the usual one":          {"", "", "error looking up service account ml/default", "possible: ServiceAccount default: its ServiceAccount is missing: the API server finds no ServiceAccount default in ml (ServiceAccounts are not read here)"},
		"OpenShift's":            {"", "", "unable to validate against any security context constraint: []", "possible: SecurityContextConstraints: no SCC admits it: no SecurityContextConstraints of OpenShift admit it"},
		"a webhook that is down": {"", "", `failed calling webhook "w": admission webhook "w" timed out`, "possible: webhook down: an admission webhook fails: an admission webhook does not answer the API server: whatever it is asked about cannot be made"},
		"a webhook that denies":  {"", "", `admission webhook "w" denied the request`, "possible: webhook denies: an admission webhook refuses it: an admission webhook denies it: a policy of the cluster, no shortage"},
		"a webhook that fails":   {"", "", "Error creating: admission webhook \"w.io\" denied the\n request: Internal error occurred: no such field", "possible: webhook denies: an admission webhook fails at it: an admission webhook fails at it by an error of its own: no policy, no shortage"},
		"its template fails":     {"", "", `admission webhook "i.io" denied the request: template: inject:7:27: executing "inject" at <.Values.x>: invalid value`, "possible: webhook denies: an admission webhook fails at it: an admission webhook fails at it by an error of its own: no policy, no shortage"},
		"it panics":              {"", "", `admission webhook "i.io" denied the request: panic: nil map [recovered]`, "possible: webhook denies: an admission webhook fails at it: an admission webhook fails at it by an error of its own: no policy, no shortage"},
		"a policy of templates":  {"", "", `admission webhook "i.io" denied the request: template: name it, please`, "possible: webhook denies: an admission webhook refuses it: an admission webhook denies it: a policy of the cluster, no shortage"},
		"a quota that is new":    {"", "", "status unknown for quota: q", "possible: quota uncounted: its quota is not counted yet: a quota was new and what is used of it not counted yet, which passes within seconds"},
		"a quota with room":      {"", "", "exceeded quota: q", "possible: quota has room gone: its quota has room again: a quota refused it; by their own figures all quotas of ml would take it now, and its controller has not tried again (its back-off reaches minutes)"},
		"a demand that is met":   {"", "", "failed quota: q", "possible: quota has room gone: its quota has room again: a quota refused it; by their own figures all quotas of ml would take it now, and its controller has not tried again (its back-off reaches minutes)"},
		"quotas were not read":   {"", "forbidden", "exceeded quota: q", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := asking("p")
			pod.Spec.ServiceAccountName = tc.account
			if got := toldRefusal(refused(&cluster.State{Unread: map[string]string{"ResourceQuota": tc.unread}}, pod, tc.said).Refuses()); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
	if r := (&Refused{Cluster: &view.Cluster{State: &cluster.State{}}}).Refuses(); r.Kind != "" {
		t.Errorf("of pods that exist: %+v", r)
	}
}

// Pod Security is surer where the namespace's own label says which level it enforces.
func TestPodSecurity(t *testing.T) {
	namespace := func(name, level string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{enforceLabel: level}}}
	}
	const perhaps, surely = "possible: PodSecurity ml: Pod Security refuses it: the Pod Security level of namespace ml does not admit it", "likely: PodSecurity ml: Pod Security refuses it: namespace ml enforces the Pod Security level restricted, which does not admit it"
	for name, tc := range map[string]struct {
		namespaces []*corev1.Namespace
		want       string
	}{
		"not read":            {nil, perhaps},
		"another's level":     {[]*corev1.Namespace{namespace("hr", "restricted")}, perhaps},
		"the first's":         {[]*corev1.Namespace{namespace("ml", "restricted"), namespace("hr", "")}, surely},
		"the second's":        {[]*corev1.Namespace{namespace("hr", "baseline"), namespace("ml", "restricted")}, surely},
		"no level of its own": {[]*corev1.Namespace{namespace("ml", "")}, perhaps},
		"one that takes all":  {[]*corev1.Namespace{namespace("ml", "privileged")}, perhaps},
	} {
		t.Run(name, func(t *testing.T) {
			r := refused(&cluster.State{Namespaces: tc.namespaces}, asking("p"), `pods "w-1" is forbidden: violates PodSecurity "restricted:latest": privileged`).Refuses()
			if got := toldRefusal(r); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if (len(r.evidence) == 1 && r.evidence[0].Ref == "Namespace/ml" && r.evidence[0].Claims[0].Value == "restricted") != (tc.want == surely) {
				t.Errorf("shown by %v", r.evidence)
			}
		})
	}
}

// What restricted alone asks, baseline lets pass; a check of restricted may stand for its like of baseline.
func TestWhatRestrictedAloneAsks(t *testing.T) {
	for text, want := range map[string]bool{
		`allowPrivilegeEscalation != false (container "a" must set x=false), seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`:                    true,
		`unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or containers "a", "b" must set y), runAsUser=0 (pod must not set runAsUser=0)`: true,
		`restricted volume types (volume "v" uses restricted volume type "nfs")`:                                         true,
		`restricted volume types (volume "v" uses restricted volume type "hostPath")`:                                    false,
		`unrestricted capabilities (container "a" must not include "SYS_ADMIN" in securityContext.capabilities.add)`:     false,
		`seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")`:                          false,
		`runAsNonRoot != true (pod must set z), privileged (container "a" must not set securityContext.privileged=true)`: false,
	} {
		if got := restrictedAlone(`pods "w" is forbidden: violates PodSecurity "restricted:latest": ` + text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if restrictedAlone(`violates PodSecurity "baseline:latest": runAsNonRoot != true (x)`) || restrictedAlone("") {
		t.Error("it is no refusal of restricted")
	}
}

// What nothing explains is told in the API server's words, with what was ruled out; what was not
// read is not ruled out.
func TestRefusalsThatNothingExplains(t *testing.T) {
	const (
		nothing = "possible: the API server refused its pods, and nothing that was read says why; ruled out: "
		silence = "possible: its pods are not made, and nothing that was read says why; ruled out: "
	)
	for name, tc := range map[string]struct {
		unread      []string
		said        string
		says, words string
	}{
		"nothing was said":       {nil, "", silence + "quotas, LimitRanges, requests and limits of devices", "its pods are not made"},
		"something was said":     {nil, "no \n luck", nothing + "quotas, LimitRanges, requests and limits of devices; it said: no luck", "the API server refuses its pods"},
		"quotas were not read":   {[]string{"ResourceQuota"}, "", silence + "LimitRanges, requests and limits of devices", "its pods are not made"},
		"neither were the rest":  {[]string{"ResourceQuota", "LimitRange"}, "", silence + "requests and limits of devices", "its pods are not made"},
		"the words explain that": {nil, `admission webhook "w" denied`, `possible: an admission webhook denies it: a policy of the cluster, no shortage; it said: admission webhook "w" denied`, "an admission webhook refuses it"},
	} {
		t.Run(name, func(t *testing.T) {
			st := &cluster.State{Unread: map[string]string{}}
			for _, kind := range tc.unread {
				st.Unread[kind] = "forbidden"
			}
			if f, words := refused(st, asking("p"), tc.said).Unsettled(); told(f) != tc.says || words != tc.words {
				t.Errorf("%q, %q; want %q, %q", told(f), words, tc.says, tc.words)
			}
		})
	}
}

// NVIDIA's RuntimeClass alone is the GPU Operator's matter, and only while it is missing.
func TestNVIDIAsRuntimeClass(t *testing.T) {
	for name, tc := range map[string]struct {
		runtime, priority, said string
		classes                 []*nodev1.RuntimeClass
		says, words             string
	}{
		"none is named":           {"", "", "", nil, "", ""},
		"NVIDIA's":                {"nvidia-cdi", "", "", nil, "proven: RuntimeClass nvidia-cdi does not exist, so the API server refuses its pods", `no RuntimeClass "nvidia-cdi"`},
		"another's":               {"gvisor", "", "", nil, "", ""},
		"it has come":             {"nvidia", "", `pod rejected: RuntimeClass "nvidia" not found`, []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "nvidia"}}}, "", ""},
		"a priority class's name": {"", "nvidia-high", "", nil, "", ""},
		"a webhook names it":      {"", "", `pod rejected: RuntimeClass "nvidia" not found`, nil, "likely: RuntimeClass nvidia does not exist; its template does not name it: something gives it to its pods as they are made (a webhook), so the API server refuses its pods", `no RuntimeClass "nvidia"`},
		"what has come since":     {"", "", `pod rejected: RuntimeClass "nvidia" not found`, []*nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "nvidia"}}}, "", ""},
		"no name of an object":    {"", "", `pod rejected: RuntimeClass "nvidia; rm" not found`, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := asking("p")
			if pod.Spec.PriorityClassName = tc.priority; tc.runtime != "" {
				pod.Spec.RuntimeClassName = &tc.runtime
			}
			if f, words := refused(&cluster.State{RuntimeClasses: tc.classes}, pod, tc.said).NoRuntime(); told(f) != tc.says || words != tc.words {
				t.Errorf("%q, %q; want %q, %q", told(f), words, tc.says, tc.words)
			}
		})
	}
}

// An incident's refusals are those of its workload and its shape of request.
func TestRefusalsOfAnIncident(t *testing.T) {
	of := func(workload string, pod *corev1.Pod) incident.Refusal {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: workload, Controller: &yes}}
		return incident.Refusal{Pod: pod}
	}
	w := &view.Cluster{State: &cluster.State{}, Refusals: []incident.Refusal{of("w", holding("a", "1")), of("w", holding("b", "2")), of("v", holding("c", "1")), of("w", holding("d", "1"))}}
	ref := incident.Ref{Kind: "StatefulSet", Namespace: "ml", Name: "w"}
	got := RefusedOf(w, incident.Incident{ID: incident.ID(ref, incident.Requests(holding("x", "1"))), Workload: ref})
	if len(got.All) != 2 || got.All[0].Pod.Name != "a" || got.All[1].Pod.Name != "d" || got.Workload != ref || got.Cluster != w {
		t.Errorf("%+v", got.All)
	}
}

// Pods that name a PodGroup which Volcano's webhook does not find wait for that, where it is known that
// it is not there.
func TestPodsOfAMissingGroup(t *testing.T) {
	const denied = `admission webhook "validatepod.volcano.sh" denied the request: failed to get PodGroup for pod <ml/p>: podgroups.scheduling.volcano.sh "mine" not found`
	const somewhere = "possible: webhook denies: an admission webhook refuses it: Volcano's admission webhook takes no pod whose PodGroup it does not find"
	group := func(namespace, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}}}
	}
	for name, tc := range map[string]struct {
		named, unread string
		groups        []*unstructured.Unstructured
		want          string
	}{
		"it is not there":     {"mine", "", []*unstructured.Unstructured{group("ml", "other"), group("hr", "mine")}, "likely: PodGroup mine: its PodGroup is missing: its pods name PodGroup mine, which does not exist, and Volcano's admission webhook takes none before it does"},
		"it is there by now":  {"mine", "", []*unstructured.Unstructured{group("ml", "mine")}, somewhere},
		"groups are not read": {"mine", "forbidden", nil, somewhere},
		"they name none":      {"", "", nil, "possible: PodGroup: its PodGroup is missing: Volcano's admission webhook takes no pod whose PodGroup it does not find"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := asking("p")
			pod.Spec.SchedulerName, pod.Annotations = "volcano", map[string]string{"scheduling.k8s.io/group-name": tc.named}
			st := &cluster.State{Unread: map[string]string{"PodGroup.scheduling.volcano.sh": tc.unread}}
			st.PodGroups.Volcano = tc.groups
			if got := toldRefusal(refused(st, pod, denied).Refuses()); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
