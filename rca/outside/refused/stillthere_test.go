package refused_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/outside/refused"
	"github.com/unpend/unpend/rca/rcatest"
)

// titles are those of what is offered, with its commands.
func titles(all []edit.Change) string {
	var out []string
	for _, ch := range all {
		out = append(out, ch.Title)
	}
	return strings.Join(out, "; ")
}

// A pod that was refused before its node came back, and not tried since for longer than kube-scheduler's code leaves any, is made
// again; one that was tried since, or that no node waits for, is not.
func TestAPodThatIsNotTriedAgain(t *testing.T) {
	const rule, fit, odd = "see by which rule hami-scheduler refuses it", "0/1 nodes are available: 1 node unregistered.", "no GPU today"
	again := func(why string) string {
		return "make pod w again: hami-scheduler has said nothing of it for 37 min, and " + why + "; " + rule
	}
	for name, tc := range map[string]struct {
		words          string
		said, ready    time.Duration // ago
		lists, blocked bool
		want           string
	}{
		"ready since":              {fit, 37 * time.Minute, 5 * time.Minute, false, false, again("n has become Ready since")},
		"its cards listed since":   {fit, 37 * time.Minute, time.Hour, true, false, again("n, which it called unregistered, lists its cards")},
		"ready before":             {fit, 37 * time.Minute, time.Hour, false, false, rule},
		"tried of late":            {fit, 35 * time.Minute, 5 * time.Minute, true, false, rule},
		"something else is there":  {fit, 37 * time.Minute, 5 * time.Minute, true, true, rule},
		"not in the code's words":  {odd, 37 * time.Minute, 5 * time.Minute, true, false, rule},
		"no event that tells when": {fit, 0, 5 * time.Minute, true, false, rule},
	} {
		w := edittest.New()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: rcatest.Noon.Add(-tc.ready)}}}
			if tc.lists {
				n.Annotations = map[string]string{"hami.io/node-nvidia-register": `[{"id":"GPU-1","count":10}]`}
			}
		})
		edittest.RefusedBy("hami-scheduler", tc.words)(w)
		if tc.said > 0 {
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: "w", UID: "w"}, Reason: "FailedScheduling", Message: tc.words, ReportingController: "hami-scheduler", LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-tc.said)}})
		}
		k := w.Case(t, "Deployment")
		k.Judged = []diagnosis.NodeBlockers{{Name: "n"}}
		if tc.blocked {
			k.Judged[0].Blockers = []diagnosis.Blocker{{Plugin: "TaintToleration", Reason: "untolerated"}}
		}
		if got := titles(refused.Ask(edit.New(k))); got != tc.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, tc.want)
		}
	}
}

// A pod whose deletion would end its Job, which stands no failure, is not deleted: its scheduler is started again.
func TestAPodThatIsNotDeletedForAnotherTry(t *testing.T) {
	const words = "0/1 nodes are available: 1 node unregistered."
	yes, none := true, int32(0)
	w := edittest.New()
	w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		n.Annotations = map[string]string{"hami.io/node-nvidia-register": `[{"id":"GPU-1","count":10}]`}
	})
	edittest.RefusedBy("hami-scheduler", words)(w)
	w.Wait.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "w", UID: "job", Controller: &yes}}
	w.Jobs = append(w.Jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "w", UID: "job"}, Spec: batchv1.JobSpec{BackoffLimit: &none}})
	w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: "w", UID: "w"}, Reason: "FailedScheduling", Message: words, ReportingController: "hami-scheduler", LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-time.Hour)}})
	k := w.Case(t, "Job")
	k.Judged = []diagnosis.NodeBlockers{{Name: "n"}}
	all := refused.Ask(edit.New(k))
	const want = "start hami-scheduler again, which tries every pod: hami-scheduler has said nothing of it for 1 h, and n, which it called unregistered, lists its cards; to delete the pod would end its Job; see by which rule hami-scheduler refuses it"
	if got := titles(all); got != want || strings.Contains(strings.Join(all[0].Commands, "\n"), "delete") {
		t.Errorf("got  %s\nwant %s\n%v", got, want, all[0].Commands)
	}
}

// KAI's binder gives out no part of a GPU while a pod of its scaling namespace has no node: the oldest is named. One that has its
// node, or waits elsewhere, is none of that.
func TestAScalingPodWithoutANode(t *testing.T) {
	const rule, words = "see by which rule kai-scheduler refuses it", "cluster is scaling up, could not create reservation pod"
	named := func(how string) string {
		return "see whether a machine comes for kai-scale-adjust/old, or take it away: it " + how + ", and KAI's binder gives out no part of a GPU as long as such a pod has no node"
	}
	for name, tc := range map[string]struct {
		words, namespace string
		placed, deleted  bool
		more             int
		want             string
	}{
		"waits":             {words, "kai-scale-adjust", false, false, 0, named("has waited 3 h for a node")},
		"does not go":       {words, "kai-scale-adjust", false, true, 0, named("was deleted 1 h ago and does not go")},
		"one of three":      {words, "kai-scale-adjust", false, false, 2, named("has waited 3 h for a node, the oldest of 3")},
		"has its node":      {words, "kai-scale-adjust", true, false, 0, rule},
		"waits elsewhere":   {words, "ml", false, false, 0, rule},
		"of something else": {"could not be bound", "kai-scale-adjust", false, false, 0, rule},
	} {
		w := edittest.New()
		edittest.RefusedBy("kai-scheduler", tc.words)(w)
		for n := range tc.more + 1 {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace, Name: "young", CreationTimestamp: metav1.Time{Time: rcatest.Noon.Add(-time.Hour)}},
				Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}}}
			if n == tc.more { // the last of the list is the oldest
				p.Name, p.CreationTimestamp = "old", metav1.Time{Time: rcatest.Noon.Add(-3 * time.Hour)}
			}
			if tc.placed {
				p.Status.Conditions[0].Status = corev1.ConditionTrue
			}
			if tc.deleted {
				p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon.Add(-time.Hour)}
			}
			w.Pods = append(w.Pods, p)
		}
		if got := titles(refused.Ask(edit.New(w.Case(t, "Deployment")))); got != tc.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, tc.want)
		}
	}
}
