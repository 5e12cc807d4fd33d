package queues

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"
)

// A pod set that does not tolerate its flavor is named, by what flavor and Workload say now; Kueue's words
// alone tell nothing.
func TestPodSetsThatDoNotTolerateTheirFlavor(t *testing.T) {
	const words = "couldn't assign flavors to pod set submitter: untolerated taint {team vision NoSchedule <nil>} in flavor gpus.a"
	taint := func(key, value, effect string) any {
		return map[string]any{"key": key, "value": value, "effect": effect}
	}
	tolerates := func(key string) []any { return []any{map[string]any{"key": key, "operator": "Exists"}} }
	type flavor struct{ taints, tolerations []any }
	vision := flavor{taints: []any{taint("team", "vision", "NoSchedule")}}
	for name, k := range map[string]struct {
		words       string
		flavor      flavor
		tolerations []any
		want        string
	}{
		"it does not":               {words, vision, nil, "submitter gpus.a team=vision:NoSchedule false true"},
		"it tolerates another":      {words, vision, tolerates("zone"), "submitter gpus.a team=vision:NoSchedule false true"},
		"it does now":               {words, vision, tolerates("team"), ""},
		"its flavor has it":         {words, flavor{vision.taints, tolerates("team")}, nil, ""},
		"its flavor has another's":  {words, flavor{vision.taints, tolerates("zone")}, nil, "submitter gpus.a team=vision:NoSchedule true true"},
		"all taints that it lacks":  {words, flavor{taints: []any{taint("a", "", "NoExecute"), taint("soft", "", "PreferNoSchedule"), taint("team", "vision", "NoSchedule")}}, tolerates("soft"), "submitter gpus.a a:NoExecute, team=vision:NoSchedule false true"},
		"its flavor has none":       {words, flavor{}, nil, ""},
		"of a flavor not read":      {words + "b", vision, nil, ""},
		"of a pod set not there":    {"couldn't assign flavors to pod set main: untolerated taint {team vision NoSchedule <nil>} in flavor gpus.a", vision, nil, ""},
		"it may have another later": {words + ", insufficient unused quota for cpu in flavor b, 4 more needed", vision, nil, "submitter gpus.a team=vision:NoSchedule false false"},
		"another may":               {"couldn't assign flavors to pod set head: insufficient unused quota for cpu in flavor b, 4 more needed; " + words, vision, nil, "submitter gpus.a team=vision:NoSchedule false true"},
		"behind it another":         {words + "; couldn't assign flavors to pod set head: insufficient unused quota for cpu in flavor b, 4 more needed", vision, nil, "submitter gpus.a team=vision:NoSchedule false true"},
		"something else is said":    {"insufficient unused quota", vision, nil, ""},
	} {
		c := open(t, func(w *rcatest.World) {
			gated(w)
			queued(w, map[string]any{"podSets": []any{map[string]any{"name": "head"}, map[string]any{"name": "submitter", "template": map[string]any{"spec": map[string]any{"tolerations": k.tolerations}}}}},
				map[string]any{"conditions": []any{condition("QuotaReserved", "False", "Pending", k.words)}})
			w.Queues.Flavors = append(w.Queues.Flavors, object("", "gpus.a", map[string]any{"spec": map[string]any{"nodeTaints": k.flavor.taints, "tolerations": k.flavor.tolerations}}))
		})
		got := ""
		if i := c.Intolerant(c.Queued()); i != nil {
			got = fmt.Sprintf("%s %s %s %t %t", i.Set, i.Flavor, i.Wants(), i.Tolerates, i.Alone)
			if says, want := c.NotAdmitted().Says, "its queue (Kueue) has not admitted it: pod set submitter of it does not tolerate "+i.Wants()+", which flavor gpus.a has"; says != want {
				t.Errorf("%s: %s", name, says)
			}
		}
		if got != k.want {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
	}
}

// What Kueue holds without a queue is nobody's to admit: the queues of its namespace are named.
func TestWhatNamesNoQueue(t *testing.T) {
	const none = "proven: it names no queue, and Kueue admits nobody without one: namespace a has "
	const facts = "\nWorkload/a/mine: spec.queueName is not set\nPod/a/w: no label kueue.x-k8s.io/queue-name" + atGate
	with := func(spec map[string]any, edits ...func(*rcatest.World)) func(*rcatest.World) {
		return func(w *rcatest.World) {
			gated(w)
			queued(w, spec, map[string]any{"conditions": []any{condition("QuotaReserved", "False", "Inadmissible", "LocalQueue  doesn't exist")}})
			for _, edit := range edits {
				edit(w)
			}
		}
	}
	queue := func(namespace, name string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.Queues.Local = append(w.Queues.Local, object(namespace, name, map[string]any{"spec": map[string]any{"clusterQueue": "all"}}))
			w.Queues.Cluster = append(w.Queues.Cluster, object("", "all", map[string]any{}))
		}
	}
	for name, k := range map[string]struct {
		fill func(*rcatest.World)
		want string
	}{
		"there is none":         {with(nil, queue("b", "team")), none + "no LocalQueue" + facts},
		"there is one":          {with(nil, queue("a", "team"), queue("b", "other")), none + "LocalQueue team" + facts},
		"there are two":         {with(nil, queue("a", "team"), queue("a", "all")), none + "LocalQueues all, team" + facts},
		"it names one":          {with(map[string]any{"queueName": "team"}, queue("a", "team")), "likely: Kueue says: LocalQueue doesn't exist\nWorkload/a/mine: QuotaReserved=False, Inadmissible: LocalQueue doesn't exist" + atGate},
		"its label names one":   {with(nil, queue("a", "team"), func(w *rcatest.World) { w.Wait.Labels[incident.QueueLabel] = "team" }), "likely: Kueue says: LocalQueue doesn't exist\nWorkload/a/mine: QuotaReserved=False, Inadmissible: LocalQueue doesn't exist" + atGate + "\nPod/a/w: queue team"},
		"queues were not read":  {with(nil, func(w *rcatest.World) { w.Unread["LocalQueue"] = "x" }), "likely: Kueue says: LocalQueue doesn't exist\nWorkload/a/mine: QuotaReserved=False, Inadmissible: LocalQueue doesn't exist" + atGate},
		"Kueue has no Workload": {gated, ""},
	} {
		got := ""
		if q := open(t, k.fill).Broken(); q != nil {
			got = told(&q.Finding)
		}
		if got != k.want {
			t.Errorf("%s: %s\nwant\n%s", name, got, k.want)
		}
	}
}

// Why Kueue makes no Workload shows in its controller, and in what it has made for others.
func TestWhyThereIsNoWorkload(t *testing.T) {
	of := func(namespace, kind string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			yes, o := true, object(namespace, "other", map[string]any{})
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "batch/v1", Kind: kind, Name: "other", UID: "o", Controller: &yes}})
			w.QueuedWorkloads = append(w.QueuedWorkloads, o)
		}
	}
	kueue := func(replicas, ready int32) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.Deployments = append(w.Deployments, controllers("registry.k8s.io/kueue/kueue:v0.15.1", replicas, ready))
		}
	}
	for name, k := range map[string]struct {
		fill []func(*rcatest.World)
		want string
	}{
		"nothing is seen":          {nil, "|a|Job"},
		"it runs":                  {[]func(*rcatest.World){kueue(1, 1)}, "up, though its controller runs|a|Job"},
		"it does not":              {[]func(*rcatest.World){kueue(1, 0)}, "down: volcano-system/volcano-controllers, which would, has 0 of 1 pod ready|a|Job"},
		"others of its kind":       {[]func(*rcatest.World){kueue(1, 1), of("b", "Job")}, "up, though its controller runs|a|"},
		"others of its namespace":  {[]func(*rcatest.World){kueue(1, 1), of("a", "RayJob")}, "up, though its controller runs||Job"},
		"others of both":           {[]func(*rcatest.World){kueue(1, 1), of("a", "Job")}, "up, though its controller runs||"},
		"others of other features": {[]func(*rcatest.World){kueue(1, 1), of("b", "RayJob")}, "up, though its controller runs|a|Job"},
	} {
		c := open(t, func(w *rcatest.World) {
			for _, edit := range k.fill {
				edit(w)
			}
		})
		describe := func() string {
			u := c.WhyUnqueued()
			says, facts := u.says()
			if (says == "") != (len(facts) == 0) {
				t.Errorf("%s: %v", name, facts)
			}
			switch {
			case u.Down:
				says = "down" + says
			case u.Controller != nil:
				says = "up" + says
			}
			return says + "|" + u.Namespace + "|" + u.Kind
		}
		if got := describe(); got[len(got)-2:] != "||" {
			t.Errorf("%s, of a pod with its gate: %s", name, got)
		}
		c.Held = &incident.Refusal{Owner: incident.Ref{Kind: "Job", Namespace: "a", Name: "j"}, Queue: "team"}
		if got := describe(); got != k.want {
			t.Errorf("%s: %s, want %s", name, got, k.want)
		}
	}
}

// A Workload of an object that is gone keeps the name of what was made again: one with another uid, by the same name.
func TestAWorkloadThatIsLeftBehind(t *testing.T) {
	job := func(edit func(w *unstructured.Unstructured, o *metav1.OwnerReference)) func(*rcatest.World) {
		return func(w *rcatest.World) {
			yes, left := true, object("a", "job-j-1f", map[string]any{})
			by := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "first", Controller: &yes}
			edit(left, &by)
			left.SetOwnerReferences([]metav1.OwnerReference{by})
			w.QueuedWorkloads = append(w.QueuedWorkloads, left)
			w.Wait.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "second", Controller: &yes}}
		}
	}
	const left = "Workload/a/job-j-1f: is of another object of that name, which has another uid and is gone"
	for name, tc := range map[string]struct {
		edit func(w *unstructured.Unstructured, o *metav1.OwnerReference)
		more func(*rcatest.World)
		want string
	}{
		"of the first":             {want: left},
		"of this one":              {edit: func(_ *unstructured.Unstructured, o *metav1.OwnerReference) { o.UID = "second" }},
		"whose uid is not known":   {edit: func(_ *unstructured.Unstructured, o *metav1.OwnerReference) { o.UID = "" }},
		"of another name":          {edit: func(_ *unstructured.Unstructured, o *metav1.OwnerReference) { o.Name = "other" }},
		"of another kind":          {edit: func(_ *unstructured.Unstructured, o *metav1.OwnerReference) { o.Kind = "RayJob" }},
		"in another namespace":     {edit: func(w *unstructured.Unstructured, _ *metav1.OwnerReference) { w.SetNamespace("b") }},
		"the pod names another":    {more: func(w *rcatest.World) { w.Wait.Labels = map[string]string{prebuilt: "mine"} }},
		"nothing makes the pod":    {more: func(w *rcatest.World) { w.Wait.OwnerReferences = nil }},
		"something else makes it":  {more: func(w *rcatest.World) { w.Wait.OwnerReferences[0].Name = "other" }},
		"another kind makes it":    {more: func(w *rcatest.World) { w.Wait.OwnerReferences[0].Kind = "RayJob" }},
		"nobody knows who made it": {more: func(w *rcatest.World) { w.Wait.OwnerReferences[0].UID = "" }},
	} {
		c := open(t, func(w *rcatest.World) {
			if tc.edit == nil {
				tc.edit = func(*unstructured.Unstructured, *metav1.OwnerReference) {}
			}
			if job(tc.edit)(w); tc.more != nil {
				tc.more(w)
			}
		})
		if LeftBehind(c) != nil {
			t.Errorf("%s: the pod has its gate, and is told of what is suspended", name)
		}
		c.Held = &incident.Refusal{Owner: incident.Ref{Kind: "Job", Namespace: "a", Name: "j"}, Queue: "team"}
		got := ""
		if w := LeftBehind(c); w != nil {
			got = facts([]diagnosis.Evidence{leftFact(w, ownerUID(c))})[0]
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Groups that Volcano has let in and not begun count as using its queue; the pod's own, of other queues, of
// other resources, or one that runs does not.
func TestWhoCountsAsUsingAQueue(t *testing.T) {
	group := func(namespace, name, queue, phase string, least map[string]any) func(*rcatest.World) {
		return func(w *rcatest.World) {
			spec := map[string]any{"minResources": least}
			if queue != "" {
				spec["queue"] = queue
			}
			w.PodGroups.Volcano = append(w.PodGroups.Volcano, object(namespace, name, map[string]any{"spec": spec, "status": map[string]any{"phase": phase}}))
		}
	}
	two := map[string]any{gpu: "2"}
	for name, k := range map[string]struct {
		fill func(*rcatest.World)
		want string
	}{
		"it does":           {group("b", "other", "default", "Inqueue", two), "PodGroup/b/other 2 nvidia.com/gpu of default"},
		"it names no queue": {group("b", "other", "", "Inqueue", two), "PodGroup/b/other 2 nvidia.com/gpu of default"},
		"it is another's":   {group("b", "other", "team", "Inqueue", two), ""},
		"it runs":           {group("b", "other", "default", "Running", two), ""},
		"it waits itself":   {group("b", "other", "default", "Pending", two), ""},
		"it asks for none":  {group("b", "other", "default", "Inqueue", map[string]any{"cpu": "2"}), ""},
		"it asks for 0":     {group("b", "other", "default", "Inqueue", map[string]any{gpu: "0"}), ""},
		"it is the pod's":   {group("a", "g", "default", "Inqueue", two), ""},
		"of the same name":  {group("b", "g", "default", "Inqueue", two), "PodGroup/b/g 2 nvidia.com/gpu of default"},
		"the queue is gone": {func(w *rcatest.World) { group("b", "other", "default", "Inqueue", two)(w); w.Queues.Volcano = nil }, ""},
	} {
		c := open(t, func(w *rcatest.World) {
			w.Wait.Spec.SchedulerName = "volcano"
			w.Wait.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": "default", "scheduling.k8s.io/group-name": "g"}
			w.Queues.Volcano = append(w.Queues.Volcano, object("", "default", map[string]any{}))
			k.fill(w)
		})
		got := ""
		for _, one := range c.Counted() {
			got += one.Ref() + " " + one.Asks.String() + " " + string(one.Resource) + " of " + one.Queue
		}
		if got != k.want {
			t.Errorf("%s: %q, want %q", name, got, k.want)
		}
	}
}
