package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// lacking is a Job of four pods that the API server refused, on one node of eight
// whole GPUs, and what it must be told as.
type lacking struct {
	says      string // what the event quotes; that of an exceeded quota unless set
	template  corev1.ResourceRequirements
	edit      func(*corev1.PodSpec)
	objects   []any
	unread    []string // kinds that the dump does not hold
	want      diagnosis.CauseID
	certainty diagnosis.Certainty
	words     string // part of what the cause says
	kinds     []diagnosis.FixKind
	verdict   diagnosis.Verdict
	title     string // of the first fix
	never     []diagnosis.FixKind
}

const quotaSays = `Error creating: pods "train-x" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=4`

func list(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func named(kind, name string) (metav1.TypeMeta, metav1.ObjectMeta) {
	return metav1.TypeMeta{APIVersion: "v1", Kind: kind}, metav1.ObjectMeta{Namespace: "demo", Name: name, UID: "uid-1", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}
}

func quota(name, hard, used string, edit ...func(*corev1.ResourceQuota)) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: list("requests.nvidia.com/gpu", hard)}}
	q.TypeMeta, q.ObjectMeta = named("ResourceQuota", name)
	q.Status.Hard = q.Spec.Hard
	if used != "" {
		q.Status.Used = list("requests.nvidia.com/gpu", used)
	}
	for _, e := range edit {
		e(q)
	}
	return q
}

func limitRange(item corev1.LimitRangeItem) *corev1.LimitRange {
	lr := &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}}}
	lr.TypeMeta, lr.ObjectMeta = named("LimitRange", "limits")
	return lr
}

// holding is a pod that runs on the node with some GPUs.
func holding(name, gpus string, policy corev1.RestartPolicy) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "gpu-1", RestartPolicy: policy, Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", gpus)}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	p.TypeMeta, p.ObjectMeta = named("Pod", name)
	p.UID = types.UID("uid-" + name)
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "other", UID: "other", Controller: &yes}}
	return p
}

func asksGPU(n string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", n)}
}

func event(kind, name, says string) *corev1.Event {
	e := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "demo", Name: name, UID: "uid-1"}, Type: corev1.EventTypeWarning, Reason: "FailedCreate", Message: says,
		FirstTimestamp: metav1.NewTime(noon.Add(-5 * time.Minute)), LastTimestamp: metav1.NewTime(noon)}
	e.TypeMeta, e.ObjectMeta = named("Event", name+".1")
	return e
}

// objects of the case, the node, and the Job's.
func (c lacking) dump(t *testing.T) string {
	t.Helper()
	n := sim.Node{Name: "gpu-1", Model: a100, GPUs: 8, MIGOff: []int{0, 1, 2, 3, 4, 5, 6, 7}}.Object(noon)
	n.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	four := int32(4)
	j := &batchv1.Job{Spec: batchv1.JobSpec{Parallelism: &four, Completions: &four, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"job-name": "train"}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Resources: c.template}}}}}}
	j.TypeMeta, j.ObjectMeta = named("Job", "train")
	j.APIVersion = "batch/v1"
	if c.edit != nil {
		c.edit(&j.Spec.Template.Spec)
	}
	says := c.says
	if says == "" {
		says = quotaSays
	}
	items := append([]any{n, j, event("Job", "train", says)}, c.objects...)
	for _, kind := range []string{"ResourceQuota", "LimitRange", "PriorityClass", "Pod"} {
		if !slices.Contains(c.unread, kind) {
			items = append(items, emptyList(kind))
		}
	}
	return dumpItems(t, items)
}

func dumpItems(t *testing.T, items []any) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "cluster.json", string(data))
}

// Each refusal next to the one it is confused with.
func TestRefusalsAreToldApart(t *testing.T) {
	scoped := func(op corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuota) {
		return func(q *corev1.ResourceQuota) {
			q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values}}}
		}
	}
	only := func(scope corev1.ResourceQuotaScope) func(*corev1.ResourceQuota) {
		return func(q *corev1.ResourceQuota) { q.Spec.Scopes = []corev1.ResourceQuotaScope{scope} }
	}
	limits := func(hard map[string]string) func(*corev1.ResourceQuota) {
		return func(q *corev1.ResourceQuota) {
			q.Spec.Hard, q.Status = corev1.ResourceList{}, corev1.ResourceQuotaStatus{Used: corev1.ResourceList{}}
			for name, n := range hard {
				q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(n)
				q.Status.Used[corev1.ResourceName(name)] = resource.MustParse("0")
			}
			q.Status.Hard = q.Spec.Hard
		}
	}
	class := &schedulingv1.PriorityClass{Value: 10, GlobalDefault: true}
	class.TypeMeta, class.ObjectMeta = metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, metav1.ObjectMeta{Name: "batch"}
	container := func(item corev1.LimitRangeItem) *corev1.LimitRange {
		item.Type = corev1.LimitTypeContainer
		return limitRange(item)
	}
	raise, manual, ask := []diagnosis.FixKind{diagnosis.RaiseQuota}, []diagnosis.FixKind{diagnosis.Manual}, []diagnosis.FixKind{diagnosis.ChangeRequest}
	deadline := int64(60)
	held := []any{quota("gpus", "4", "4"), holding("a", "3", corev1.RestartPolicyNever), holding("b", "1", corev1.RestartPolicyNever)}
	cases := map[string]lacking{
		"quota used up": {template: asksGPU("1"), objects: held, want: diagnosis.QuotaExceeded, certainty: diagnosis.Proven, kinds: raise, verdict: diagnosis.Schedules,
			words: "quota gpus refuses it: 4 of 4 requests.nvidia.com/gpu used, 1 asked, held by a (3), b (1)", title: "raise quota gpus: requests.nvidia.com/gpu 4 → 8"},
		"quota with room for some":   {template: asksGPU("2"), objects: []any{quota("gpus", "5", "4")}, want: diagnosis.QuotaExceeded, certainty: diagnosis.Proven, kinds: raise, verdict: diagnosis.Schedules, title: "raise quota gpus: requests.nvidia.com/gpu 5 → 12"},
		"quota without a status":     {template: asksGPU("1"), objects: []any{quota("gpus", "4", ""), holding("a", "4", corev1.RestartPolicyNever)}, want: diagnosis.QuotaExceeded, certainty: diagnosis.Likely, kinds: raise, verdict: diagnosis.Schedules, words: "4 of 4"},
		"quota has room again":       {template: asksGPU("1"), objects: []any{quota("gpus", "4", "0")}, want: diagnosis.Unknown, certainty: diagnosis.Possible, kinds: []diagnosis.FixKind{diagnosis.Wait}, verdict: diagnosis.Waits, words: "exceeded quota: gpus", never: raise},
		"quota not read":             {template: asksGPU("1"), unread: []string{"ResourceQuota"}, want: diagnosis.QuotaExceeded, certainty: diagnosis.Possible, kinds: manual, verdict: diagnosis.Waits, words: "exceeded quota: gpus", never: raise},
		"quota of another namespace": {template: asksGPU("1"), objects: []any{quota("gpus", "4", "4", func(q *corev1.ResourceQuota) { q.Namespace = "other" })}, want: diagnosis.Unknown, certainty: diagnosis.Possible, never: raise},
		"quota that a webhook keeps": {template: asksGPU("1"), says: `Error creating: admission webhook "policy.example.com" denied the request: no`, want: diagnosis.Unknown, certainty: diagnosis.Possible, kinds: manual, words: "policy.example.com", never: raise},
		"quota of pods":              {template: asksGPU("1"), objects: []any{quota("pods", "0", "", limits(map[string]string{"pods": "0"}))}, want: diagnosis.QuotaExceeded, certainty: diagnosis.Proven, kinds: raise, verdict: diagnosis.Schedules, title: "raise quota pods: pods 0 → 4"},
		"quota of another class":     {template: asksGPU("1"), objects: []any{quota("gpus", "4", "4", scoped(corev1.ScopeSelectorOpIn, "high"))}, want: diagnosis.Unknown, never: raise},
		"quota of its class":         {template: asksGPU("1"), edit: func(s *corev1.PodSpec) { s.PriorityClassName = "high" }, objects: []any{quota("gpus", "4", "4", scoped(corev1.ScopeSelectorOpIn, "high"))}, want: diagnosis.QuotaExceeded, certainty: diagnosis.Proven, kinds: raise},
		"quota of the default class": {template: asksGPU("1"), objects: []any{class, quota("gpus", "4", "4", scoped(corev1.ScopeSelectorOpIn, "batch"))}, want: diagnosis.QuotaExceeded, certainty: diagnosis.Proven, kinds: raise},
		"quota of pods that end":     {template: asksGPU("1"), objects: []any{quota("gpus", "4", "4", only(corev1.ResourceQuotaScopeTerminating))}, want: diagnosis.Unknown, never: raise},
		"its deadline ends it":       {template: asksGPU("1"), edit: func(s *corev1.PodSpec) { s.ActiveDeadlineSeconds = &deadline }, objects: []any{quota("gpus", "4", "4", only(corev1.ResourceQuotaScopeTerminating))}, want: diagnosis.QuotaExceeded, certainty: diagnosis.Proven},
		"quota demands a limit": {template: asksGPU("1"), says: "Error creating: pods is forbidden: failed quota: cpu: must specify limits.cpu for: main", objects: []any{quota("cpu", "0", "", limits(map[string]string{"limits.cpu": "8"}))},
			want: diagnosis.QuotaDemandsRequests, certainty: diagnosis.Proven, kinds: ask, verdict: diagnosis.Unproven, words: "must specify limits.cpu for: main", title: "state limits.cpu of container main in job/train", never: raise},
		"a default gives the limit": {template: asksGPU("1"), objects: []any{quota("cpu", "0", "", limits(map[string]string{"limits.cpu": "8"})), container(corev1.LimitRangeItem{Default: list("cpu", "9")})},
			want: diagnosis.QuotaExceeded, certainty: diagnosis.Proven, kinds: raise, title: "raise quota cpu: limits.cpu 8 → 36"},
		"no quota covers it": {template: asksGPU("1"), says: "Error creating: pods is forbidden: insufficient quota to consume: requests.nvidia.com/gpu", want: diagnosis.QuotaDemandsRequests, certainty: diagnosis.Likely, kinds: manual, title: "give demo a quota that covers its pods", never: raise},

		"more than the most": {template: asksGPU("8"), objects: []any{container(corev1.LimitRangeItem{Max: list("nvidia.com/gpu", "4")})}, want: diagnosis.LimitRangeViolated, certainty: diagnosis.Proven, kinds: ask, verdict: diagnosis.Schedules,
			words: "LimitRange limits refuses it: container main is limited to 8 nvidia.com/gpu, the most is 4", title: "ask for 4 nvidia.com/gpu (what the LimitRange allows) in job/train; deletes and makes job/train again", never: raise},
		"exactly the most":    {template: asksGPU("4"), objects: []any{container(corev1.LimitRangeItem{Max: list("nvidia.com/gpu", "4")})}, want: diagnosis.Unknown, never: ask},
		"less than the least": {template: asksGPU("1"), objects: []any{container(corev1.LimitRangeItem{Min: list("nvidia.com/gpu", "2")})}, want: diagnosis.LimitRangeViolated, certainty: diagnosis.Proven, kinds: ask, verdict: diagnosis.Schedules, title: "ask for 2 nvidia.com/gpu (what the LimitRange allows) in job/train; deletes and makes job/train again"},
		"the whole pod": {template: asksGPU("8"), objects: []any{limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("nvidia.com/gpu", "4")})}, want: diagnosis.LimitRangeViolated, certainty: diagnosis.Proven, kinds: ask, verdict: diagnosis.Schedules,
			words: "the pod is limited to 8"},
		"a limit far above": {template: corev1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("cpu", "8", "nvidia.com/gpu", "1")}, objects: []any{container(corev1.LimitRangeItem{MaxLimitRequestRatio: list("cpu", "2")})},
			want: diagnosis.LimitRangeViolated, certainty: diagnosis.Proven, kinds: ask, verdict: diagnosis.Schedules, title: "ask for 4 to 8 cpu (what the LimitRange allows) in job/train; deletes and makes job/train again"},
		"most below least": {template: asksGPU("3"), objects: []any{container(corev1.LimitRangeItem{Max: list("nvidia.com/gpu", "2"), Min: list("nvidia.com/gpu", "4")})}, want: diagnosis.LimitRangeViolated, certainty: diagnosis.Proven, kinds: manual, verdict: diagnosis.Waits},
		"limits not read":  {template: asksGPU("8"), unread: []string{"LimitRange"}, says: "Error creating: pods is forbidden: maximum nvidia.com/gpu usage per Container is 4, but limit is 8", want: diagnosis.LimitRangeViolated, certainty: diagnosis.Possible, kinds: manual},

		"request and limit differ": {template: corev1.ResourceRequirements{Requests: list("nvidia.com/gpu", "1"), Limits: list("nvidia.com/gpu", "2")}, want: diagnosis.InvalidGPURequest, certainty: diagnosis.Proven, kinds: ask, verdict: diagnosis.Schedules,
			words: "container main requests 1 nvidia.com/gpu and is limited to 2: they must be equal", title: "write 2 nvidia.com/gpu as request and limit in job/train; deletes and makes job/train again"},
		"a default request alone": {template: corev1.ResourceRequirements{}, objects: []any{container(corev1.LimitRangeItem{Min: list("nvidia.com/gpu", "1")})}, want: diagnosis.InvalidGPURequest, certainty: diagnosis.Proven, kinds: ask, verdict: diagnosis.Schedules,
			words: "container main requests 1 nvidia.com/gpu and has no limit of it", title: "write 1 nvidia.com/gpu as request and limit in job/train; deletes and makes job/train again"},
		"a webhook's doing": {template: asksGPU("2"), says: `Error creating: Pod "train-x" is invalid: spec.containers[0].resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2`,
			want: diagnosis.InvalidGPURequest, certainty: diagnosis.Possible, kinds: manual, verdict: diagnosis.Waits, words: "something changes its pods"},
		"no limit":            {template: corev1.ResourceRequirements{Requests: list("nvidia.com/gpu", "1")}, want: diagnosis.InvalidGPURequest, certainty: diagnosis.Proven, kinds: ask, verdict: diagnosis.Schedules, words: "has no limit of it"},
		"half a GPU":          {template: asksGPU("500m"), want: diagnosis.InvalidGPURequest, certainty: diagnosis.Proven, kinds: ask, verdict: diagnosis.Schedules, words: "a device cannot be cut", title: "write 1 nvidia.com/gpu as request and limit in job/train; deletes and makes job/train again"},
		"half a CPU":          {template: corev1.ResourceRequirements{Requests: list("cpu", "500m"), Limits: list("cpu", "1", "nvidia.com/gpu", "1")}, want: diagnosis.Unknown, never: ask},
		"default of another":  {template: asksGPU("1"), objects: []any{container(corev1.LimitRangeItem{Min: list("nvidia.com/gpu", "1")})}, want: diagnosis.Unknown, never: ask},
		"zero beside a quota": {template: corev1.ResourceRequirements{Limits: list("nvidia.com/gpu", "0", "cpu", "1")}, objects: []any{quota("pods", "0", "", limits(map[string]string{"pods": "0"}))}, want: diagnosis.QuotaExceeded, certainty: diagnosis.Proven, kinds: raise, verdict: diagnosis.Schedules},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { c.check(t) })
	}
}

func (c lacking) check(t *testing.T) {
	t.Helper()
	d := why(t, "-f", c.dump(t))
	first, f := d.Causes[0], d.Fixes[0]
	if first.ID != c.want || c.certainty != "" && first.Certainty != c.certainty || !strings.Contains(first.Says, c.words) {
		t.Errorf("%s, %s: %q; want %s, %s: %q", first.ID, first.Certainty, first.Says, c.want, c.certainty, c.words)
	}
	if !slices.ContainsFunc(first.Evidence, func(e diagnosis.Evidence) bool {
		return e.Ref == "Job/demo/train" && strings.HasPrefix(e.Fact, "wants 4 pods, 4 of them do not exist; its last refusal: Error creating: ")
	}) {
		t.Errorf("evidence %+v does not name the Job", first.Evidence)
	}
	if c.kinds != nil && !slices.Equal(f.Kinds, c.kinds) || c.verdict != "" && f.Proof.Verdict != c.verdict || c.title != "" && f.Title != c.title {
		t.Errorf("first fix %v %s %q, want %v %s %q", f.Kinds, f.Proof.Verdict, f.Title, c.kinds, c.verdict, c.title)
	}
	for _, f := range d.Fixes {
		for _, k := range f.Kinds {
			if slices.Contains(c.never, k) {
				t.Errorf("%s is offered: %q", k, f.Title)
			}
		}
	}
	if d.Workload.Kind != "Job" || d.Pods.Waiting != 4 || len(d.Pods.Names) != 0 || !d.Pods.Since.Equal(noon.Add(-5*time.Minute)) {
		t.Errorf("workload %v, pods %+v", d.Workload, d.Pods)
	}
	for _, kind := range c.unread {
		if !slices.ContainsFunc(d.Unread, func(u string) bool { return strings.HasPrefix(u, kind+": the dump holds none; ") }) {
			t.Errorf("unread %q, want %s in it", d.Unread, kind)
		}
	}
}

// A plan for a quota names the quota by uid, raises it by the least, and relies on
// what it raises; the evidence names the quota and who holds it.
func TestRaisingAQuotaIsBound(t *testing.T) {
	c := lacking{template: asksGPU("2"), objects: []any{quota("gpus", "4", "4"), holding("a", "4", corev1.RestartPolicyNever)}}
	d := why(t, "-f", c.dump(t))
	want := diagnosis.Action{Verb: diagnosis.VerbPatch, Target: diagnosis.Target{Kind: "ResourceQuota", Namespace: "demo", Name: "gpus", UID: "uid-1"},
		Patch: json.RawMessage(`{"spec":{"hard":{"requests.nvidia.com/gpu":"12"}}}`), Relies: map[string]string{"requests.nvidia.com/gpu": "4"}}
	f := d.Fixes[0]
	var patch any
	if len(f.Actions) != 1 || json.Unmarshal(f.Actions[0].Patch, &patch) != nil {
		t.Fatalf("actions %+v", f.Actions)
	}
	compact, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	f.Actions[0].Patch = compact
	if got := f.Actions[0]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("action %+v, want %+v", got, want)
	}
	if !f.Automatic || f.Risk != "medium" || !strings.HasPrefix(f.Proof.Why, "by the arithmetic of quotas and limits the API server takes it; the scheduler's filters accept gpu-1") || f.Proof.Node != "gpu-1" {
		t.Errorf("fix %+v", f)
	}
	wants := []diagnosis.Evidence{{Ref: "ResourceQuota/demo/gpus", Fact: "requests.nvidia.com/gpu: 4 used of 4, one pod asks 2"}, {Ref: "Pod/demo/a", Fact: "holds 4 of requests.nvidia.com/gpu"}}
	if e := d.Causes[0].Evidence; !slices.EqualFunc(e[:len(e)-1], wants, diagnosis.Evidence.Same) {
		t.Errorf("evidence %+v, want %+v", e, wants)
	}
	second := d.Fixes[1]
	if !slices.Equal(second.Kinds, []diagnosis.FixKind{diagnosis.Wait}) || second.Automatic || second.Title != "wait until demo/a leaves quota free" || second.Proof.Verdict != diagnosis.Waits || second.Proof.Why != "accepted on a copy once demo/a ends" {
		t.Errorf("second fix %+v", second)
	}
	if d.Headline != "demo/train waits 5 min: needs 2×gpu, its quota is used up" {
		t.Errorf("headline %q", d.Headline)
	}
}

// The nodes' blockers are told of a pod that does not exist too, and a fix clears both.
func TestTheNodesOfARefusedPodAreExplained(t *testing.T) {
	c := lacking{template: asksGPU("1"), objects: []any{quota("gpus", "8", "8"), holding("a", "8", corev1.RestartPolicyAlways)}}
	d := why(t, "-f", c.dump(t))
	var causes []diagnosis.CauseID
	for _, c := range d.Causes {
		causes = append(causes, c.ID)
	}
	blockers := []diagnosis.NodeBlockers{{Name: "gpu-1", Blockers: []diagnosis.Blocker{{Plugin: "NodeResourcesFit", Reason: "Insufficient nvidia.com/gpu", Cause: diagnosis.GPUsInUse}}}}
	if !slices.Equal(causes, []diagnosis.CauseID{diagnosis.QuotaExceeded, diagnosis.GPUsInUse}) || !reflect.DeepEqual(d.Nodes, blockers) {
		t.Errorf("causes %v, nodes %+v", causes, d.Nodes)
	}
	want := map[string]diagnosis.Verdict{"[RaiseQuota EvictPods]": diagnosis.Schedules, "[RaiseQuota Wait]": diagnosis.Waits, "[Wait Wait]": diagnosis.Waits}
	for _, f := range d.Fixes {
		if v, ok := want[fmt.Sprint(f.Kinds)]; ok && v != f.Proof.Verdict {
			t.Errorf("fix %v is %+v", f.Kinds, f.Proof)
		}
		delete(want, fmt.Sprint(f.Kinds))
	}
	if len(want) > 0 {
		t.Errorf("not offered: %v of %+v", want, d.Fixes)
	}
}

// A Deployment of which some pods wait for a node, and some for a quota, is one
// incident: the quota is told beside what blocks those that exist.
func TestQuotaBesideWaitingPods(t *testing.T) {
	three, yes := int32(3), true
	labels := map[string]string{"app": "serve"}
	spec := corev1.PodSpec{NodeSelector: map[string]string{"team": "vision"}, Containers: []corev1.Container{{Name: "main", Resources: asksGPU("1")}}}
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &three, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}
	d.TypeMeta, d.ObjectMeta = named("Deployment", "serve")
	d.APIVersion = "apps/v1"
	rs := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: &three, Template: d.Spec.Template}, Status: appsv1.ReplicaSetStatus{Replicas: 1, Conditions: []appsv1.ReplicaSetCondition{{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: quotaSays, LastTransitionTime: metav1.NewTime(noon)}}}}
	rs.TypeMeta, rs.ObjectMeta = named("ReplicaSet", "serve-1")
	rs.APIVersion, rs.OwnerReferences = "apps/v1", []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "serve", UID: "uid-1", Controller: &yes}}
	p := &corev1.Pod{Spec: spec, Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}}
	p.TypeMeta, p.ObjectMeta = named("Pod", "serve-1-a")
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "serve-1", UID: "uid-1", Controller: &yes}}
	n := sim.Node{Name: "gpu-1", Model: a100, GPUs: 8, MIGOff: []int{0, 1, 2, 3, 4, 5, 6, 7}}.Object(noon)
	n.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	dump := dumpItems(t, []any{n, d, rs, p, quota("gpus", "1", "1")})
	for _, target := range []string{"deployment/serve", "replicaset/serve-1", "serve-1-a"} {
		got := why(t, "-f", dump, target)
		var causes []diagnosis.CauseID
		for _, c := range got.Causes {
			causes = append(causes, c.ID)
		}
		if !slices.Equal(causes, []diagnosis.CauseID{diagnosis.NodeSelectorMismatch, diagnosis.QuotaExceeded}) || got.Pods.Waiting != 3 || !slices.Equal(got.Pods.Names, []string{"serve-1-a"}) {
			t.Errorf("%s: causes %v, pods %+v", target, causes, got.Pods)
		}
		if f := got.Fixes[0]; !slices.Equal(f.Kinds, []diagnosis.FixKind{diagnosis.FixSelector}) || f.Proof.Verdict != diagnosis.Schedules {
			t.Errorf("%s: first fix %v %+v", target, f.Kinds, f.Proof)
		}
	}
}

// An event of an object that does not exist, and one of its predecessor, are nothing.
func TestRefusalsOfNobodyAreIgnored(t *testing.T) {
	c := lacking{template: asksGPU("1")}
	for name, edit := range map[string]func(*corev1.Event){
		"another Job":       func(e *corev1.Event) { e.InvolvedObject.Name = "gone" },
		"its predecessor":   func(e *corev1.Event) { e.InvolvedObject.UID = "uid-0" },
		"another reason":    func(e *corev1.Event) { e.Reason = "SuccessfulCreate" },
		"another namespace": func(e *corev1.Event) { e.InvolvedObject.Namespace = "other" },
	} {
		var dump struct {
			Items []json.RawMessage `json:"items"`
		}
		data, err := os.ReadFile(c.dump(t))
		if err == nil {
			err = json.Unmarshal(data, &dump)
		}
		if err != nil {
			t.Fatal(err)
		}
		e := event("Job", "train", quotaSays)
		edit(e)
		items := []any{dump.Items[0], dump.Items[1], e, emptyList("Pod")}
		if code, out, errs := call(t, "why", "-o", "name", "-f", dumpItems(t, items)); code != 0 || out != "" || !strings.Contains(errs, "Nothing waits in ") {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, errs)
		}
	}
}

// emptyList says that a kind was read and there is none.
func emptyList(kind string) any {
	return map[string]any{"apiVersion": "v1", "kind": kind + "List", "items": []any{}}
}
