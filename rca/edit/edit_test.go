package edit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/whatif"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Several edits of one pod spec become one, in the place of the last; what else is done stays
// where it is.
func TestOneEditOfASpec(t *testing.T) {
	w := edittest.New()
	w.Deployed()
	c := edit.New(w.Case(t, "Deployment"))
	to := func(key string) edit.Change {
		ch := edit.Change{Title: key}
		c.EditTemplate(&ch, map[string]any{key: "x"}, false)
		return ch
	}
	evict := edit.Change{Title: "evict", Steps: []string{"evict"}}
	steps := func(all []edit.Change) string {
		var out []string
		for _, ch := range all {
			text := ch.Title + ":" + strings.Join(ch.Steps, ",")
			for _, a := range ch.Actions {
				text += " " + string(a.Patch)
			}
			out = append(out, text)
		}
		return strings.Join(out, "; ")
	}
	patch := func(spec string) string { return `{"spec":{"template":{"spec":{` + spec + `}}}}` }
	const made = ":patch the template of deployment/w "
	for want, all := range map[string][]edit.Change{
		"a" + made + patch(`"a":"x"`) + "; evict:evict":                                      {to("a"), evict},
		"a:; evict:evict; b" + made + patch(`"a":"x","b":"x"`):                               {to("a"), evict, to("b")},
		"evict:evict; a:; b:; c" + made + patch(`"a":"x","b":"x","c":"x"`) + "; evict:evict": {evict, to("a"), to("b"), to("c"), evict},
	} {
		before := steps(all)
		if got := steps(c.OneEdit(all)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if steps(all) != before {
			t.Error("the changes given were changed")
		}
	}
}

// A template is patched where its kind may change it, and recreated where it may not; an
// owner that nobody has read is changed by hand.
func TestTemplatesAreEditedByKind(t *testing.T) {
	for name, tc := range map[string]struct {
		kind string
		fill func(*edittest.World)
		live bool
		want string
	}{
		"deployment":             {"Deployment", func(w *edittest.World) { w.Deployed() }, false, "patch Deployment/w"},
		"unread deployment":      {"Deployment", func(*edittest.World) {}, false, "by hand"},
		"unread stateful set":    {"StatefulSet", func(*edittest.World) {}, false, "by hand"},
		"a pod that may take it": {"Pod", func(*edittest.World) {}, true, "patch Pod/w"},
		"a pod that may not":     {"Pod", func(*edittest.World) {}, false, "recreate Pod/w"},
		"of no kind known":       {"CronJob", func(*edittest.World) {}, true, "by hand"},
		"unread job":             {"Job", func(*edittest.World) {}, false, "by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			tc.fill(w)
			var ch edit.Change
			edit.New(w.Case(t, tc.kind)).EditTemplate(&ch, map[string]any{"nodeSelector": nil}, tc.live)
			got := "by hand"
			if !ch.Manual {
				got = fmt.Sprintf("%s %s/%s", ch.Actions[0].Verb, ch.Actions[0].Target.Kind, ch.Actions[0].Target.Name)
			}
			if got != tc.want || len(ch.Commands) != 1 || ch.Manual != (len(ch.Actions) == 0) {
				t.Errorf("%s, %q; want %s", got, ch.Commands, tc.want)
			}
		})
	}
}

// A patch of requests speaks of the containers that it edits, those of init too, and of no
// other.
func TestOnlyEditedContainersArePatched(t *testing.T) {
	gpu := func(name string) corev1.Container {
		one := rcatest.List("nvidia.com/gpu", "1")
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: one, Limits: one}}
	}
	plain := corev1.Container{Name: "plain", Resources: corev1.ResourceRequirements{Requests: rcatest.List("cpu", "1")}}
	const main = `{"name":"main","resources":{"limits":{"nvidia.com/gpu":null,"nvidia.com/mig-1g.5gb":"1"},"requests":{"nvidia.com/gpu":null,"nvidia.com/mig-1g.5gb":"1"}}}`
	for name, tc := range map[string]struct {
		containers, init []corev1.Container
		want             string
	}{
		"one":           {[]corev1.Container{gpu("main")}, nil, `{"containers":[` + main + `]}`},
		"one of two":    {[]corev1.Container{plain, gpu("main")}, nil, `{"containers":[` + main + `]}`},
		"one of init":   {[]corev1.Container{plain}, []corev1.Container{plain, gpu("main")}, `{"initContainers":[` + main + `]}`},
		"both":          {[]corev1.Container{gpu("main")}, []corev1.Container{gpu("main")}, `{"containers":[` + main + `],"initContainers":[` + main + `]}`},
		"none asks any": {[]corev1.Container{plain}, nil, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			w.Wait.Spec.Containers, w.Wait.Spec.InitContainers = tc.containers, tc.init
			w.Deployed()
			ch := edit.New(w.Case(t, "Deployment")).ChangeRequest(diagnosis.MIGLayoutMismatch, name, edit.AskOther(view.WholeGPU, "nvidia.com/mig-1g.5gb"))
			if got, want := string(ch.Actions[0].Patch), `{"spec":{"template":{"spec":`+tc.want+`}}}`; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// A wait says who for, and until when where their deadlines tell; of who has no end of its own it does
// not say that it will have one.
func TestWaitsSayUntilWhen(t *testing.T) {
	hour := int64(3600)
	a, b := rcatest.Victim("a", 0, 1, time.Minute, "a"), rcatest.Victim("b", 0, 1, 31*time.Minute, "b")
	b.Spec.ActiveDeadlineSeconds = &hour
	server, twin := rcatest.Victim("s", 0, 1, time.Minute, "s"), rcatest.Victim("t", 0, 1, time.Minute, "t")
	server.Spec.RestartPolicy, twin.Spec.RestartPolicy = corev1.RestartPolicyAlways, corev1.RestartPolicyAlways
	leaving := rcatest.Victim("l", 0, 1, time.Minute, "l")
	leaving.Spec.RestartPolicy, leaving.DeletionTimestamp = corev1.RestartPolicyAlways, &metav1.Time{Time: rcatest.Noon}
	far := rcatest.Victim("f", 0, 1, time.Minute, "f")
	far.Spec.NodeName = "other" // of the same gang
	bare := rcatest.Victim("z", 0, 1, time.Minute, "z")
	bare.Spec.RestartPolicy, bare.OwnerReferences = corev1.RestartPolicyAlways, nil
	for _, p := range []*corev1.Pod{a, b, server, twin, leaving, bare} {
		p.Spec.NodeName = "n"
	}
	w := edittest.New()
	w.AddNode(sim.Node{Name: "n"})
	c := edit.New(w.Case(t, "Deployment"))
	for _, tc := range []struct {
		holders      []*corev1.Pod
		until, title string
		minutes      int
	}{
		{[]*corev1.Pod{a}, "a/a on n ends", "wait until a/a leaves n", 0},
		{[]*corev1.Pod{b}, "a/b on n ends, by its deadline in 29 min", "wait until a/b leaves n", 29},
		{[]*corev1.Pod{a, b}, "2 pods (a/a, …) on n end", "wait until 2 pods (a/a, …) leave n", 0},
		{[]*corev1.Pod{a, far}, "2 pods (a/a, …) on n and other nodes end", "wait until 2 pods (a/a, …) leave n and other nodes", 0},
		{[]*corev1.Pod{leaving}, "a/l on n ends", "wait until a/l leaves n", 0},
		{[]*corev1.Pod{a, server}, "a/s on n is stopped, which nothing says will be", "have somebody stop a/s on n: it does not end by itself, and what makes it again is to be scaled down", 0},
		{[]*corev1.Pod{bare}, "a/z on n is stopped, which nothing says will be", "have somebody stop a/z on n: it does not end by itself", 0},
		{[]*corev1.Pod{server, twin}, "2 pods (a/s, …) on n are stopped, which nothing says will be", "have somebody stop 2 pods (a/s, …) on n: they do not end by themselves, and what makes them again is to be scaled down", 0},
	} {
		ch := c.WaitFor(c.Node("n"), diagnosis.GPUsInUse, tc.holders)
		ch.Detail(&ch)
		if ch.Until != tc.until || ch.Title != tc.title || ch.Minutes != tc.minutes || !ch.Manual || len(ch.Commands) != len(tc.holders) {
			t.Errorf("%q, %q, %d min, %d commands; want %q, %q, %d min", ch.Title, ch.Until, ch.Minutes, len(ch.Commands), tc.title, tc.until, tc.minutes)
		}
	}
}

// A change is made on a copy: its claims, who leaves, and the pod as it would be.
func TestChangesAreMadeOnACopy(t *testing.T) {
	w := edittest.New()
	w.Wholes("n")
	w.Asking(rcatest.List("nvidia.com/gpu", "1"))
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mine", UID: "m"}}
	w.ResourceClaims = []*resourcev1.ResourceClaim{claim}
	c := edit.New(w.Case(t, "Pod"))
	ch := edit.Change{Claims: []*resourcev1.ResourceClaim{claim.DeepCopy()}, Victims: w.Pods[1:], Pod: func(p *corev1.Pod) { p.Spec.PriorityClassName = "high" }}
	err := whatif.Try(c.Cluster.Snapshot, func(s *whatif.Snapshot) error {
		got, err := ch.Apply(s, w.Wait)
		if err != nil || got.Name != "w" || got.Spec.PriorityClassName != "high" || w.Wait.Spec.PriorityClassName != "" {
			t.Errorf("%v, %v", got, err)
			return err
		}
		node, err := s.Place(t.Context(), w.Wait)
		if node != "n" {
			t.Errorf("placed on %q", node)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Who leaves is named with the node that they leave, and how each is evicted within its
// budgets; the plan relies on where they are.
func TestEvictionsAreTold(t *testing.T) {
	w := edittest.New()
	w.Wholes("n")
	c := edit.New(w.Case(t, "Deployment"))
	ch := edit.EvictFrom(c.Node("n"), diagnosis.GPUsInUse, w.Pods[1:])
	ch.Detail(&ch)
	got := fmt.Sprintf("%s, %d min, %s; %q; %q; %s %s/%s relies on %v", edittest.Told(ch), ch.Minutes, ch.Kind, ch.Steps, ch.Commands, ch.Actions[0].Verb, ch.Actions[0].Target.Namespace, ch.Actions[0].Target.Name, ch.Actions[0].Relies)
	const want = `by plan, low risk: evict a/h-n from n, 1 min, EvictPods; ["evict a/h-n"]; ["kubectl create --raw /api/v1/namespaces/a/pods/h-n/eviction -f - <<<'{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"h-n\",\"namespace\":\"a\"}}'"]; evict a/h-n relies on map[node:n]`
	if got != want || len(ch.Actions) != 1 || ch.Cause != diagnosis.GPUsInUse {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for n, want := range map[int]string{0: "", 1: ", evicting 1 pod", 2: ", evicting 2 pods"} {
		if got := edit.Evicting(make([]*corev1.Pod, n)); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// By hand a Pod and a Job are made again, and another workload is edited.
func TestEditsByHand(t *testing.T) {
	const again, edited = "kubectl -n a get %s/w -o yaml > workload.yaml  # less, then kubectl replace --force -f workload.yaml", "kubectl -n a edit %s/w  # less"
	const job = `kubectl -n a get %s/w -o json | jq 'del(.spec.selector, .spec.template.metadata.labels["controller-uid", "batch.kubernetes.io/controller-uid"])' > workload.json  # less, then kubectl replace --force -f workload.json`
	for kind, want := range map[string]string{"Pod": again, "Job": job, "Deployment": edited, "StatefulSet": edited} {
		if got := edit.New(edittest.New().Case(t, kind)).EditByHand("less"); got != fmt.Sprintf(want, strings.ToLower(kind)) {
			t.Errorf("%s: %s", kind, got)
		}
	}
	look := edit.LookAt(diagnosis.GPUsInUse, "look", "nobody knows", "a", "b")
	if edittest.Told(look) != "by hand, none risk: look (nobody knows)" || fmt.Sprint(look.Commands) != "[a b]" || look.Cause != diagnosis.GPUsInUse || look.Kind != diagnosis.Manual {
		t.Errorf("%+v", look)
	}
}

// A Job is made again from what it is; what Kueue has admitted from its own manifest, by a
// person: the spec has the selectors of a flavor that another queue need not give.
func TestJobsAreMadeAgain(t *testing.T) {
	for queue, want := range map[string]string{
		"":  `kubectl -n a get job/w -o json | jq 'del(.spec.selector, .spec.template.metadata.labels["controller-uid", "batch.kubernetes.io/controller-uid"])' > job.json  # change {"schedulerName":"x"}, then kubectl replace --force -f job.json`,
		"q": `kubectl -n a delete job/w  # then make it again from your own manifest with {"schedulerName":"x"}: Kueue has admitted it through queue q, and put its flavor's selectors and tolerations into this one`,
	} {
		w := staffed(t, "Job", "{}", "p")
		if queue != "" {
			w.Jobs[0].Labels = map[string]string{"kueue.x-k8s.io/queue-name": queue}
		}
		var ch edit.Change
		edit.New(w.Case(t, "Job")).EditTemplate(&ch, map[string]any{"schedulerName": "x"}, false)
		if got := strings.Join(ch.Commands, "; "); got != want || ch.Manual != (queue != "") || len(ch.Actions) != 1 {
			t.Errorf("by hand %v:\n%s\nwant\n%s", ch.Manual, got, want)
		}
	}
}

// The pods of a Job that wait may take some edits where they are, if all of them are named and there.
func TestPodsOfJobsAreEditedInPlace(t *testing.T) {
	const again = "recreate job/w (its template cannot change)"
	for name, tc := range map[string]struct {
		waiting int
		pods    []incident.PodRef
		want    string
	}{
		"all are named":    {1, []incident.PodRef{{Name: "p"}}, "patch pod/p"},
		"one is not named": {2, []incident.PodRef{{Name: "p"}}, again},
		"it is not there":  {1, []incident.PodRef{{Name: "gone"}}, again},
	} {
		k := staffed(t, "Job", "{}", "p").Case(t, "Job")
		k.Incident.Waiting, k.Incident.Pods = tc.waiting, tc.pods
		var ch edit.Change
		edit.New(k).EditTemplate(&ch, map[string]any{"schedulerName": "x"}, true)
		if got := strings.Join(ch.Steps, "; "); got != tc.want || len(ch.Actions) != 1 {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A workload of a kind that nobody here knows is edited by hand, and who of it stops then is
// not known, if it runs.
func TestUnknownWorkloads(t *testing.T) {
	yes := true
	for _, runs := range []bool{false, true} {
		w := edittest.New()
		w.Wait.OwnerReferences = []metav1.OwnerReference{{Kind: "RayCluster", Name: "w", UID: "o", Controller: &yes}}
		if runs {
			p := w.Wait.DeepCopy()
			p.Name, p.Spec.NodeName = "r", "n"
			w.Pods = append(w.Pods, p)
		}
		var ch edit.Change
		edit.New(w.Case(t, "RayCluster")).EditTemplate(&ch, map[string]any{"a": "b"}, true)
		if got := strings.Join(ch.Commands, "; "); got != `kubectl -n a edit raycluster/w  # change {"a":"b"}` || !ch.Manual || ch.StopsUnknown != runs || len(ch.Actions) != 0 {
			t.Errorf("runs %v: %q, %+v", runs, got, ch)
		}
	}
}

// A toleration may be added to a pod that is there: who owns it may not make another for the change.
func TestTolerationsReachThePodsOfUnknownWorkloads(t *testing.T) {
	w := edittest.New()
	w.Wait.Spec.Tolerations = []corev1.Toleration{{Key: "old", Operator: corev1.TolerationOpExists}}
	var ch edit.Change
	edit.New(w.Case(t, "Workflow")).EditTemplate(&ch, map[string]any{"tolerations": []corev1.Toleration{{Key: "new", Operator: corev1.TolerationOpExists}}}, true)
	const want = `kubectl -n a patch pod/w --type=strategic -p '{"spec":{"tolerations":[{"key":"old","operator":"Exists"},{"key":"new","operator":"Exists"}]}}'  # the pod that waits takes it as it is`
	if len(ch.Commands) != 2 || ch.Commands[1] != want || !ch.Manual {
		t.Errorf("%q, want %s", ch.Commands, want)
	}
}

// What the GPU operator's own pods tolerate is a field of its ClusterPolicy.
func TestTolerationsOfTheOperatorsPods(t *testing.T) {
	w := edittest.New()
	var ch edit.Change
	edit.New(w.Case(t, "ClusterPolicy.nvidia.com")).EditTemplate(&ch, map[string]any{"tolerations": []corev1.Toleration{{Key: "workload", Operator: corev1.TolerationOpExists}}}, false)
	const want = `kubectl -n a edit clusterpolicy.nvidia.com/w  # change spec.daemonsets.tolerations to [{"key":"workload","operator":"Exists"}]`
	if got := strings.Join(ch.Commands, "; "); got != want || !ch.Manual {
		t.Errorf("%s, want %s", got, want)
	}
}
