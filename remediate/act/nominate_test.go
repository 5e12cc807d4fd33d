package act

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
