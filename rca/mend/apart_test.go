package mend

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
)

// apartFrom is the anti-affinity to pods of a label, on a node.
func apartFrom(app string) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"part-of": app}}}}}}
}

// A rule of others that is about the pod, too, is theirs to change: of who makes them by a template that has it.
func TestARuleOfOthers(t *testing.T) {
	const theirs = "have statefulset/set keep apart from fewer: part-of=x (kubernetes.io/hostname) is about the pods of deployment/w, too"
	for name, tc := range map[string]struct {
		theirs, template, own *corev1.Affinity
		want                  string
	}{
		"theirs alone":                {apartFrom("x"), apartFrom("x"), nil, theirs},
		"about others":                {apartFrom("y"), apartFrom("y"), nil, ""},
		"their template has no rule":  {apartFrom("x"), nil, nil, ""},
		"its own keeps it off, too":   {apartFrom("x"), apartFrom("x"), apartFrom("x"), ""},
		"its own is about nobody now": {apartFrom("x"), apartFrom("x"), apartFrom("z"), theirs},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}, Labels: map[string]string{corev1.LabelHostname: "n"}})
		w.Wait.Labels, w.Wait.Spec.Affinity = map[string]string{"part-of": "x"}, tc.own
		yes := true
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "set", UID: "s"}}
		set.Spec.Template.Spec.Affinity = tc.template
		w.StatefulSets = append(w.StatefulSets, set)
		p := w.AddHolder("p", "n", "cpu", 0)
		p.Labels, p.Spec.Affinity = map[string]string{"part-of": "x"}, tc.theirs
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "set", UID: "s", Controller: &yes}}
		c := w.bench(t)
		var got string
		for _, ch := range TheirRule(c, c.Node("n")) {
			got = ch.Title
			if len(ch.Drained) != 1 || !strings.HasPrefix(ch.Commands[0], "kubectl -n a edit statefulset/set  # ") {
				t.Errorf("%s: %v, %q", name, ch.Drained, ch.Commands)
			}
		}
		if got != tc.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, tc.want)
		}
	}
}

// A ReplicaSet replaces no pod by itself, and a Job's template is not to be changed.
func TestARuleOfOthersThatNobodyRolls(t *testing.T) {
	for kind, want := range map[string][]string{
		"ReplicaSet": {"kubectl -n a edit replicaset/of  # ", "kubectl -n a delete pod p  # its ReplicaSet makes it again by the new template", "kubectl -n a get pod "},
		"Job":        nil,
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}, Labels: map[string]string{corev1.LabelHostname: "n"}})
		w.Wait.Labels = map[string]string{"part-of": "x"}
		template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Affinity: apartFrom("x")}}
		meta := metav1.ObjectMeta{Namespace: "a", Name: "of", UID: "o"}
		w.ReplicaSets = append(w.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Template: template}})
		w.Jobs = append(w.Jobs, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}})
		p := w.AddHolder("p", "n", "cpu", 0)
		p.Labels, p.Spec.Affinity = map[string]string{"part-of": "x"}, apartFrom("x")
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: map[string]string{"ReplicaSet": "apps/v1", "Job": "batch/v1"}[kind], Kind: kind, Name: "of", UID: "o", Controller: new(true)}}
		c := w.bench(t)
		var got []string
		for _, ch := range TheirRule(c, c.Node("n")) {
			got = ch.Commands
		}
		if !slices.EqualFunc(got, want, strings.HasPrefix) {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

// What gives a pod its rules is told by an annotation, where a controller is known for it.
func TestARuleThatIsGiven(t *testing.T) {
	const jobs, of = "apart from jobset.sigs.k8s.io/job-key (rack)", "job/j"
	const asked = "see who gives its pods the rule to be apart from jobset.sigs.k8s.io/job-key (rack), which job/j does not have"
	for name, tc := range map[string]struct {
		annotations, labels map[string]string
		texts, want         string
	}{
		"JobSet's": {map[string]string{"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}, map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}, jobs,
			"give a job of jobset/js another rack: annotation alpha.jobset.sigs.k8s.io/exclusive-topology has each take one to itself; or make it without that"},
		"LeaderWorkerSet's": {map[string]string{"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}, map[string]string{"leaderworkerset.sigs.k8s.io/name": "l"}, "apart from leaderworkerset.sigs.k8s.io/group-key (rack)",
			"give a group of leaderworkerset/l another rack: annotation leaderworkerset.sigs.k8s.io/exclusive-topology has each take one to itself; or make it without that"},
		"another rule": {map[string]string{"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}, map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}, "near a=b (rack)",
			"see who gives its pods the rule to be near a=b (rack), which job/j does not have"},
		"no annotation": {nil, map[string]string{"jobset.sigs.k8s.io/jobset-name": "js"}, jobs, asked},
	} {
		w := newWorld()
		w.Wait.Annotations, w.Wait.Labels = tc.annotations, tc.labels
		if got := GivenRule(w.bench(t), of, tc.texts).Title; got != tc.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, tc.want)
		}
	}
}
