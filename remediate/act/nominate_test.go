package act

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/watcher/incident"
)

// A plan that makes the pods again keeps the room that its evictions make for those: the pod
// that it was made for is gone by then, and an evicted pod's successor is quick.
func TestNominationsOfPodsMadeAgain(t *testing.T) {
	victim := diagnosis.Action{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: "holder", UID: "holder"}, Relies: map[string]string{"node": "gpu-1"}}
	again := diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: diagnosis.Target{Kind: "Job", Namespace: "ml", Name: "training", UID: "train"}}
	for name, tc := range map[string]struct {
		actions []diagnosis.Action
		pods    []*corev1.Pod
		missing string
		on      map[string]string // pods and the node that is kept for each
	}{
		"the pod that waits":                  {[]diagnosis.Action{victim}, []*corev1.Pod{podOf("training", "old", "")}, "", map[string]string{"old": "gpu-1"}},
		"the one that is made again":          {[]diagnosis.Action{again, victim}, []*corev1.Pod{podOf("training", "new", ""), podOf("other", "o", "")}, "", map[string]string{"new": "gpu-1", "o": ""}},
		"one of two, as one was waited for":   {[]diagnosis.Action{again, victim}, []*corev1.Pod{podOf("training", "new-a", ""), podOf("training", "new-b", "")}, "", map[string]string{"new-a": "gpu-1", "new-b": ""}},
		"none is made yet":                    {[]diagnosis.Action{again, victim}, []*corev1.Pod{podOf("training", "old", "")}, "its pods are not made again yet", map[string]string{"old": ""}},
		"it is made, and has a node":          {[]diagnosis.Action{again, victim}, []*corev1.Pod{podOf("training", "new", "gpu-2")}, "", map[string]string{"new": ""}},
		"evicted before it is made again":     {[]diagnosis.Action{victim, again}, []*corev1.Pod{podOf("training", "old", "")}, "", map[string]string{"old": ""}},
		"another is made again":               {[]diagnosis.Action{{Verb: diagnosis.VerbRecreate, Target: diagnosis.Target{Kind: "Job", Namespace: "ml", Name: "other"}}, victim}, nil, "", nil},
		"nobody is evicted for it":            {[]diagnosis.Action{again}, []*corev1.Pod{podOf("training", "new", "")}, "", map[string]string{"new": ""}},
		"a changed template waits for no pod": {[]diagnosis.Action{{Verb: diagnosis.VerbPatch, Target: again.Target}, victim}, nil, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			rem := this(tc.actions...)
			rem.Spec.Workload, rem.Spec.Node = incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, "gpu-1"
			rem.Spec.Waiting = []v1alpha1.Pod{{Name: "old", UID: "old"}}
			var there []runtime.Object
			for _, p := range tc.pods {
				there = append(there, p)
			}
			r := &run{Deps: memory(there...), rem: rem, actions: tc.actions}
			if missing, err := r.nominate(t.Context(), "gpu-1"); err != nil || missing != tc.missing {
				t.Errorf("%q, %v", missing, err)
			}
			r.DryRun = true // makes nothing, and waits for nothing
			if missing, err := r.nominate(t.Context(), "gpu-1"); err != nil || missing != "" {
				t.Errorf("dry run: %q, %v", missing, err)
			}
			for pod, want := range tc.on {
				p, err := r.Client.CoreV1().Pods("ml").Get(t.Context(), pod, metav1.GetOptions{})
				if err != nil || p.Status.NominatedNodeName != want {
					t.Errorf("%s: %q, want %q, %v", pod, p.Status.NominatedNodeName, want, err)
				}
			}
		})
	}
}

// The scheduler tries the waiting pod when the holder ends, and takes a nomination back where it tries in vain: behind an
// eviction the room is kept again, and not only at the next look.
func TestTheRoomIsKeptBehindAnEviction(t *testing.T) {
	victim := diagnosis.Action{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: "web", UID: "web"}, Relies: map[string]string{"node": "gpu-1"}}
	d := memory(podOf("other", "web", "gpu-1"), podOf("training", "old", ""))
	pods, tracked, before := corev1.SchemeGroupVersion.WithResource("pods"), d.Client.(*fake.Clientset).Tracker(), ""
	once(d, "create", "pods", nil, func() {
		o, err := tracked.Get(pods, "ml", "old")
		if err != nil {
			t.Error(err)
			return
		}
		p := o.(*corev1.Pod).DeepCopy()
		before, p.Status.NominatedNodeName = p.Status.NominatedNodeName, ""
		if err := tracked.Update(pods, p, "ml"); err != nil {
			t.Error(err)
		}
		removed(t, d)
	})
	rem := this(victim)
	rem.Spec.Workload, rem.Spec.Node, rem.Spec.Waiting = incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, "gpu-1", []v1alpha1.Pod{{Name: "old", UID: "old"}}
	rem.Status.Proved = []v1alpha1.Proved{{UID: "web", Node: "gpu-1"}}
	if missing, err := New(d, rem).Steps()[0].Try(t.Context(), line()); missing != "" || err != nil {
		t.Fatalf("missing %q, %v", missing, err)
	}
	p, err := d.Client.CoreV1().Pods("ml").Get(t.Context(), "old", metav1.GetOptions{})
	if err != nil || before != "gpu-1" || p.Status.NominatedNodeName != "gpu-1" {
		t.Errorf("nominated for %q before the eviction and %q behind it, want gpu-1 twice (%v)", before, p.Status.NominatedNodeName, err)
	}
}

// The scheduler takes a nomination back with every try in vain. It is given again at once, as often as that happens, and
// not at the next look only: the successor of an evicted pod is tried meanwhile. Who gets its node ends the look.
func TestANominationTakenBackIsGivenAgainAtOnce(t *testing.T) {
	victim := diagnosis.Action{Verb: diagnosis.VerbEvict, Target: diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: "web", UID: "web"}, Relies: map[string]string{"node": "gpu-1"}}
	d := memory(podOf("training", "old", ""), podOf("other", "beside", ""))
	d.Poll = 20 * time.Second // only what is watched ends it
	tracked, pods := d.Client.(*fake.Clientset).Tracker(), corev1.SchemeGroupVersion.WithResource("pods")
	seen, err := d.Client.CoreV1().Pods("ml").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	scheduler := make(chan struct{})
	go func() {
		defer close(scheduler)
		for change := range seen.ResultChan() {
			p := change.Object.(*corev1.Pod).DeepCopy()
			if p.Name != "old" || p.Status.NominatedNodeName == "" {
				continue
			}
			if given, p.Status.NominatedNodeName = given+1, ""; given == 3 {
				p.Spec.NodeName = "gpu-1"
			}
			if err := tracked.Update(pods, p, "ml"); err != nil || given == 3 {
				return
			}
		}
	}()
	rem := this(victim)
	rem.Spec.Workload, rem.Spec.Node, rem.Spec.Waiting = incident.Ref{Kind: "Job", Namespace: "ml", Name: "training"}, "gpu-1", []v1alpha1.Pod{{Name: "old", UID: "old"}}
	r, e := &run{Deps: d, rem: rem, actions: []diagnosis.Action{victim}}, line()
	began := time.Now()
	missing, err := r.keepRoom(t.Context(), e)
	seen.Stop()
	<-scheduler
	if missing != "" || err != nil || !e.Waited || given != 3 || time.Since(began) >= d.Poll {
		t.Errorf("missing %q, waited %t, nominated %d times, want 3, in %s (%v)", missing, e.Waited, given, time.Since(began), err)
	}
}
