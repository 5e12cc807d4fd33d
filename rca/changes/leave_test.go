package changes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// waits adds another pod that waits as the first.
func (w *world) waits(c *Bench, name string) {
	c.Incident.Pods = append(c.Incident.Pods, incident.PodRef{Name: name, UID: name})
	c.Incident.Waiting++
}

// A higher class helps where the scheduler would take pods that anybody may take: none that
// a budget, a gang or their node keeps, and for every pod that waits.
func TestWhatAHigherClassWouldTake(t *testing.T) {
	gang := func(w *world, pods ...string) {
		for _, p := range w.Pods {
			if slices.Contains(pods, p.Name) {
				p.Labels = map[string]string{"pod-group.scheduling.sigs.k8s.io": "g"}
			}
		}
	}
	holder := func(w *world, name string) *corev1.Pod {
		return w.Pods[slices.IndexFunc(w.Pods, func(p *corev1.Pod) bool { return p.Name == name })]
	}
	twin := func(w *world, name string) {
		p := w.Wait.DeepCopy()
		p.Name, p.UID = name, "twin"
		w.Pods = append(w.Pods, p)
	}
	for name, tc := range map[string]struct {
		fill func(*world)
		edit func(*world, *Bench)
		want string
	}{
		"the one holder":                {fill: func(w *world) { w.Wholes("n") }, want: "n [h-n]"},
		"a budget lets it":              {fill: func(w *world) { w.Wholes("n"); w.PDBs = []*policyv1.PodDisruptionBudget{rcatest.BudgetFor("h-n", 1)} }, want: "n [h-n]"},
		"a budget does not":             {fill: func(w *world) { w.Wholes("n"); w.PDBs = []*policyv1.PodDisruptionBudget{rcatest.BudgetFor("h-n", 0)} }},
		"one of a gang of two":          {fill: func(w *world) { w.Wholes("n", "m"); gang(w, "h-n", "h-m") }},
		"all of a gang of one":          {fill: func(w *world) { w.Wholes("n"); gang(w, "h-n") }, want: "n [h-n]"},
		"one of the node's":             {fill: func(w *world) { w.Wholes("n"); holder(w, "h-n").OwnerReferences[0].Kind = "DaemonSet" }},
		"one above the pod":             {fill: func(w *world) { w.Wholes("n"); *holder(w, "h-n").Spec.Priority = 1 }},
		"one above the class":           {fill: func(w *world) { w.Wholes("n"); *holder(w, "h-n").Spec.Priority = 100 }},
		"nobody, for there is one free": {fill: func(w *world) { w.Wholes("n"); w.AddNode(sim.Node{Name: "free", MIGOff: []int{0}}) }},
		"nobody, for the node is cordoned": {fill: func(w *world) {
			w.Wholes("n")
			w.Nodes[0].Spec.Unschedulable = true
		}},
		"one of two that are the same": {fill: func(w *world) { w.Wholes("m", "n") }, want: "m [h-m] (or, the same to it, a/h-n)"},
		"of two the one that began last": {fill: func(w *world) {
			w.Wholes("m", "n")
			for i, name := range []string{"h-m", "h-n"} {
				at := metav1.Unix(int64(1_790_000_000+i), 0)
				holder(w, name).Status.StartTime = &at
			}
		}, want: "n [h-n]"},
		"of two one that has not begun yet": {fill: func(w *world) {
			w.Wholes("m", "n")
			at := metav1.Unix(1_790_000_000, 0)
			holder(w, "h-m").Status.StartTime = &at
			holder(w, "h-n").Status.StartTime = nil
		}, want: "n [h-n]"},
		"the same, but one is the node's": {fill: func(w *world) { w.Wholes("m", "n"); holder(w, "h-n").OwnerReferences[0].Kind = "DaemonSet" }},
		"any of six":                      {fill: func(w *world) { w.Wholes("a", "b", "c", "d", "e", "f") }, want: "a [h-a] (or, the same to it, a/h-b or a/h-c or a/h-d or 2 more)"},
		"for two, both":                   {fill: func(w *world) { w.Wholes("m", "n"); twin(w, "v") }, edit: func(w *world, c *Bench) { w.waits(c, "v") }, want: "m [h-m h-n]"},
		"for two, one has no room":        {fill: func(w *world) { w.Wholes("n"); twin(w, "v") }, edit: func(w *world, c *Bench) { w.waits(c, "v") }},
		"for two, one is free":            {fill: func(w *world) { w.Wholes("n"); w.AddNode(sim.Node{Name: "free", MIGOff: []int{0}}); twin(w, "v") }, edit: func(w *world, c *Bench) { w.waits(c, "v") }, want: "n [h-n]"},
		"not all that wait are named":     {fill: func(w *world) { w.Wholes("n") }, edit: func(_ *world, c *Bench) { c.Incident.Waiting = 2 }},
		"one that waits is gone":          {fill: func(w *world) { w.Wholes("n") }, edit: func(w *world, c *Bench) { w.waits(c, "gone") }},
		"sixteen, one with a free GPU":    {fill: func(w *world) { many(w, maxRaised) }, edit: func(w *world, c *Bench) { manyWait(w, c, maxRaised) }, want: "n00 [h-n00 h-n01 h-n02 h-n03 h-n04 h-n05 h-n06 h-n07 h-n08 h-n09 h-n10 h-n11 h-n12 h-n13 h-n14 h-n15]"},
		"seventeen are too many":          {fill: func(w *world) { many(w, maxRaised+1) }, edit: func(w *world, c *Bench) { manyWait(w, c, maxRaised+1) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Asking(list("nvidia.com/gpu", "1"))
			tc.fill(w)
			c := w.bench(t, "Deployment")
			if tc.edit != nil {
				tc.edit(w, c)
			}
			p, err := c.Preempts(t.Context(), class("high", 100))
			var taken []string
			for _, v := range p.Victims {
				taken = append(taken, v.Name)
			}
			slices.Sort(taken)
			got := fmt.Sprint(p.Node, " ", taken, orOthers(p))
			if len(p.Victims) == 0 {
				got = ""
			}
			if err != nil || got != tc.want {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func many(w *world, n int) {
	for i := range n {
		w.Wholes(fmt.Sprintf("n%02d", i))
		if i > 0 {
			p := w.Wait.DeepCopy()
			p.Name = fmt.Sprint("w", i)
			w.Pods = append(w.Pods, p)
		}
	}
}

func manyWait(w *world, c *Bench, n int) {
	for i := range n - 1 {
		w.waits(c, fmt.Sprint("w", i+1))
	}
}

// willing finds everything worth trying.
type willing struct{}

func (willing) Enough([][]edit.Change, diagnosis.FixKind) bool { return false }

func (willing) Pointless(*view.Node, [][]edit.Change, *edit.Change) bool { return false }

// Who holds what the pod lacks is evicted, moved where there is room elsewhere, or waited
// for; who was seen to do nothing is only asked first.
func TestHoldersLeave(t *testing.T) {
	idle := func(names ...string) func(*Bench) {
		return func(c *Bench) {
			c.Cluster.Uses = map[diagnosis.PodName]diagnosis.Use{{Namespace: "z", Name: "other"}: {}}
			for _, name := range names {
				c.Cluster.Uses[diagnosis.PodName{Namespace: "a", Name: name}] = diagnosis.Use{Idle: true, Watched: time.Hour, Since: rcatest.Noon}
			}
		}
	}
	older := func(w *world) { // costs more to lose
		w.Pods[len(w.Pods)-1].Status.StartTime = &metav1.Time{Time: rcatest.Noon.Add(-10 * time.Hour)}
	}
	two := func(w *world) {
		w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}})
		w.AddHolder("h", "n", view.WholeGPU, 0)
		w.AddHolder("old", "n", view.WholeGPU, 0)
		older(w)
	}
	for name, tc := range map[string]struct {
		fill func(*world)
		edit func(*Bench)
		root diagnosis.CauseID
		want string
	}{
		"a holder":           {fill: func(w *world) { w.Wholes("n") }, want: "EvictPods evict a/h-n from n; Wait wait until a/h-n leaves n"},
		"the cheaper of two": {fill: two, want: "EvictPods evict a/h from n; Wait wait until a/h leaves n"},
		"room elsewhere":     {fill: func(w *world) { w.Wholes("n"); w.AddNode(sim.Node{Name: "m", MIGOff: []int{0}}) }, want: "EvictPods evict a/h-n from n; Wait wait until a/h-n leaves n"},
		"only one comes back": {fill: func(w *world) {
			two(w)
			w.AddNode(sim.Node{Name: "m", MIGOff: []int{0}})
			w.Pods[1].OwnerReferences = nil
		}, want: "EvictPods evict a/h from n; MovePods evict a/old from n; Wait wait until a/h leaves n"},
		"who comes back is idle": {fill: func(w *world) {
			two(w)
			w.AddNode(sim.Node{Name: "m", MIGOff: []int{0}})
			w.Pods[1].OwnerReferences = nil
		}, edit: idle("old"), want: "ReleaseIdleHolder ask its owner, then evict idle a/old from n; EvictPods evict a/h from n; Wait wait until a/h leaves n"},
		"no room for it": {fill: func(w *world) { two(w); w.Pods[1].OwnerReferences = nil }, want: "EvictPods evict a/h from n; Wait wait until a/h leaves n"},
		"room, and closed": {fill: func(w *world) {
			two(w)
			w.AddNode(sim.Node{Name: "m", MIGOff: []int{0}, Cordoned: true})
			w.Pods[1].OwnerReferences = nil
		}, want: "EvictPods evict a/h from n; Wait wait until a/h leaves n"},
		"an idle one":        {fill: func(w *world) { w.Wholes("n") }, edit: idle("h-n"), want: "ReleaseIdleHolder ask its owner, then evict idle a/h-n from n"},
		"a busy one":         {fill: func(w *world) { w.Wholes("n") }, edit: idle(), want: "EvictPods evict a/h-n from n; Wait wait until a/h-n leaves n"},
		"the idle of two":    {fill: two, edit: idle("old"), want: "ReleaseIdleHolder ask its owner, then evict idle a/old from n; EvictPods evict a/h from n; Wait wait until a/h leaves n"},
		"nothing is lacking": {fill: func(w *world) { w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}}) }},
		"it can never have it": {fill: func(w *world) {
			w.AddNode(sim.Node{Name: "n", Layouts: [][]sim.Placed{sim.All("A100-40GB", "7g.40gb")}})
		}},
		"nobody may leave":       {fill: func(w *world) { w.Wholes("n"); *w.Pods[1].Spec.Priority = 1 }},
		"a report that is none":  {fill: func(w *world) { w.Wholes("n") }, edit: func(c *Bench) { c.Node("n").Unreadable = true }},
		"who idles does not end": {fill: func(w *world) { w.Wholes("n") }, root: diagnosis.IdleGPUHolders, want: "EvictPods evict a/h-n from n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Asking(list("nvidia.com/gpu", "1"))
			tc.fill(w)
			c := w.bench(t, "Deployment")
			if tc.edit != nil {
				tc.edit(c)
			}
			root := tc.root
			if root == "" {
				root = diagnosis.GPUsInUse
			}
			var got []string
			for _, set := range c.ResourceChanges(willing{}, c.Node("n"), []diagnosis.CauseID{diagnosis.HostResourcesShort, root}, nil) {
				if len(set) != 1 || set[0].Kind == diagnosis.ChangeRequest {
					continue
				}
				want := root
				if set[0].Kind == diagnosis.ReleaseIdleHolder {
					want = diagnosis.IdleGPUHolders
				}
				if set[0].Cause != want {
					t.Errorf("%s is for %s", set[0].Title, set[0].Cause)
				}
				got = append(got, fmt.Sprintf("%s %s", set[0].Kind, set[0].Title))
			}
			if text := strings.Join(got, "; "); text != tc.want {
				t.Errorf("%q, want %q", text, tc.want)
			}
		})
	}
}

// Idle holders that are too few are not asked to leave.
func TestIdleHoldersAreTooFew(t *testing.T) {
	w := newWorld()
	w.Asking(list("nvidia.com/gpu", "2"))
	w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}})
	w.AddHolder("a", "n", view.WholeGPU, 0)
	w.AddHolder("b", "n", view.WholeGPU, 0)
	c := w.bench(t, "Deployment")
	c.Cluster.Uses = map[diagnosis.PodName]diagnosis.Use{{Namespace: "a", Name: "a"}: {Idle: true, Watched: 30 * time.Minute, Since: rcatest.Noon}}
	lack, _ := c.Node("n").DeficitsOf(c.Wants)
	if all := c.release(c.Node("n"), lack); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// Of two idle holders both owners are asked, one after the other, before anybody is evicted.
func TestIdleHoldersAreAskedFirst(t *testing.T) {
	w := newWorld()
	w.Asking(list("nvidia.com/gpu", "2"))
	w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}})
	w.AddHolder("a", "n", view.WholeGPU, 0)
	w.AddHolder("b", "n", view.WholeGPU, 0).OwnerReferences = nil
	c := w.bench(t, "Deployment")
	use := diagnosis.Use{Idle: true, Watched: 30 * time.Minute, Since: rcatest.Noon}
	c.Cluster.Uses = map[diagnosis.PodName]diagnosis.Use{{Namespace: "a", Name: "a"}: use, {Namespace: "a", Name: "b"}: use}
	lack, _ := c.Node("n").DeficitsOf(c.Wants)
	all := c.release(c.Node("n"), lack)
	if len(all) != 1 {
		t.Fatalf("%d changes", len(all))
	}
	ch := all[0]
	ch.Detail(&ch)
	const since = " yourself (no message is sent): no GPU work seen since 2026-11-20 12:00 UTC"
	want := []string{"ask the owner of a/a (replicaset/a)" + since, "ask the owner of a/b" + since, "evict a/a", "evict a/b"}
	if !slices.Equal(ch.Steps, want) || !strings.HasPrefix(ch.Title, "ask their owners, then evict idle ") {
		t.Errorf("%s: %q, want %q", ch.Title, ch.Steps, want)
	}
	for _, a := range ch.Actions {
		if a.Verb != diagnosis.VerbEvict || a.Relies["idle"] != "30m0s" || a.Relies["node"] != "n" || len(a.Relies) != 2 {
			t.Errorf("%+v", a)
		}
	}
}

// Of a holder that cannot begin it is said why, what is evicted relies on that, and who works is left alone.
func TestWhoCannotBeginIsAskedFor(t *testing.T) {
	w := newWorld()
	w.Asking(list("nvidia.com/gpu", "1"))
	w.AddNode(sim.Node{Name: "n", GPUs: 2, MIGOff: []int{0, 1}})
	w.AddHolder("a", "n", view.WholeGPU, 0)
	b := w.AddHolder("b", "n", view.WholeGPU, 0)
	b.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(-time.Hour))
	b.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: b.Spec.Containers[0].Name, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "not found"}}}}
	c := w.bench(t, "Deployment")
	lack, _ := c.Node("n").DeficitsOf(c.Wants)
	all := c.release(c.Node("n"), lack)
	if len(all) != 1 {
		t.Fatalf("%d changes", len(all))
	}
	ch := all[0]
	ch.Detail(&ch)
	want := []string{"ask the owner of a/b (replicaset/b) yourself (no message is sent): it does not run: " + b.Spec.Containers[0].Name + ": ImagePullBackOff: not found", "evict a/b"}
	if ch.Title != "ask its owner, then evict a/b, which does not run, from n" || !slices.Equal(ch.Steps, want) || len(ch.Actions) != 1 || ch.Actions[0].Relies["idle"] != diagnosis.DoesNotRun {
		t.Errorf("%s: %q %+v, want %q", ch.Title, ch.Steps, ch.Actions, want)
	}
	b.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(-9 * time.Minute))
	if all := c.release(c.Node("n"), lack); len(all) != 0 {
		t.Errorf("it may still begin: %+v", all)
	}
}
