package view

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

// ofUID is a pod that runs, of the controller with this uid.
func ofUID(name, kind, owner, uid string) *corev1.Pod {
	yes := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), Labels: map[string]string{"app": owner},
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner, UID: types.UID(uid), Controller: &yes}}},
		Spec:   corev1.PodSpec{NodeName: "gpu-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
}

// owned is a world with a workload of each kind, each with two pods that run, one that waits,
// one that has ended and one that is being deleted.
func owned() *cluster.State {
	yes, three := true, int32(3)
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("uid-" + name)}
	}
	set := &appsv1.ReplicaSet{ObjectMeta: meta("web-1")}
	set.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: "web", UID: "uid-web", Controller: &yes}}
	st := &cluster.State{
		Deployments:  []*appsv1.Deployment{{ObjectMeta: meta("web"), Spec: appsv1.DeploymentSpec{Replicas: &three}}},
		ReplicaSets:  []*appsv1.ReplicaSet{set, {ObjectMeta: meta("bare")}},
		StatefulSets: []*appsv1.StatefulSet{{ObjectMeta: meta("db")}}, DaemonSets: []*appsv1.DaemonSet{{ObjectMeta: meta("ds")}}, Jobs: []*batchv1.Job{{ObjectMeta: meta("job")}}}
	for _, o := range []struct{ kind, name string }{{"ReplicaSet", "web-1"}, {"ReplicaSet", "bare"}, {"StatefulSet", "db"}, {"DaemonSet", "ds"}, {"Job", "job"}} {
		for i := range 5 {
			p := ofUID(fmt.Sprintf("%s-%d", o.name, i), o.kind, o.name, "uid-"+o.name)
			switch i {
			case 2:
				p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
			case 3:
				p.Status.Phase = corev1.PodSucceeded
			case 4:
				p.DeletionTimestamp = new(metav1.Now())
			}
			st.Pods = append(st.Pods, p)
		}
	}
	return st
}

func act(verb, kind, name, patch string) diagnosis.Action {
	return diagnosis.Action{Verb: verb, Target: diagnosis.Target{Kind: kind, Namespace: "a", Name: name, UID: "uid-" + name}, Patch: json.RawMessage(patch)}
}

const rolls = `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`

// Who stops is who runs, of what is made again or rolled, and nobody else.
func TestStops(t *testing.T) {
	bare := act(diagnosis.VerbRecreate, "Pod", "job-0", `{"spec":{}}`)
	bare.Target.UID = "job-0"
	waiting := bare
	waiting.Target.Name, waiting.Target.UID = "job-2", "job-2"
	for _, tc := range []struct {
		name string
		a    diagnosis.Action
		edit func(*cluster.State)
		want []string
	}{
		{"a Job", act(diagnosis.VerbRecreate, "Job", "job", rolls), nil, []string{"job-0", "job-1"}},
		{"a pod that runs", bare, nil, []string{"job-0"}},
		{"a pod that waits", waiting, nil, nil},
		{"a Deployment", act(diagnosis.VerbPatch, "Deployment", "web", rolls), nil, []string{"web-1-0", "web-1-1"}},
		{"its replicas alone", act(diagnosis.VerbPatch, "Deployment", "web", `{"spec":{"replicas":3}}`), nil, nil},
		{"one that is paused", act(diagnosis.VerbPatch, "Deployment", "web", rolls), func(s *cluster.State) { s.Deployments[0].Spec.Paused = true }, nil},
		{"a ReplicaSet of another of that name", act(diagnosis.VerbPatch, "Deployment", "web", rolls), func(s *cluster.State) { s.ReplicaSets[0].UID = "other" }, nil},
		{"a ReplicaSet", act(diagnosis.VerbPatch, "ReplicaSet", "bare", rolls), nil, nil},
		{"a StatefulSet", act(diagnosis.VerbPatch, "StatefulSet", "db", rolls), nil, []string{"db-0", "db-1"}},
		{"from its partition on", act(diagnosis.VerbPatch, "StatefulSet", "db", rolls), func(s *cluster.State) {
			s.StatefulSets[0].Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
		}, []string{"db-1"}},
		{"whose partition is counted from its first ordinal", act(diagnosis.VerbPatch, "StatefulSet", "db", rolls), func(s *cluster.State) {
			s.StatefulSets[0].Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1}
			s.StatefulSets[0].Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(1))}
		}, nil},
		{"left to people", act(diagnosis.VerbPatch, "StatefulSet", "db", rolls), func(s *cluster.State) {
			s.StatefulSets[0].Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}, nil},
		{"a DaemonSet", act(diagnosis.VerbPatch, "DaemonSet", "ds", rolls), nil, []string{"ds-0", "ds-1"}},
		{"one left to people", act(diagnosis.VerbPatch, "DaemonSet", "ds", rolls), func(s *cluster.State) {
			s.DaemonSets[0].Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}, nil},
		{"an eviction", act(diagnosis.VerbEvict, "Pod", "job-0", ""), nil, nil},
		{"a quota", act(diagnosis.VerbPatch, "ResourceQuota", "q", `{"spec":{"hard":{}}}`), nil, nil},
	} {
		st := owned()
		if tc.edit != nil {
			tc.edit(st)
		}
		var got []string
		for _, p := range Stops(st, tc.a) {
			got = append(got, p.Name)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q stop, want %q", tc.name, got, tc.want)
		}
	}
}

// What a budget keeps from an eviction it keeps from a restart: all that are made again
// count at once, of a rollout those that are away together.
func TestSpared(t *testing.T) {
	budget := func(app string, allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "keep"},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: 2, DesiredHealthy: 2 - allowed}}
	}
	job, web := act(diagnosis.VerbRecreate, "Job", "job", rolls), act(diagnosis.VerbPatch, "Deployment", "web", rolls)
	db := act(diagnosis.VerbPatch, "StatefulSet", "db", rolls)
	unready := func(s *cluster.State) {
		for _, p := range s.Pods {
			p.Status.Conditions = nil
		}
	}
	for _, tc := range []struct {
		name string
		a    diagnosis.Action
		pdb  *policyv1.PodDisruptionBudget
		edit func(*cluster.State)
		want string
	}{
		{"of others", job, budget("db", 0), nil, ""},
		{"for both", job, budget("job", 2), nil, ""},
		{"for one of two", job, budget("job", 1), nil, "a/job-1 (keep allows 1 more)"},
		{"for none", job, budget("job", 0), nil, "a/job-0 (keep allows 0 more)"},
		{"one at a time", web, budget("web-1", 1), nil, ""},
		{"two at a time", web, budget("web-1", 1), func(s *cluster.State) {
			s.Deployments[0].Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromString("67%"))}
		}, "a/web-1-1 (keep allows 1 more)"},
		{"all at a time", web, budget("web-1", 1), func(s *cluster.State) {
			s.Deployments[0].Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		}, "a/web-1-1 (keep allows 1 more)"},
		{"of a set, one at a time", db, budget("db", 1), nil, ""},
		{"of a set, two at a time", db, budget("db", 1), func(s *cluster.State) {
			s.StatefulSets[0].Spec.Replicas = new(int32(4))
			s.StatefulSets[0].Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: new(intstr.FromString("50%"))}
		}, "a/db-1 (keep allows 1 more)"},
		{"of a set, less than one at a time", db, budget("db", 1), func(s *cluster.State) {
			s.StatefulSets[0].Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: new(intstr.FromString("50%"))}
		}, ""},
		{"of a set, all at a time", db, budget("db", 1), func(s *cluster.State) {
			s.StatefulSets[0].Spec.UpdateStrategy.Type = appsv1.RecreateStatefulSetStrategyType
		}, "a/db-1 (keep allows 1 more)"},
		{"two budgets", job, budget("job", 2), func(s *cluster.State) {
			also := budget("job", 2)
			also.Name = "too"
			s.PDBs = append(s.PDBs, also)
		}, "a/job-0 (it is guarded by keep and too, and the Eviction API supports one)"},
		{"not counted yet", job, budget("job", 2), func(s *cluster.State) { s.PDBs[0].Generation = 1 }, "a/job-0 (keep allows 2 more)"},
		{"not ready, beyond the budget", job, budget("job", 0), unready, ""},
		{"not ready, and needed", job, budget("job", 0), func(s *cluster.State) { unready(s); s.PDBs[0].Status.CurrentHealthy = 1 }, "a/job-0 (keep allows 0 more)"},
		{"not ready, and free to go", job, budget("job", 0), func(s *cluster.State) {
			unready(s)
			s.PDBs[0].Status.CurrentHealthy = 1
			s.PDBs[0].Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
		}, ""},
		{"not begun", job, budget("job", 0), func(s *cluster.State) {
			for _, p := range s.Pods {
				p.Status.Phase = corev1.PodPending
			}
		}, ""},
	} {
		st := owned()
		st.PDBs = []*policyv1.PodDisruptionBudget{tc.pdb}
		if tc.edit != nil {
			tc.edit(st)
		}
		if got := Spared(st, tc.a); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
