package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

const devices = corev1.ResourceName("requests.nvidia.com/gpu")

func list(pairs ...string) corev1.ResourceList { return rcatest.List(pairs...) }

// gpus are so many that a quota allows, or has as used.
func gpus(n string) corev1.ResourceList { return list(string(devices), n) }

// quota is one of namespace ml, whose status has what it allows and what is used of that.
func quota(name string, hard, used corev1.ResourceList) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard, Used: used}}
}

// asking is a pod of namespace ml whose container main requests something.
func asking(name string, pairs ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}}}}
}

// noneAsked is for evidence of a quota alone.
func noneAsked(corev1.ResourceName) []diagnosis.Claim { return nil }

// holding is one that asks for so many GPUs.
func holding(name, n string) *corev1.Pod { return asking(name, "nvidia.com/gpu", n) }

// in puts an object elsewhere.
func in[T interface{ SetNamespace(string) }](namespace string, o T) T {
	o.SetNamespace(namespace)
	return o
}

// What a quota makes of a pod is the API server's arithmetic: what is used and what is asked may
// be as much as is allowed, and no more. Of what its status does not say the pods of the
// namespace are counted.
func TestWhatAQuotaMakesOfAPod(t *testing.T) {
	scoped := func(op corev1.ScopeSelectorOperator, values ...string) *corev1.ResourceQuota {
		q := quota("q", gpus("4"), gpus("0"))
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values}}}
		return q
	}
	written := quota("q", gpus("4"), nil)
	written.Status = corev1.ResourceQuotaStatus{}
	ended := holding("ended", "1")
	ended.Status.Phase = corev1.PodSucceeded
	none, three, five := []*corev1.Pod{}, []*corev1.Pod{holding("a", "1"), holding("b", "2")}, []*corev1.Pod{holding("a", "2"), holding("b", "3")}
	for name, tc := range map[string]struct {
		quota *corev1.ResourceQuota
		pods  []*corev1.Pod
		pod   *corev1.Pod
		want  string
	}{
		"just enough is left":         {quota("q", gpus("4"), gpus("2")), none, holding("p", "2"), "takes it, 2 left"},
		"too little is left":          {quota("q", gpus("4"), gpus("3")), none, holding("p", "2"), "refuses it, 1 left"},
		"nothing is left":             {quota("q", gpus("4"), gpus("4")), none, holding("p", "1"), "refuses it, 0 left, used up"},
		"more is used than may be":    {quota("q", gpus("4"), gpus("5")), none, holding("p", "1"), "refuses it, -1 left, used up"},
		"nothing is left, nor asked":  {quota("q", list(string(devices), "4", "pods", "9"), list(string(devices), "4", "pods", "1")), none, asking("p"), "takes it, 0 left"},
		"more than all may have":      {quota("q", gpus("4"), gpus("0")), none, holding("p", "5"), "refuses it, 4 left, beyond it"},
		"what all may have":           {quota("q", gpus("4"), gpus("1")), none, holding("p", "4"), "refuses it, 3 left"},
		"it asks none of it":          {quota("q", gpus("4"), gpus("4")), none, asking("p", "cpu", "1"), ""},
		"another namespace's":         {in("hr", quota("q", gpus("0"), gpus("0"))), none, holding("p", "1"), ""},
		"a scope leaves the pod out":  {scoped(corev1.ScopeSelectorOpExists), none, holding("p", "5"), ""},
		"a scope that is none":        {scoped("Near", "here"), none, holding("p", "5"), ""},
		"it wants a limit":            {quota("q", list("limits.cpu", "4"), list("limits.cpu", "0")), none, holding("p", "1"), "refuses it, 0 left, must specify limits.cpu for: main"},
		"its status says nothing":     {written, three, holding("p", "2"), "refuses it, 1 left, counted"},
		"its status says not this":    {quota("q", gpus("4"), list("pods", "2")), three, holding("p", "1"), "takes it, 1 left, counted"},
		"nobody is there to count":    {quota("q", gpus("4"), nil), none, holding("p", "1"), "takes it, 4 left, counted"},
		"others are not counted":      {quota("q", gpus("4"), nil), []*corev1.Pod{in("hr", holding("a", "3")), holding("b", "1")}, holding("p", "3"), "takes it, 3 left, counted"},
		"who has ended is not either": {quota("q", gpus("4"), nil), []*corev1.Pod{ended, holding("b", "1")}, holding("p", "3"), "takes it, 3 left, counted"},
		"its status is believed":      {quota("q", gpus("9"), gpus("3")), five, holding("p", "6"), "takes it, 6 left"},
	} {
		t.Run(name, func(t *testing.T) {
			st := &cluster.State{Now: rcatest.Noon, Quotas: []*corev1.ResourceQuota{tc.quota}, Pods: tc.pods}
			got := ""
			for _, q := range Quotas(st, tc.pod, nil, nil) {
				got += toldOf(q)
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

func toldOf(q Quota) string {
	left, words := q.Left(devices), []string{"takes it"}
	if len(q.Exceeded()) > 0 || q.Demand != "" {
		words[0] = "refuses it"
	}
	words = append(words, left.String()+" left")
	for word, is := range map[string]bool{"used up": q.UsedUp(), "counted": q.Counted, "beyond it": q.Beyond(), q.Demand: q.Demand != ""} {
		if is {
			words = append(words, word)
		}
	}
	slices.Sort(words[2:])
	return strings.Join(words, ", ")
}

// With other limits, without the pods that leave, and for several pods, a quota is what it would
// be; neither it nor who holds it is changed by the question.
func TestWhatAQuotaWouldMakeOfPods(t *testing.T) {
	a, b := holding("a", "1"), holding("b", "2")
	for name, tc := range map[string]struct {
		used  corev1.ResourceList
		hard  map[string]corev1.ResourceList
		leave []*corev1.Pod
		n     int
		want  string
	}{
		"as it is":                     {gpus("3"), nil, nil, 1, "4 of 4 [] 1 left, held by b a"},
		"for two":                      {gpus("3"), nil, nil, 2, "5 of 4 [requests.nvidia.com/gpu] 1 left, held by b a"},
		"raised":                       {gpus("3"), map[string]corev1.ResourceList{"q": gpus("5")}, nil, 2, "5 of 5 [] 2 left, held by b a"},
		"another is raised":            {gpus("3"), map[string]corev1.ResourceList{"r": gpus("5")}, nil, 2, "5 of 4 [requests.nvidia.com/gpu] 1 left, held by b a"},
		"one leaves":                   {gpus("3"), nil, []*corev1.Pod{b}, 2, "3 of 4 [] 3 left, held by a"},
		"both leave":                   {gpus("3"), nil, []*corev1.Pod{a, b}, 5, "5 of 4 [requests.nvidia.com/gpu] 4 left, held by "},
		"one leaves and it is counted": {nil, nil, []*corev1.Pod{b}, 3, "4 of 4 [] 3 left, held by a"},
	} {
		t.Run(name, func(t *testing.T) {
			st := &cluster.State{Now: rcatest.Noon, Quotas: []*corev1.ResourceQuota{quota("q", gpus("4"), tc.used)}, Pods: []*corev1.Pod{a, b}}
			before := st.Quotas[0].DeepCopy()
			q := Quotas(st, holding("p", "1"), tc.hard, tc.leave)[0]
			need, left, hard := q.Need(devices, tc.n), q.Left(devices), q.Hard[devices]
			var names []string
			for _, h := range q.Top(devices) {
				names = append(names, h.Pod.Name)
			}
			if got := fmt.Sprintf("%s of %s %v %s left, held by %s", &need, &hard, q.ExceededBy(tc.n), &left, strings.Join(names, " ")); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if !equality.Semantic.DeepEqual(before, st.Quotas[0]) {
				t.Error("the quota was changed")
			}
		})
	}
}

// refused is of a ReplicaSet ml/w that lacks the pod.
func refused(st *cluster.State, pod *corev1.Pod, says string) *Refused {
	return &Refused{Cluster: &view.Cluster{State: st}, Workload: incident.Ref{Kind: "ReplicaSet", Namespace: "ml", Name: "w"},
		All: []incident.Refusal{{Owner: incident.Ref{Kind: "ReplicaSet", Namespace: "ml", Name: "w"}, Pod: pod, Wants: 3, Missing: 2, Says: says}}}
}

func told(f *view.Finding) string {
	if f == nil {
		return ""
	}
	return string(f.Certainty) + ": " + f.Says
}

// Who holds most of a quota is named first, three of them, and of more how many there are.
func TestWhoHoldsAQuota(t *testing.T) {
	const says = "quota q refuses it: 9 of 9 requests.nvidia.com/gpu used, 1 asked"
	for want, pods := range map[string][]*corev1.Pod{
		says:                                   {},
		says + ", held by a (2)":               {holding("a", "2"), asking("idle")},
		says + ", held by b (3), a (2)":        {holding("a", "2"), holding("b", "3")},
		says + ", held by c (4), a (2), b (2)": {holding("b", "2"), holding("a", "2"), holding("c", "4")},
		says + ", held by a (1), b (1), c (1) and 1 more": {holding("d", "1"), holding("c", "1"), holding("b", "1"), holding("a", "1")},
		says + ", held by a (1), b (1), c (1) and 2 more": {holding("e", "1"), holding("d", "1"), holding("c", "1"), holding("b", "1"), holding("a", "1")},
	} {
		q := Quotas(&cluster.State{Now: rcatest.Noon, Quotas: []*corev1.ResourceQuota{quota("q", list(string(devices), "9", "pods", "99"), list(string(devices), "9", "pods", "1"))}, Pods: pods}, holding("p", "1"), nil, nil)[0]
		if got := q.Says(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if evidence := q.Evidence(noneAsked); len(evidence) != 1+min(3, len(q.Top(devices))) {
			t.Errorf("%d sentences of %s", len(evidence), want)
		}
	}
}

// A quota is shown by what its status says, or its spec where its pods were counted, and by who
// holds it, each with what it counts.
func TestQuotasAreShown(t *testing.T) {
	q := "ResourceQuota/ml/q"
	holder := func(of string, claims ...diagnosis.Claim) diagnosis.Evidence {
		return diagnosis.Fact("Pod/ml/a", "holds 1 of "+of, claims...)
	}
	for name, tc := range map[string]struct {
		quota *corev1.ResourceQuota
		want  []diagnosis.Evidence
	}{
		"by its status": {quota("q", gpus("1"), gpus("1")), []diagnosis.Evidence{
			diagnosis.Fact(q, "requests.nvidia.com/gpu: 1 used of 1, one pod asks 1", diagnosis.That("status.hard", string(devices), diagnosis.Is, "1"), diagnosis.That("status.used", string(devices), diagnosis.Is, "1")),
			holder("requests.nvidia.com/gpu", diagnosis.That(diagnosis.Requests, "nvidia.com/gpu", diagnosis.Is, "1"))}},
		"by its pods": {quota("q", gpus("1"), nil), []diagnosis.Evidence{
			diagnosis.Fact(q, "requests.nvidia.com/gpu: 1 used of 1, one pod asks 1 (counted from its pods: its status does not say)", diagnosis.That("spec.hard", string(devices), diagnosis.Is, "1"), diagnosis.That("counted", string(devices), diagnosis.Is, "1")),
			holder("requests.nvidia.com/gpu", diagnosis.That(diagnosis.Requests, "nvidia.com/gpu", diagnosis.Is, "1"))}},
		"of what is no request": {quota("q", list("pods", "1"), list("pods", "1")), []diagnosis.Evidence{
			diagnosis.Fact(q, "pods: 1 used of 1, one pod asks 1", diagnosis.That("status.hard", "pods", diagnosis.Is, "1"), diagnosis.That("status.used", "pods", diagnosis.Is, "1")), holder("pods", diagnosis.That("uses", "pods", diagnosis.Is, "1"))}},
	} {
		t.Run(name, func(t *testing.T) {
			st := &cluster.State{Now: rcatest.Noon, Quotas: []*corev1.ResourceQuota{tc.quota}, Pods: []*corev1.Pod{holding("a", "1")}}
			if got := Quotas(st, holding("p", "1"), nil, nil)[0].Evidence(noneAsked); fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// A quota that refuses is told by its own figures: surely by its status, likely by its pods; and
// of several the worst makes the headline.
func TestQuotasThatRefuse(t *testing.T) {
	const little, up, beyond = "its quota has too little left", "its quota is used up", "asks more than its quota allows"
	of := func(name, hard, used string) *corev1.ResourceQuota { return quota(name, gpus(hard), gpus(used)) }
	for name, tc := range map[string]struct {
		quotas      []*corev1.ResourceQuota
		says, words string
	}{
		"none":                   {nil, "", ""},
		"it takes it":            {[]*corev1.ResourceQuota{of("q", "4", "2")}, "", ""},
		"it demands a limit":     {[]*corev1.ResourceQuota{quota("q", list("limits.cpu", "4"), list("limits.cpu", "0"))}, "", ""},
		"too little":             {[]*corev1.ResourceQuota{of("q", "4", "3")}, "proven: quota q refuses it: 3 of 4 requests.nvidia.com/gpu used, 2 asked", little},
		"used up":                {[]*corev1.ResourceQuota{of("q", "4", "4")}, "proven: quota q refuses it: 4 of 4 requests.nvidia.com/gpu used, 2 asked", up},
		"beyond":                 {[]*corev1.ResourceQuota{of("q", "1", "0")}, "proven: quota q refuses it: 0 of 1 requests.nvidia.com/gpu used, 2 asked", beyond},
		"counted":                {[]*corev1.ResourceQuota{quota("q", gpus("1"), nil)}, "likely: quota q refuses it: 0 of 1 requests.nvidia.com/gpu used, 2 asked", beyond},
		"used up, and another":   {[]*corev1.ResourceQuota{of("q", "4", "4"), of("r", "4", "3")}, "proven: quota q refuses it: 4 of 4 requests.nvidia.com/gpu used, 2 asked; quota r refuses it: 3 of 4 requests.nvidia.com/gpu used, 2 asked", up},
		"beyond, and another":    {[]*corev1.ResourceQuota{of("q", "1", "0"), of("r", "4", "4")}, "proven: quota q refuses it: 0 of 1 requests.nvidia.com/gpu used, 2 asked; quota r refuses it: 4 of 4 requests.nvidia.com/gpu used, 2 asked", beyond},
		"another, and beyond":    {[]*corev1.ResourceQuota{of("q", "4", "4"), of("r", "1", "0")}, "proven: quota q refuses it: 4 of 4 requests.nvidia.com/gpu used, 2 asked; quota r refuses it: 0 of 1 requests.nvidia.com/gpu used, 2 asked", beyond},
		"one of them is counted": {[]*corev1.ResourceQuota{quota("q", gpus("1"), nil), of("r", "4", "4")}, "likely: quota q refuses it: 0 of 1 requests.nvidia.com/gpu used, 2 asked; quota r refuses it: 4 of 4 requests.nvidia.com/gpu used, 2 asked", beyond},
	} {
		t.Run(name, func(t *testing.T) {
			f, words := refused(&cluster.State{Now: rcatest.Noon, Quotas: tc.quotas}, holding("p", "2"), "").Exceeded()
			if told(f) != tc.says || words != tc.words {
				t.Errorf("%q, %q; want %q, %q", told(f), words, tc.says, tc.words)
			}
		})
	}
}

// What the API server said proves nothing of a quota that was read; of one that was not it is
// all there is.
func TestQuotasThatWereNotRead(t *testing.T) {
	const said = `pods "w-1" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2`
	for name, tc := range map[string]struct{ unread, said, says, words string }{
		"they were read":       {"", said, "", ""},
		"it says nothing":      {"forbidden", "", "", ""},
		"it says another word": {"forbidden", "no", "", ""},
		"it says it":           {"forbidden", said, "possible: the API server said: " + said, "a quota refuses it"},
	} {
		t.Run(name, func(t *testing.T) {
			f, words := refused(&cluster.State{Unread: map[string]string{"ResourceQuota": tc.unread}}, holding("p", "2"), tc.said).Exceeded()
			if told(f) != tc.says || words != tc.words {
				t.Errorf("%q, %q; want %q, %q", told(f), words, tc.says, tc.words)
			}
		})
	}
	if f, words := (&Refused{Cluster: &view.Cluster{State: &cluster.State{}}}).Exceeded(); f != nil || words != "" {
		t.Errorf("of pods that exist: %v", f)
	}
}

// Every finding shows that pods are missing, with what their owner was told last; how many it
// wants and lacks is claimed where its fields alone say so.
func TestPodsThatDoNotExistAreShown(t *testing.T) {
	three, of := int32(3), metav1.ObjectMeta{Namespace: "ml", Name: "w"}
	st := &cluster.State{
		ReplicaSets:  []*appsv1.ReplicaSet{{ObjectMeta: of, Spec: appsv1.ReplicaSetSpec{Replicas: &three}}},
		StatefulSets: []*appsv1.StatefulSet{{ObjectMeta: of}},
		DaemonSets:   []*appsv1.DaemonSet{{ObjectMeta: of}},
		Jobs:         []*batchv1.Job{{ObjectMeta: of, Spec: batchv1.JobSpec{Parallelism: &three}}},
	}
	for kind, fields := range map[string][2]string{"ReplicaSet": {"spec.replicas", "status.replicas"}, "StatefulSet": {}, "Deployment": {}, "DaemonSet": {"status.desiredNumberScheduled", "status.currentNumberScheduled"}, "Job": {"spec.parallelism", "status.active"}} {
		for said, fact := range map[string]string{"": "wants 3 pods, 2 of them do not exist", "no\n such  luck": "wants 3 pods, 2 of them do not exist; its last refusal: no such luck"} {
			c := refused(st, holding("p", "1"), said)
			c.All[0].Owner.Kind = kind
			var claims []diagnosis.Claim
			if fields[0] != "" {
				claims = append(claims, diagnosis.That(fields[0], "", diagnosis.Is, "3"), diagnosis.That(fields[0]+" - "+fields[1], "", diagnosis.Is, "2"))
			}
			if said != "" {
				claims = append(claims, diagnosis.Says("no such luck"))
			}
			if got, want := fmt.Sprint(c.lacks()), fmt.Sprint([]diagnosis.Evidence{diagnosis.Fact(kind+"/ml/w", fact, claims...)}); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
	c := refused(&cluster.State{}, holding("p", "1"), "")
	c.All = append(c.All, incident.Refusal{Says: "first"}, incident.Refusal{Says: "second"})
	if c.Says() != "first" || c.Next().Name != "p" {
		t.Errorf("%q of %s", c.Says(), c.Next().Name)
	}
	if none := (&Refused{}); none.Says() != "" || none.Next() != nil {
		t.Error("of pods that exist")
	}
}
