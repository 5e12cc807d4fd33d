package incident

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A suspended Job that names no queue waits where Kueue holds it: a Workload stands for it, or has let
// begin what owns it. Else it is somebody's will.
func TestKueueHoldsAJobThatNamesNoQueue(t *testing.T) {
	workload := func(kind, name, uid, conditions string) *Held {
		h, _ := HeldOf(KueueWorkload, object(t, `{apiVersion: kueue.x-k8s.io/v1beta1, kind: Workload, metadata: {namespace: ml, name: w-`+name+`, ownerReferences: [{apiVersion: `+kind+`, name: `+name+`, uid: `+uid+`, controller: true}]},
  spec: {podSets: [{name: main, count: 1, template: {spec: {}}}]}, status: {conditions: [`+conditions+`]}}`))
		return h
	}
	const (
		yes     = `{type: Admitted, status: "True"}`
		aJob    = "batch/v1, kind: Job"
		aRayJob = "ray.io/v1, kind: RayJob"
		aSet    = "jobset.x-k8s.io/v1alpha2, kind: JobSet"
	)
	set := func(queue, spec string) *Held {
		h, _ := HeldOf(JobSet, object(t, `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {namespace: ml, name: set, uid: o, labels: {kueue.x-k8s.io/queue-name: "`+queue+`"}}, spec: {`+spec+`}}`))
		return h
	}
	by := func(apiVersion, kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "o", Controller: new(true)}}
	}
	ofSet := by("jobset.x-k8s.io/v1alpha2", "JobSet", "set")
	rayJob := by("ray.io/v1", "RayJob", "ppo")
	for name, tc := range map[string]struct {
		owner []metav1.OwnerReference
		edit  func(*batchv1.Job)
		held  []*Held
		want  string
	}{
		"nobody's":                                         {want: ""},
		"Kueue looks after others":                         {held: []*Held{workload(aJob, "other", "x", "")}},
		"a Workload stands for it":                         {held: []*Held{workload(aJob, "train", "j", "")}, want: "2 of 2"},
		"and is admitted":                                  {held: []*Held{workload(aJob, "train", "j", yes)}, want: "2 of 2"},
		"and is finished":                                  {held: []*Held{workload(aJob, "train", "j", `{type: Finished, status: "True"}`)}},
		"of another of its name":                           {held: []*Held{workload(aJob, "train", "k", "")}},
		"its owner is admitted":                            {owner: rayJob, held: []*Held{workload(aRayJob, "ppo", "o", yes)}, want: "2 of 2 behind ppo"},
		"and a Workload stands for it":                     {owner: rayJob, held: []*Held{workload(aJob, "train", "j", ""), workload(aRayJob, "ppo", "o", yes)}, want: "2 of 2 behind ppo"},
		"its owner is not admitted":                        {owner: rayJob, held: []*Held{workload(aRayJob, "ppo", "o", "")}, want: "main 1"},
		"its owner was evicted":                            {owner: rayJob, held: []*Held{workload(aRayJob, "ppo", "o", yes+`, {type: Evicted, status: "True"}`)}},
		"its owner lets it begin in turn":                  {owner: by("jobset.x-k8s.io/v1alpha2", "JobSet", "set"), held: []*Held{workload(aSet, "set", "o", yes)}},
		"its owner names a queue, and would have it begin": {owner: ofSet, held: []*Held{set("team", "")}, want: "2 of 2 in team for set"},
		"but names none":                                   {owner: ofSet, held: []*Held{set("", "")}},
		"but is suspended itself":                          {owner: ofSet, held: []*Held{set("team", "suspend: true")}, want: "2 of 2 in team for set"},
		"and names none while it is suspended":             {owner: ofSet, held: []*Held{set("", "suspend: true")}},
		"and is over while it is suspended":                {owner: ofSet, held: []*Held{set("team", "suspend: true}, status: {conditions: [{type: Failed, status: \"True\"}]")}},
		"but lets its Jobs begin in turn":                  {owner: ofSet, held: []*Held{set("team", "startupPolicy: {startupPolicyOrder: InOrder}")}},
		"but another manages it":                           {owner: ofSet, held: []*Held{set("team", "managedBy: kueue.x-k8s.io/multikueue")}},
		"and a Workload stands for the owner":              {owner: ofSet, held: []*Held{set("team", ""), workload(aSet, "set", "o", "")}, want: "set-main 1"},
		"it runs":                                          {owner: rayJob, edit: func(j *batchv1.Job) { j.Spec.Suspend = nil; j.Status.Active = 2 }, held: []*Held{workload(aRayJob, "ppo", "o", yes)}},
		"it is over": {owner: rayJob, edit: func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}, held: []*Held{workload(aRayJob, "ppo", "o", yes)}},
		"it goes":                             {owner: rayJob, edit: func(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Time} }, held: []*Held{workload(aRayJob, "ppo", "o", yes)}},
		"it names a queue, and is held by it": {owner: rayJob, edit: func(j *batchv1.Job) { j.Labels = map[string]string{QueueLabel: "team"} }, want: "2 of 2 in team"},
	} {
		t.Run(name, func(t *testing.T) {
			j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "j", CreationTimestamp: metav1.Now(), OwnerReferences: tc.owner}, Spec: batchv1.JobSpec{Suspend: new(true), Parallelism: new(int32(2))}}
			if tc.edit != nil {
				tc.edit(j)
			}
			lookup := func(kind, _, name string) (metav1.Object, bool) { return j, kind == "Job" && name == j.Name }
			var got []string
			for _, r := range (Makers{Jobs: []*batchv1.Job{j}, Held: tc.held, AllPods: true}).Refusals(nil, lookup) {
				text := fmt.Sprintf("%d of %d", r.Missing, r.Wants)
				if r.Queue != "" {
					text += " in " + r.Queue
				}
				if r.Behind != nil {
					text += " behind " + r.Behind.Name
				}
				if r.Named != nil {
					text += " for " + r.Named.Name
				}
				if r.Owner.Kind != "Job" { // the owner itself
					text = strings.TrimPrefix(strings.TrimSuffix(r.Pod.Name, "-?"), "ppo-") + " " + fmt.Sprint(r.Missing)
				}
				if got = append(got, text); !r.Held {
					t.Errorf("%+v", r)
				}
			}
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A RayCluster that stays suspended though the RayJob that owns it is admitted is held the same way.
func TestARayClusterBehindItsRayJob(t *testing.T) {
	queued := func(conditions string) *Held {
		h, _ := HeldOf(KueueWorkload, object(t, `{apiVersion: kueue.x-k8s.io/v1beta1, kind: Workload, metadata: {namespace: ml, name: w, ownerReferences: [{apiVersion: ray.io/v1, kind: RayJob, name: ppo, uid: o, controller: true}]}, status: {conditions: [`+conditions+`]}}`))
		return h
	}
	o := object(t, strings.NewReplacer("uid: r,", "uid: r, ownerReferences: [{apiVersion: ray.io/v1, kind: RayJob, name: ppo, uid: o, controller: true}],", "spec: {\n", "spec: {suspend: true,\n").Replace(rayClusterText))
	ray, _ := HeldOf(RayCluster, o)
	lookup := func(kind, _, _ string) (metav1.Object, bool) { return ray, kind == "RayCluster.ray.io" }
	for conditions, want := range map[string]string{`{type: Admitted, status: "True"}`: "llm-head-? 1, llm-small-? 1, llm-large-? 1", "": ""} {
		var got []string
		for _, r := range (Makers{Held: []*Held{ray, queued(conditions)}, AllPods: true}).Refusals([]*corev1.Pod{rayPod(rayWorker, "large", metav1.Now().Time)}, lookup) {
			if got = append(got, fmt.Sprintf("%s %d", r.Pod.Name, r.Missing)); !r.Held || r.Behind == nil || r.Behind.Name != "ppo" || r.Says != "" {
				t.Errorf("%+v", r)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
