package edit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
)

// staffed is a world with a workload named w, which has pods: "x@n" runs, and is Ready, "x@n?" is
// not, "x" waits, "x!" has ended and "x-" leaves. The first is the one that waits for certain.
func staffed(t *testing.T, kind, owner string, pods ...string) *edittest.World {
	t.Helper()
	w := edittest.New()
	meta := metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "o"}
	into := map[string]func() any{
		"Deployment":  func() any { o := &appsv1.Deployment{}; w.Deployments = append(w.Deployments, o); return o },
		"StatefulSet": func() any { o := &appsv1.StatefulSet{}; w.StatefulSets = append(w.StatefulSets, o); return o },
		"DaemonSet":   func() any { o := &appsv1.DaemonSet{}; w.DaemonSets = append(w.DaemonSets, o); return o },
		"ReplicaSet":  func() any { o := &appsv1.ReplicaSet{}; w.ReplicaSets = append(w.ReplicaSets, o); return o },
		"Job":         func() any { o := &batchv1.Job{}; w.Jobs = append(w.Jobs, o); return o },
	}[kind]()
	if err := yaml.Unmarshal([]byte(owner), into); err != nil {
		t.Fatal(err)
	}
	meta.DeepCopyInto(metaOf(into))
	yes := true
	by := []metav1.OwnerReference{{Kind: kind, Name: "w", UID: "o", Controller: &yes}}
	w.Wait.Name, w.Wait.OwnerReferences = pods[0], by
	for i, name := range pods[1:] {
		p := w.Wait.DeepCopy()
		p.Name, p.Spec.NodeName, _ = strings.Cut(name, "@")
		ready := corev1.ConditionTrue
		if p.Spec.NodeName, _ = strings.CutSuffix(p.Spec.NodeName, "?"); strings.HasSuffix(name, "?") {
			ready = corev1.ConditionFalse
		}
		if p.Spec.NodeName != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		}
		p.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(time.Duration(i) * time.Minute))
		switch p.Name[len(p.Name)-1] {
		case '!':
			p.Status.Phase = corev1.PodSucceeded
		case '-':
			p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon}
		}
		w.Pods = append(w.Pods, p)
	}
	return w
}

func metaOf(o any) *metav1.ObjectMeta {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return &o.ObjectMeta
	case *appsv1.StatefulSet:
		return &o.ObjectMeta
	case *appsv1.DaemonSet:
		return &o.ObjectMeta
	case *appsv1.ReplicaSet:
		return &o.ObjectMeta
	}
	return &o.(*batchv1.Job).ObjectMeta
}

func names(pods []*corev1.Pod) string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return strings.Join(out, " ")
}

// rolled says how a workload replaces its pods for a change of its template, and what a person
// does beside the patch.
func rolled(ch edit.Change) string {
	r := ch.Rolling
	how := fmt.Sprintf("at most %d above and %d below", r.Surge, r.Unavailable)
	switch {
	case r.AtOnce:
		how = "at once"
	case r.InTurn:
		how = "in turn"
	}
	out := fmt.Sprintf("%s to %d pods %s, %s risk: runs [%s], waits [%s]", r.How, r.Wanted, how, ch.Risk, names(r.Running), names(r.Pending))
	if len(r.Behind) > 0 {
		out += ", keeps [" + names(r.Behind) + "]"
	}
	if r.Broken != 0 {
		out += fmt.Sprintf(", %d not Ready below", r.Broken)
	}
	if ch.Manual {
		out += ", by hand"
	}
	for _, c := range ch.Commands {
		if !strings.Contains(c, `"template"`) && !strings.Contains(c, "replace --force") {
			out += "; " + c
		}
	}
	return out
}

// Every kind of workload replaces its pods in a way of its own once its template is another;
// some leave it to people.
func TestHowWorkloadsReplaceTheirPods(t *testing.T) {
	const deleted = "; kubectl -n a delete pod "
	for name, tc := range map[string]struct {
		kind, owner string
		pods        []string
		want        string
	}{
		"a Deployment, the newest first":  {"Deployment", "spec: {replicas: 8}", []string{"p", "q", "a@n", "b@n", "gone!", "left-"}, "rolls deployment/w to 8 pods at most 2 above and 2 below, medium risk: runs [b a], waits [p q]"},
		"one pod by default":              {"Deployment", "{}", []string{"p"}, "rolls deployment/w to 1 pods at most 1 above and 0 below, low risk: runs [], waits [p]"},
		"a Deployment that recreates":     {"Deployment", "spec: {replicas: 2, strategy: {type: Recreate}}", []string{"p", "a@n"}, "rolls deployment/w to 2 pods at once, high risk: runs [a], waits [p]"},
		"neither above nor below":         {"Deployment", "spec: {replicas: 2, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}}", []string{"p"}, "rolls deployment/w to 2 pods at most 0 above and 1 below, low risk: runs [], waits [p]"},
		"only above":                      {"Deployment", "spec: {replicas: 3, strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}", []string{"p"}, "rolls deployment/w to 3 pods at most 1 above and 0 below, low risk: runs [], waits [p]"},
		"only below":                      {"Deployment", "spec: {replicas: 3, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 50%}}}", []string{"p"}, "rolls deployment/w to 3 pods at most 0 above and 1 below, low risk: runs [], waits [p]"},
		"a Deployment that is paused":     {"Deployment", "spec: {paused: true}", []string{"p"}, "rolls deployment/w to 1 pods at most 1 above and 0 below, low risk: runs [], waits [p], by hand; kubectl -n a rollout resume deployment/w  # it is paused: what else was changed meanwhile is rolled, too"},
		"a DaemonSet":                     {"DaemonSet", "{}", []string{"p", "a@n"}, "rolls daemonset/w to 2 pods in turn, medium risk: runs [a], waits [p]"},
		"a DaemonSet on delete":           {"DaemonSet", "spec: {updateStrategy: {type: OnDelete}}", []string{"p", "a@n", "q"}, "rolls daemonset/w to 1 pods in turn, low risk: runs [], waits [p q], by hand" + deleted + "p q  # after the patch: with OnDelete the DaemonSet leaves that to people"},
		"a ReplicaSet":                    {"ReplicaSet", "{}", []string{"p", "a@n"}, "rolls replicaset/w to 1 pods in turn, low risk: runs [], waits [p], by hand" + deleted + "p  # after the patch: a ReplicaSet replaces none of its pods"},
		"a Job without a number":          {"Job", "{}", []string{"p", "a@n"}, "deletes and makes job/w again to 2 pods at once, high risk: runs [a], waits [p]; # to keep 1 running pod: leave job/w as it is, and make a second Job for the rest, with the change"},
		"a Job that nothing runs of":      {"Job", "spec: {parallelism: 4, completions: 3}", []string{"p"}, "deletes and makes job/w again to 3 pods at once, low risk: runs [], waits [p]"},
		"a Job with enough to complete":   {"Job", "spec: {parallelism: 4, completions: 9}", []string{"p"}, "deletes and makes job/w again to 4 pods at once, low risk: runs [], waits [p]"},
		"a Job with no bound":             {"Job", "spec: {parallelism: 4}", []string{"p"}, "deletes and makes job/w again to 4 pods at once, low risk: runs [], waits [p]"},
		"a set in order, its first waits": {"StatefulSet", "spec: {replicas: 3}", []string{"w-2", "w-0@n", "w-1@n"}, "rolls statefulset/w to 3 pods in turn, medium risk: runs [w-1 w-0], waits [w-2], by hand" + deleted + "w-2  # after the patch: the StatefulSet waits for it and does not replace it"},
		"a set in parallel":               {"StatefulSet", "spec: {replicas: 4, podManagementPolicy: Parallel}", []string{"w-1", "w-0@n", "w-2@n", "w-3"}, "rolls statefulset/w to 4 pods in turn, medium risk: runs [w-2 w-0], waits [w-3 w-1]"},
		"a set in parallel on delete":     {"StatefulSet", "spec: {replicas: 3, podManagementPolicy: Parallel, updateStrategy: {type: OnDelete}}", []string{"w-1", "w-0@n", "w-2@n"}, "rolls statefulset/w to 1 pods in turn, low risk: runs [], waits [w-1], by hand" + deleted + "w-1  # after the patch: with OnDelete the StatefulSet leaves that to people"},
		"a set from another ordinal":      {"StatefulSet", "spec: {replicas: 2, podManagementPolicy: Parallel, ordinals: {start: 5}}", []string{"w-6", "w-5@n"}, "rolls statefulset/w to 2 pods in turn, medium risk: runs [w-5], waits [w-6]"},
		"above its partition":             {"StatefulSet", "spec: {replicas: 4, podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {partition: 2}}}", []string{"w-3", "w-0@n", "w-1@n", "w-2@n"}, "rolls statefulset/w from ordinal 2 on to 2 pods in turn, medium risk: runs [w-2], waits [w-3]"},
		"below its partition":             {"StatefulSet", "spec: {replicas: 4, podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {partition: 2}}}", []string{"w-1", "w-0@n", "w-2@n", "w-3@n"}, `rolls statefulset/w from ordinal 1 on to 3 pods in turn, medium risk: runs [w-3 w-2], waits [w-1], by hand; kubectl -n a patch statefulset/w --type=strategic -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}'  # pods below its partition keep the template that they have`},
		"its first, below its partition":  {"StatefulSet", "spec: {replicas: 2, podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {partition: 1}}}", []string{"w-0", "w-1@n"}, `rolls statefulset/w to 2 pods in turn, medium risk: runs [w-1], waits [w-0], by hand; kubectl -n a patch statefulset/w --type=strategic -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}'  # pods below its partition keep the template that they have`},
		"on both sides of its partition":  {"StatefulSet", "spec: {replicas: 4, podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {partition: 2}}}", []string{"w-3", "w-0@n", "w-1", "w-2@n"}, "rolls statefulset/w from ordinal 2 on to 2 pods in turn, medium risk: runs [w-2], waits [w-3], keeps [w-1]"},
		"not Ready below its partition":   {"StatefulSet", "spec: {replicas: 5, podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {partition: 3}}}", []string{"w-4", "w-0@n?", "w-1@n?", "w-2@n", "w-3@n?"}, "rolls statefulset/w from ordinal 3 on to 2 pods in turn, medium risk: runs [w-3], waits [w-4], 2 not Ready below"},
		"in order, on both sides":         {"StatefulSet", "spec: {replicas: 4, updateStrategy: {rollingUpdate: {partition: 2}}}", []string{"w-1", "w-0@n"}, `rolls statefulset/w from ordinal 1 on to 3 pods in turn, low risk: runs [], waits [w-1], by hand; kubectl -n a patch statefulset/w --type=strategic -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}'  # pods below its partition keep the template that they have` + deleted + "w-1  # after the patch: the StatefulSet waits for it and does not replace it"},
		"a partition, and from five on":   {"StatefulSet", "spec: {replicas: 3, podManagementPolicy: Parallel, ordinals: {start: 5}, updateStrategy: {rollingUpdate: {partition: 2}}}", []string{"w-6", "w-5@n", "w-7@n"}, `rolls statefulset/w from ordinal 6 on to 2 pods in turn, medium risk: runs [w-7], waits [w-6], by hand; kubectl -n a patch statefulset/w --type=strategic -p '{"spec":{"updateStrategy":{"rollingUpdate":{"partition":1}}}}'  # pods below its partition keep the template that they have`},
	} {
		t.Run(name, func(t *testing.T) {
			c := edit.New(staffed(t, tc.kind, tc.owner, tc.pods...).Case(t, tc.kind))
			ch := edit.Change{Risk: "low"}
			c.EditTemplate(&ch, map[string]any{"schedulerName": "x"}, false)
			if got := rolled(ch); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// An ordered set makes its pods one after the other: those that are still to come are waited
// for, too.
func TestPodsStillToCome(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, owner string
		want        int
	}{
		"in order":            {"StatefulSet", "spec: {replicas: 4}", 3},
		"one by default":      {"StatefulSet", "{}", 0},
		"in parallel":         {"StatefulSet", "spec: {replicas: 4, podManagementPolicy: Parallel}", 0},
		"of another workload": {"Deployment", "spec: {replicas: 4}", 0},
	} {
		if got := edit.New(staffed(t, tc.kind, tc.owner, "w-1", "w-0@n").Case(t, tc.kind)).StillToCome(); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// A parallel set goes by its ordinals alone where its controller has no bound on how many may be
// away; one in order waits for each.
func TestWhichSetsRollByOrdinal(t *testing.T) {
	for name, tc := range map[string]struct {
		owner string
		want  bool
	}{
		"in order":               {"spec: {replicas: 2}", false},
		"in order, bounded":      {"spec: {replicas: 2, updateStrategy: {rollingUpdate: {maxUnavailable: 1}}}", false},
		"in parallel":            {"spec: {replicas: 2, podManagementPolicy: Parallel}", true},
		"in parallel, bounded":   {"spec: {replicas: 2, podManagementPolicy: Parallel, updateStrategy: {rollingUpdate: {maxUnavailable: 1}}}", false},
		"on delete, all at once": {"spec: {replicas: 2, updateStrategy: {type: OnDelete}}", false},
	} {
		ch := edit.Change{Risk: "low"}
		edit.New(staffed(t, "StatefulSet", tc.owner, "w-1", "w-0@n").Case(t, "StatefulSet")).EditTemplate(&ch, map[string]any{"schedulerName": "x"}, false)
		if ch.Rolling.ByOrdinal != tc.want {
			t.Errorf("%s: %v", name, ch.Rolling.ByOrdinal)
		}
	}
}
