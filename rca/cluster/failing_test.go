package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Whom an eviction ends for good is told by how many failures a Job still stands, as the Job controller counts them.
func TestWhomAnEvictionEnds(t *testing.T) {
	policy := func(rules ...batchv1.PodFailurePolicyRule) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules} }
	}
	disrupted := func(a batchv1.PodFailurePolicyAction) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: a, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget}}}
	}
	code := func(op batchv1.PodFailurePolicyOnExitCodesOperator, values ...int32) batchv1.PodFailurePolicyRule {
		return batchv1.PodFailurePolicyRule{Action: batchv1.PodFailurePolicyActionFailJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: op, Values: values}}
	}
	limit := func(n int32) func(*batchv1.Job) { return func(j *batchv1.Job) { j.Spec.BackoffLimit = &n } }
	for name, k := range map[string]struct {
		job     func(*batchv1.Job)
		evicted string // of the pods a, b and c of the Job, d that has ended, e of nobody, s of a ReplicaSet
		want    string
	}{
		"it stands none":                      {job: limit(0), evicted: "a", want: "a; with b c; of train"},
		"it stands one":                       {job: limit(1), evicted: "a"},
		"two at a time are one too many":      {job: limit(1), evicted: "a b", want: "a b; with c; of train"},
		"it has failed before":                {job: func(j *batchv1.Job) { limit(1)(j); j.Status.Failed = 1 }, evicted: "b", want: "b; with a c; of train"},
		"six are stood by who says nothing":   {evicted: "a b c"},
		"but not after six":                   {job: func(j *batchv1.Job) { j.Status.Failed = 6 }, evicted: "a b c", want: "a b c; of train"},
		"its policy ignores what is evicted":  {job: func(j *batchv1.Job) { limit(0)(j); policy(disrupted("Ignore"))(j) }, evicted: "a b c"},
		"its policy counts it":                {job: func(j *batchv1.Job) { limit(0)(j); policy(disrupted("Count"), disrupted("Ignore"))(j) }, evicted: "a", want: "a; with b c; of train"},
		"its policy fails for it":             {job: policy(disrupted("FailJob")), evicted: "a", want: "a; with b c; of train"},
		"its policy fails for SIGTERM":        {job: policy(code(batchv1.PodFailurePolicyOnExitCodesOpIn, 42, 143), disrupted("Ignore")), evicted: "a", want: "a; with b c; of train"},
		"its policy fails for all but one":    {job: policy(code(batchv1.PodFailurePolicyOnExitCodesOpNotIn, 3), disrupted("Ignore")), evicted: "a", want: "a; with b c; of train"},
		"its policy fails for another code":   {job: policy(code(batchv1.PodFailurePolicyOnExitCodesOpIn, 42), disrupted("Ignore")), evicted: "a"},
		"an index stands none":                {job: func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = new(int32(0)) }, evicted: "a b", want: "a b"},
		"an index stands one, and had one":    {job: func(j *batchv1.Job) { j.Spec.BackoffLimitPerIndex = new(int32(1)) }, evicted: "a c", want: "c"},
		"an index stands it, and the Job not": {job: func(j *batchv1.Job) { limit(0)(j); j.Spec.BackoffLimitPerIndex = new(int32(2)) }, evicted: "a", want: "a; with b c; of train"},
		"nobody makes it":                     {evicted: "e s", want: "e"},
		"the Job is another of its name":      {job: func(j *batchv1.Job) { limit(0)(j); j.UID = "other" }, evicted: "a"},
		"nothing is evicted":                  {job: limit(0)},
	} {
		t.Run(name, func(t *testing.T) {
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "j"}}
			if k.job != nil {
				k.job(j)
			}
			s := &State{Jobs: []*batchv1.Job{j}}
			for i, name := range []string{"a", "b", "c", "d", "e", "s"} {
				kind, uid := "Job", types.UID("j")
				if name == "s" {
					kind, uid = "ReplicaSet", "r"
				}
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: kind, Name: "train", UID: uid, Controller: new(true)}}}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
				switch name {
				case "c":
					p.Annotations = map[string]string{batchv1.JobIndexFailureCountAnnotation: fmt.Sprint(i - 1)}
				case "d":
					p.Status.Phase = corev1.PodFailed
				case "e":
					p.OwnerReferences = nil
				}
				s.Pods = append(s.Pods, p)
			}
			var evicted []*corev1.Pod
			for name := range strings.FieldsSeq(k.evicted) {
				evicted = append(evicted, s.Pod("ml", name))
			}
			lost := s.LostBy(evicted)
			names := func(pods []*corev1.Pod) string {
				var out []string
				for _, p := range pods {
					out = append(out, p.Name)
				}
				slices.Sort(out)
				return strings.Join(out, " ")
			}
			got := names(lost.Pods)
			if len(lost.With) > 0 {
				got += "; with " + names(lost.With)
			}
			for _, j := range lost.Jobs {
				got += "; of " + j.Name
			}
			if got != k.want {
				t.Errorf("got %q, want %q", got, k.want)
			}
		})
	}
}
