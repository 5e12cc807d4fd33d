package parts

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
)

// A node's pod of a part is a DaemonSet's: the one that runs there, or waits for room there, also where
// the DaemonSet itself was not read.
func TestWhichPodANodeHasOfAPart(t *testing.T) {
	plugin := []corev1.Container{{Name: view.PluginName}}
	made := func(kind, by, node string, containers []corev1.Container) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: by + "-1", OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: by, Controller: new(true)}}}, Spec: corev1.PodSpec{NodeName: node, Containers: containers}}
	}
	waits := func(p *corev1.Pod, key, node string) *corev1.Pod {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
		return p
	}
	over := waits(made("DaemonSet", "set", "", plugin), metav1.ObjectNameField, "n")
	over.Status.Phase = corev1.PodFailed
	for name, k := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"it runs there":                   {made("DaemonSet", "set", "n", nil), true},
		"it runs on another":              {made("DaemonSet", "set", "m", nil), false},
		"its DaemonSet was not read":      {made("DaemonSet", "unread", "n", plugin), true},
		"and it is nothing of the stack":  {made("DaemonSet", "unread", "n", nil), false},
		"it is another part":              {made("DaemonSet", "nfd", "n", plugin), false},
		"a Job's":                         {made("Job", "set", "n", plugin), false},
		"nobody's":                        {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "set-1"}, Spec: corev1.PodSpec{NodeName: "n", Containers: plugin}}, false},
		"it waits for room there":         {waits(made("DaemonSet", "set", "", plugin), metav1.ObjectNameField, "n"), true},
		"it waits for room on another":    {waits(made("DaemonSet", "set", "", plugin), metav1.ObjectNameField, "m"), false},
		"what it waits for is no node":    {waits(made("DaemonSet", "set", "", plugin), "metadata.uid", "n"), false},
		"another's waits for a node":      {waits(made("Job", "set", "", plugin), metav1.ObjectNameField, "n"), false},
		"it waited, and it is over":       {over, false},
		"it waits, and says not for what": {made("DaemonSet", "set", "", plugin), false},
	} {
		set := func(name, container string) *appsv1.DaemonSet {
			ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: name}}
			ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: container}}
			return ds
		}
		w := view.New(&cluster.State{Now: noon, DaemonSets: []*appsv1.DaemonSet{set("set", view.PluginName), set("nfd", "nfd-worker"), set("app", "main")},
			Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, {ObjectMeta: metav1.ObjectMeta{Name: "m"}}}, Pods: []*corev1.Pod{k.pod}})
		if got := Of(w).Pod(w.Nodes["n"], Plugin); (got != nil) != k.want {
			t.Errorf("%s: %v", name, got)
		}
		by := Of(w).SetOf(k.pod)
		if owner := metav1.GetControllerOfNoCopy(k.pod); owner == nil && by != nil || owner != nil && (by != nil) != (owner.Name != "unread") {
			t.Errorf("%s: made by %v", name, by)
		}
		if Of(w).Named("g", "app") != nil || len(Of(w).Sets(Plugin)) != 1 {
			t.Errorf("parts %v", Of(w).Sets(Plugin))
		}
	}
}

// Of what is said of a DaemonSet the newest counts, whichever clock its speaker uses.
func TestTheNewestWordCounts(t *testing.T) {
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-ago)) }
	say := func(message, reason, kind string) *corev1.Event {
		return &corev1.Event{Reason: reason, Message: message, InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "g", Name: "set"}}
	}
	old, now, series := say("old", "FailedCreate", "DaemonSet"), say("now", "FailedCreate", "DaemonSet"), say("again", "FailedCreate", "DaemonSet")
	old.LastTimestamp, now.EventTime = at(2*time.Hour), metav1.NewMicroTime(noon.Add(-time.Hour))
	series.LastTimestamp, series.Series = at(3*time.Hour), &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(noon)}
	other := say("of a ReplicaSet", "FailedCreate", "ReplicaSet")
	other.LastTimestamp = at(0)
	for want, events := range map[string][]*corev1.Event{"now": {old, now, other}, "old": {old}, "again": {now, series, old}} {
		k := Of(view.New(&cluster.State{Now: noon, Events: events}))
		e := k.Refused(&Set{DaemonSet: &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "set"}}})
		if e == nil || e.Message != want {
			t.Errorf("%v, want %s", e, want)
		}
	}
}

// A DaemonSet's pod outlives the boots of its machine: it begins anew when its node has come back, and restarts from before that
// are no loop.
func TestBegunAnewWithItsNode(t *testing.T) {
	back := metav1.NewTime(noon.Add(-time.Minute))
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: back}}}}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "p", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}, Spec: corev1.PodSpec{NodeName: "n"}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(noon.Add(-2 * time.Minute))}}}}
	look := func() Look {
		return Of(view.New(&cluster.State{Now: noon, Nodes: []*corev1.Node{n}, Pods: []*corev1.Pod{p}})).Look(p)
	}
	if got := look(); !got.Since.Equal(back.Time) || got.Loops {
		t.Errorf("after a boot: since %s, loops %t", got.Since, got.Loops)
	}
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated.FinishedAt = metav1.NewTime(noon.Add(-30 * time.Second))
	if got := look(); !got.Loops {
		t.Error("it ended since the boot, and more than twice in all: that is a loop")
	}
	n.Status.Conditions[0].Status = corev1.ConditionFalse
	if got := look(); !got.Since.Equal(p.CreationTimestamp.Time) {
		t.Errorf("its node is not back: since %s", got.Since)
	}
}
