package incident

import (
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/watcher/incident/incidenttest"
)

// Events tell their times in three ways, by their API and their age.
func TestWhenAnEventWasSeen(t *testing.T) {
	at := func(minutes int) metav1.Time {
		return metav1.NewTime(incidenttest.Start.Add(time.Duration(minutes) * time.Minute))
	}
	made := metav1.ObjectMeta{CreationTimestamp: at(1)}
	for name, c := range map[string]struct {
		e           corev1.Event
		begun, seen int // minutes
	}{
		"nothing but its creation": {corev1.Event{ObjectMeta: made}, 1, 1},
		"once, by the new API":     {corev1.Event{ObjectMeta: made, EventTime: metav1.NewMicroTime(at(2).Time)}, 2, 2},
		"again, by the new API":    {corev1.Event{ObjectMeta: made, EventTime: metav1.NewMicroTime(at(2).Time), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(5).Time)}}, 2, 5},
		"by the old API":           {corev1.Event{ObjectMeta: made, FirstTimestamp: at(3), LastTimestamp: at(6)}, 3, 6},
		"by both":                  {corev1.Event{ObjectMeta: made, FirstTimestamp: at(3), LastTimestamp: at(6), EventTime: metav1.NewMicroTime(at(2).Time), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(7).Time)}}, 3, 7},
		"its first time alone":     {corev1.Event{ObjectMeta: made, FirstTimestamp: at(3)}, 3, 3},
	} {
		if got, want := [2]time.Time{begun(&c.e), Seen(&c.e)}, [2]time.Time{at(c.begun).Time, at(c.seen).Time}; got != want {
			t.Errorf("%s: begun and seen %v, want %v", name, got, want)
		}
	}
}

// A pod is starting while it has its node and no sandbox there, and claims that are to be
// prepared first.
func TestStarting(t *testing.T) {
	ready := func(p *corev1.Pod, status corev1.ConditionStatus) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: status}}
	}
	for name, c := range map[string]struct {
		edit func(*corev1.Pod)
		want bool
	}{
		"as it is":                 {func(*corev1.Pod) {}, true},
		"no phase yet":             {func(p *corev1.Pod) { p.Status.Phase = "" }, true},
		"another condition is met": {func(p *corev1.Pod) { p.Status.Conditions[1].Type = corev1.PodInitialized }, true},
		"no node":                  {func(p *corev1.Pod) { p.Spec.NodeName = "" }, false},
		"deleted":                  {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: incidenttest.Start} }, false},
		"it runs":                  {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning; ready(p, corev1.ConditionTrue) }, false},
		"it has run":               {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, true},
		"nothing says of what":     {func(p *corev1.Pod) { p.Status.Phase, p.Status.Conditions = corev1.PodRunning, nil }, false},
		"it has failed":            {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, false},
		"its sandbox is there":     {func(p *corev1.Pod) { ready(p, corev1.ConditionTrue) }, false},
		"that is not known":        {func(p *corev1.Pod) { ready(p, corev1.ConditionUnknown) }, true},
		"no claims":                {func(p *corev1.Pod) { p.Spec.ResourceClaims = nil }, false},
	} {
		p := incidenttest.StartingPod("train")
		if c.edit(p); Starting(p) != c.want {
			t.Errorf("%s: %v", name, !c.want)
		}
	}
}

// Of a pod that has its node only the very condition that WithKubelet writes says that it
// waits.
func TestWhichConditionSaysThatAPodWaits(t *testing.T) {
	for _, c := range []struct {
		node      string
		condition corev1.PodCondition
		reason    string
	}{
		{"gpu-1", corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Reason: FailedPrepare}, FailedPrepare},
		{"gpu-1", corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Reason: "Other"}, ""},
		{"gpu-1", corev1.PodCondition{Type: corev1.PodInitialized, Reason: FailedPrepare}, ""},
		{"gpu-1", corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}, ""},
		{"", corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}, "Unschedulable"},
		{"", corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Reason: "Other"}, "NoCondition"},
		{"", corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionFalse, Reason: "Other"}, "NoCondition"},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: c.node}, Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{c.condition}}}
		if reason, _, ok := Waiting(p); reason != c.reason || ok != (c.reason != "") {
			t.Errorf("%q, %+v: %q, %v", c.node, c.condition, reason, ok)
		}
	}
}

// Where pods are kept apart or together by labels, those that tell who made a pod count.
func TestWhoLooksAtLabels(t *testing.T) {
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want bool
	}{
		"nothing":      {corev1.PodSpec{}, false},
		"nodes":        {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}, false},
		"near others":  {corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}}, true},
		"apart":        {corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}}, true},
		"near, apart":  {corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}}}, true},
		"spread apart": {corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1}}}, true},
	} {
		if got := looksAtLabels(&c.spec); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A pod of a DaemonSet is tolerated where no other is.
func TestPodsOfADaemonSetTolerate(t *testing.T) {
	var got []string
	for _, tol := range daemonTolerations() {
		if tol.Operator != corev1.TolerationOpExists || tol.Value != "" || tol.TolerationSeconds != nil {
			t.Errorf("%+v", tol)
		}
		got = append(got, tol.Key+":"+string(tol.Effect))
	}
	const at = "node.kubernetes.io/"
	want := []string{at + "not-ready:NoExecute", at + "unreachable:NoExecute", at + "disk-pressure:NoSchedule", at + "memory-pressure:NoSchedule", at + "pid-pressure:NoSchedule", at + "unschedulable:NoSchedule"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// An event that is older than the object tells of another that had its name, no matter whose uid
// it lacks.
func TestAnEventOlderThanItsObject(t *testing.T) {
	for name, c := range map[string]struct {
		uid     types.UID
		made    time.Duration // after the event, which is a minute old at incidenttest.Start
		refused bool
	}{
		"its own":                      {"uid-Job-train", 0, true},
		"its own, at the same moment":  {"uid-Job-train", 5 * time.Minute, true},
		"nobody's, before it was made": {"", 6 * time.Minute, false},
		"nobody's":                     {"", 0, true},
		"another's":                    {"other", 0, false},
	} {
		j := incidenttest.Job(func(*batchv1.Job) {})
		j.CreationTimestamp = metav1.NewTime(incidenttest.Start.Add(c.made))
		e := incidenttest.About(incidenttest.Refusing("Job", "train", 5*time.Minute), c.uid)
		if got := (Makers{Jobs: oneJob(j), Events: []*corev1.Event{e}}).Refusals(nil, nobody); len(got) == 1 != c.refused {
			t.Errorf("%s: %+v", name, got)
		}
	}
	young := maker{Object: &metav1.ObjectMeta{}}
	if _, ok := eventOf(young, map[string]told{"other": {}}); ok {
		t.Error("an object without a uid or a time is told of by another's event")
	}
}

// Of a pod whose devices are not prepared the one condition is replaced, and the others stay.
func TestUnpreparedReplacesOneCondition(t *testing.T) {
	p := incidenttest.StartingPod("train")
	e := incidenttest.UnpreparedEvent(p)
	got := WithKubelet([]*corev1.Pod{p}, []*corev1.Event{e}, time.Time{})[0].Status.Conditions
	want := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse, Reason: FailedPrepare, Message: e.Message}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The pod that a maker makes next is named as none can be, and tolerates what those of its
// kind do.
func TestNextPod(t *testing.T) {
	own := corev1.Toleration{Key: "team", Operator: corev1.TolerationOpExists}
	template := incidenttest.GPUPods()
	template.Spec.Tolerations = []corev1.Toleration{own}
	for _, c := range []struct {
		of          metav1.Object
		name        string
		tolerations int
	}{
		{&appsv1.DaemonSet{ObjectMeta: incidenttest.Object("DaemonSet", "agent", "1", nil), Spec: appsv1.DaemonSetSpec{Template: template}}, "agent-?", 7},
		{&appsv1.StatefulSet{ObjectMeta: incidenttest.Object("StatefulSet", "db", "1", nil), Spec: appsv1.StatefulSetSpec{Template: template}}, "db-?", 1},
	} {
		m, _ := MakerOf(c.of)
		p := Makers{}.Next(m)
		if p.Name != c.name || p.Namespace != "ml" || p.Status.Phase != corev1.PodPending || len(p.Spec.Tolerations) != c.tolerations || p.Spec.Tolerations[0] != own || Topmost(p, incidenttest.Owners{}.Find) != m.ref() {
			t.Errorf("%+v", p)
		}
	}
	if len(template.Spec.Tolerations) != 1 {
		t.Error("the template was changed")
	}
}
