package queues

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/rcatest"
)

// What a queue of Volcano's, or one above it, may never hold is beyond it; what others hold of
// it is another matter, and so is a resource that it does not speak of.
func TestBeyondCapability(t *testing.T) {
	for name, tc := range map[string]struct {
		capability, parents, least string // of GPUs
		want, claims               string
	}{
		"the gang asks more":         {"3", "", "4", "its gang together asks for 4 nvidia.com/gpu, and Volcano's Queue team may hold 3 of it in all", "spec.capability 3 spec.minResources 4"},
		"the gang asks all":          {"4", "", "4", "", ""},
		"the queue above holds less": {"8", "2", "4", "its gang together asks for 4 nvidia.com/gpu, and Volcano's Queue dept may hold 2 of it in all", "spec.capability 2 spec.minResources 4"},
		"one pod alone asks more":    {"0", "", "", "it asks for 1 nvidia.com/gpu, and Volcano's Queue team may hold 0 of it in all", "spec.capability 0 requests 1"},
		"the pod asks more":          {"0", "", "0", "its gang together asks for 1 nvidia.com/gpu, and Volcano's Queue team may hold 0 of it in all", "spec.capability 0 requests 1"},
		"it does not speak of GPUs":  {"", "", "4", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				holds := func(gpus string) map[string]any {
					list := map[string]any{"cpu": int64(96), "odd": "no number"}
					if gpus != "" {
						list[gpu] = gpus
					}
					return list
				}
				w.Queues.Volcano = []*unstructured.Unstructured{object("", "team", map[string]any{"spec": map[string]any{"parent": "dept", "capability": holds(tc.capability)}}),
					object("", "dept", map[string]any{"spec": map[string]any{"parent": "root", "capability": holds(tc.parents)}})}
				g := object("a", "train", map[string]any{"spec": map[string]any{"minMember": int64(1), "queue": "team"}})
				if tc.least != "" {
					g.Object["spec"].(map[string]any)["minResources"] = map[string]any{gpu: tc.least}
				}
				w.PodGroups.Volcano = []*unstructured.Unstructured{g}
				refused(w, "volcano", "Unschedulable", "pod group is not ready")
				w.Wait.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"}
			})
			got := ""
			var claims []string
			if x := c.Beyond(); x != nil {
				got = x.Says
				for _, e := range x.Evidence {
					for _, k := range e.Claims {
						claims = append(claims, strings.TrimSuffix(k.Path, "["+gpu+"]"), k.Value)
					}
				}
			}
			if got != tc.want || strings.Join(claims, " ") != tc.claims {
				t.Errorf("%q, claims %q; want %q, %s", got, claims, tc.want, tc.claims)
			}
		})
	}
}

// Of many groups that count as using a queue three are named.
func TestThreeGroupsAreNamed(t *testing.T) {
	c := open(t, func(w *rcatest.World) {
		for i := range 5 {
			w.PodGroups.Volcano = append(w.PodGroups.Volcano, object("a", fmt.Sprint("g", i), map[string]any{"spec": map[string]any{"queue": "team", "minResources": map[string]any{gpu: "2"}}, "status": map[string]any{"phase": "Inqueue"}}))
		}
	})
	var want []string
	for i := range 3 {
		want = append(want, fmt.Sprintf("PodGroup/a/g%d: is Inqueue in team, and counts as using 2 nvidia.com/gpu", i))
	}
	if got := facts(c.countedIn("team", gpu)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A queue of Volcano's is broken where it is not there or does not take work; the default one
// Volcano makes itself, and other schedulers have other queues.
func TestQueuesOfVolcanoThatAdmitNobody(t *testing.T) {
	queue := func(name, state, parent string) *unstructured.Unstructured {
		return object("", name, map[string]any{"spec": map[string]any{"parent": parent}, "status": map[string]any{"state": state}})
	}
	for name, tc := range map[string]struct {
		scheduler, of string
		queues        []*unstructured.Unstructured
		want          string
	}{
		"it is open":           {"volcano", "team", []*unstructured.Unstructured{queue("team", "Open", "")}, ""},
		"it is closed":         {"volcano", "team", []*unstructured.Unstructured{queue("team", "Closed", "")}, "Volcano's Queue team is Closed"},
		"it closes":            {"volcano", "team", []*unstructured.Unstructured{queue("team", "Closing", "")}, "Volcano's Queue team is Closing"},
		"the one above is":     {"volcano", "team", []*unstructured.Unstructured{queue("team", "Open", "dept"), queue("dept", "Closed", "root")}, "Volcano's Queue dept is Closed"},
		"it is not there":      {"volcano", "team", []*unstructured.Unstructured{queue("other", "Open", "")}, "Volcano's Queue team does not exist"},
		"the default, of none": {"volcano", "default", nil, ""},
		"another, of none":     {"volcano", "team", nil, "Volcano's Queue team does not exist"},
		"the default, of some": {"volcano", "default", []*unstructured.Unstructured{queue("other", "Open", "")}, "Volcano's Queue default does not exist"},
		"another scheduler's":  {"mine", "team", nil, ""},
		"queues in a circle":   {"volcano", "a", []*unstructured.Unstructured{queue("a", "Open", "b"), queue("b", "Open", "a")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				w.Queues.Volcano = tc.queues
				w.Wait.Spec.SchedulerName = tc.scheduler
				w.Wait.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": tc.of}
			})
			got := ""
			if q := c.Broken(); q != nil {
				got = q.Says
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// A queue of KAI's without a parent takes no work in some set-ups: that is told where nothing
// else explains the refusal, and only there. A queue, or a parent, that is not there always is.
func TestQueuesOfKAIThatAdmitNobody(t *testing.T) {
	const unable = "Unable to schedule pod"
	const orphan = "KAI's Queue qa has no parent: where queues have departments above them one at the top takes no work, and KAI says no more than that it cannot schedule"
	for name, tc := range map[string]struct {
		queue, parent, reason, message string
		beside                         string // the queue of a pod that runs
		full                           bool   // no node would take the pod
		want                           string
	}{
		"no parent, and KAI says nothing": {"qa", "", "Unschedulable", unable, "", false, orphan},
		"of its group KAI says nothing":   {"qa", "", "Unschedulable", "Unable to schedule podgroup", "", false, orphan},
		"a pod of it runs":                {"qa", "", "Unschedulable", unable, "qa", false, ""},
		"a pod of another runs":           {"qa", "", "Unschedulable", unable, "other", false, orphan},
		"it has a parent":                 {"qa", "dept", "Unschedulable", unable, "", false, ""},
		"KAI says why":                    {"qa", "", "Unschedulable", "no nodes with enough resources were found", "", false, ""},
		"no node has room either":         {"qa", "", "Unschedulable", unable, "", true, ""},
		"it is not there":                 {"qb", "", "Unschedulable", unable, "", false, "KAI's Queue qb does not exist"},
		"its parent is not":               {"qa", "gone", "Unschedulable", unable, "", false, "KAI's Queue qa names parent gone, which does not exist"},
		"KAI takes it for none":           {"qa", "dept", "QueueDoesNotExist", "queue qa does not exist", "", false, "KAI does not take Queue dept, though it exists: queue qa does not exist (has it a parent?)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				spec := map[string]any{}
				if tc.parent != "" {
					spec["parentQueue"] = tc.parent
				}
				w.Queues.KAI = []*unstructured.Unstructured{object("", "dept", map[string]any{}), object("", "qa", map[string]any{"spec": spec})}
				refused(w, "kai-scheduler", tc.reason, tc.message)
				w.Wait.Labels["kai.scheduler/queue"] = tc.queue
				if tc.beside != "" {
					w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "h", Labels: map[string]string{"kai.scheduler/queue": tc.beside}}, Spec: corev1.PodSpec{NodeName: "n", SchedulerName: "kai-scheduler"}})
				}
			})
			c.Fits = !tc.full
			got := ""
			if q := c.Broken(); q != nil {
				got = q.Says
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Queues are followed up through sixteen levels, of KAI's and of Volcano's: some name each other in
// a circle.
func TestHowFarUpQueuesAreFollowed(t *testing.T) {
	for levels, told := range map[int]bool{15: true, 16: false} { // the queue above the last of them is not there
		for scheduler, above := range map[string]string{"kai-scheduler": "parentQueue", "volcano": "parent"} {
			c := open(t, func(w *rcatest.World) {
				var all []*unstructured.Unstructured
				for i := range levels {
					all = append(all, object("", fmt.Sprint("q", i+1), map[string]any{"spec": map[string]any{above: fmt.Sprint("q", i+2)}}))
				}
				w.Queues.KAI, w.Queues.Volcano = all, all
				w.Wait.Spec.SchedulerName = scheduler
				w.Wait.Labels["kai.scheduler/queue"] = "q1"
				w.Wait.Annotations = map[string]string{"scheduling.volcano.sh/queue-name": "q1"}
			})
			if q := c.Broken(); (q != nil) != told || told && q.Name != "q16" {
				t.Errorf("%s, %d levels: %+v", scheduler, levels, q)
			}
		}
	}
}

// That no scheduler answers to a name is told once silence proves it: of a name that is the
// user's own at once, of the default one on a live cluster after a minute; a pod that no
// scheduler is to see proves nothing.
func TestNobodyAnswers(t *testing.T) {
	other := func(by, reason string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "o"}, Spec: corev1.PodSpec{SchedulerName: by}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: reason}}}}
	}
	for name, tc := range map[string]struct {
		by   string
		fill func(*rcatest.World)
		ago  time.Duration
		want diagnosis.Certainty
	}{
		"nobody":                         {"mine", func(*rcatest.World) {}, 0, diagnosis.Proven},
		"pods were not all read":         {"mine", func(w *rcatest.World) { w.Unread["Pod"] = "x" }, 0, diagnosis.Likely},
		"it has judged another":          {"mine", func(w *rcatest.World) { w.Pods = append(w.Pods, other("mine", corev1.PodReasonUnschedulable)) }, 0, ""},
		"a gate is no word of it":        {"mine", func(w *rcatest.World) { w.Pods = append(w.Pods, other("mine", corev1.PodReasonSchedulingGated)) }, 0, diagnosis.Proven},
		"another's word is not its":      {"mine", func(w *rcatest.World) { w.Pods = append(w.Pods, other("", corev1.PodReasonUnschedulable)) }, 0, diagnosis.Proven},
		"it has written an Event":        {"mine", func(w *rcatest.World) { w.Events = []*corev1.Event{{Source: corev1.EventSource{Component: "mine"}}} }, 0, ""},
		"a gated pod":                    {"mine", gated, 0, ""},
		"one whose claims are missing":   {"mine", func(w *rcatest.World) { w.Wait.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c"}} }, 0, ""},
		"one that a kubelet has refused": {"mine", func(w *rcatest.World) { w.Wait.Status.Phase = corev1.PodFailed }, 0, ""},
		"of a dump by hand, the default": {corev1.DefaultSchedulerName, func(*rcatest.World) {}, time.Hour, ""},
		"live, in its first minute":      {corev1.DefaultSchedulerName, func(w *rcatest.World) { w.Live = true }, time.Minute - time.Second, ""},
		"live, and no more":              {corev1.DefaultSchedulerName, func(w *rcatest.World) { w.Live = true }, time.Minute, diagnosis.Likely},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				w.Wait.Spec.SchedulerName = tc.by
				tc.fill(w)
			})
			c.Refusal, c.Incident.Since = c.Pod.Status, rcatest.Noon.Add(-tc.ago)
			got := diagnosis.Certainty("")
			if f := c.Unanswered(); f != nil {
				got = f.Certainty
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// What the deciding scheduler says of a pod: of its group before itself, by a queue before
// anything else, by the newest; other components' words and those about another pod are not its.
func TestTheWordThatCounts(t *testing.T) {
	event := func(by, reason, message string, ago time.Duration) *corev1.Event {
		return &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: "w"}, Reason: reason, Message: message, ReportingController: by, LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}}
	}
	for name, tc := range map[string]struct {
		events []*corev1.Event
		own    string // the pod's condition
		want   string
	}{
		"nothing":               {nil, "", ""},
		"the newest":            {[]*corev1.Event{event("volcano", "FailedScheduling", "older", time.Minute), event("volcano", "FailedScheduling", "newer", 0), event("volcano", "FailedScheduling", "oldest", time.Hour)}, "", "newer"},
		"the newest of reasons": {[]*corev1.Event{event("volcano", "NotReady", "older", time.Minute), event("volcano", "FailedScheduling", "newer", 0)}, "", "newer"},
		"what lasts":            {[]*corev1.Event{event("volcano", "FailedScheduling", "an event", 0)}, "the condition", "the condition"},
		"a queue's":             {[]*corev1.Event{event("volcano", "FailedScheduling", "queue resource quota insufficient", time.Hour)}, "the condition", "queue resource quota insufficient"},
		"of its group": {[]*corev1.Event{func() *corev1.Event {
			e := event("volcano", "Unschedulable", "the group", 0)
			e.InvolvedObject.Kind, e.InvolvedObject.Name = "PodGroup", "train"
			return e
		}()}, "", "the group"},
		"another component's": {[]*corev1.Event{event("karpenter", "FailedScheduling", "no pool", 0)}, "", ""},
		"no refusal":          {[]*corev1.Event{event("volcano", "Scheduled", "bound", 0)}, "", ""},
		"of one before it": {[]*corev1.Event{func() *corev1.Event {
			e := event("volcano", "FailedScheduling", "not me", 0)
			e.InvolvedObject.UID = "before"
			return e
		}()}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				w.Wait.Spec.SchedulerName = "volcano"
				w.Wait.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"}
				if tc.own != "" {
					refused(w, "volcano", "Unschedulable", tc.own)
				}
				w.Events = tc.events
			})
			c.Refusal = c.Pod.Status
			got, found := c.Refused()
			if got.message != tc.want || found != (tc.want != "") {
				t.Errorf("%q, %v; want %q", got.message, found, tc.want)
			}
		})
	}
}

// What words are about: a queue, a shared card, room on nodes, the gang as a whole.
func TestWhatWordsAreAbout(t *testing.T) {
	about := func(w Word) string {
		out := ""
		for name, is := range map[string]bool{"queue": w.OfQueue(), "card": w.OfCard(), "room": w.OfRoom(), "gang": w.OfGang(), "unregistered": w.OfUnregistered()} {
			if is {
				out += name
			}
		}
		return out
	}
	for want, w := range map[string]Word{
		"queue":        {reason: "NonPreemptibleOverQuota", message: "Non-preemptible workload is over quota"},
		"card":         {reason: "FilteringFailed", message: "2 CardInsufficientMemory, 1 Card busy"},
		"room":         {reason: "Unschedulable", message: "0/2 nodes: 2 Insufficient nvidia.com/gpu"},
		"gang":         {reason: "NotReady", message: "Waiting for 2 pods"},
		"unregistered": {reason: "FilteringFailed", message: "1 node unregistered"},
		"":             {reason: "Unschedulable", message: "Unable to schedule pod"},
	} {
		if got := about(w); got != want {
			t.Errorf("%q: about %q, want %q", w.message, got, want)
		}
	}
	if w := (Word{reason: "NotEnoughResources", message: "over quota"}); about(w) != "queue" {
		t.Errorf("a queue's limit is no room that somebody could leave: %q", about(w))
	}
}

// Of one reason there may be several words: they are told in one order, however often.
func TestWordsOfOneReasonHaveAnOrder(t *testing.T) {
	const card, other = "1 nodes CardInsufficientMemory(n)", "no available node, 1 nodes do not meet"
	c := open(t, func(w *rcatest.World) {
		for _, message := range []string{other, card} {
			w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: "w"}, Reason: "FilteringFailed", Message: message, ReportingController: "hami-scheduler"})
		}
	})
	for range 50 {
		all := c.Words()
		if len(all) != 2 || all[0].message != card || all[1].message != other {
			t.Fatalf("%+v", all)
		}
	}
}

// A queue that another shard's scheduler looks at is not seen by the pod's own, nor is one below it; who runs
// by the queue shows that it is.
func TestQueuesOfAnotherShard(t *testing.T) {
	of := func(name, shard, parent string) *unstructured.Unstructured {
		o := object("", name, map[string]any{"spec": map[string]any{}})
		if parent != "" {
			o.Object["spec"] = map[string]any{"parentQueue": parent}
		}
		if shard != "" {
			o.SetLabels(map[string]string{ShardLabel: shard})
		}
		return o
	}
	const below = "KAI's Queue qa names parent dept, which is not of shard s (label kai.scheduler/node-pool): the scheduler of that shard, which has the pod, drops a queue whose parent it does not see"
	for name, tc := range map[string]struct {
		pod, queue, parent string // the shard of each
		runs               bool
		want               string
	}{
		"all of one":           {"s", "s", "s", false, ""},
		"none":                 {"", "", "", false, ""},
		"the parent of none":   {"s", "s", "", false, below},
		"the queue of none":    {"s", "", "s", false, "KAI's Queue qa is not of shard s (label kai.scheduler/node-pool), whose scheduler has the pod and does not see it"},
		"the pod of none":      {"", "s", "s", false, "KAI's Queue qa is not of the first shard (no label kai.scheduler/node-pool), whose scheduler has the pod and does not see it"},
		"another runs from it": {"s", "s", "", true, ""},
	} {
		c := open(t, func(w *rcatest.World) {
			w.Queues.KAI = []*unstructured.Unstructured{of("dept", tc.parent, ""), of("qa", tc.queue, "dept")}
			refused(w, "kai-scheduler", "Unschedulable", "Unable to schedule pod")
			w.Wait.Labels["kai.scheduler/queue"] = "qa"
			if tc.pod != "" {
				w.Wait.Labels[ShardLabel] = tc.pod
			}
			if tc.runs {
				w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "h", Labels: map[string]string{"kai.scheduler/queue": "qa"}}, Spec: corev1.PodSpec{NodeName: "n", SchedulerName: "kai-scheduler"}})
			}
		})
		c.Fits = true
		got := ""
		if q := c.Broken(); q != nil {
			got = q.Says
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// A scheduler speaks by the condition that is its own, and of a pod that it has refused.
func TestWhoseConditionIsAWord(t *testing.T) {
	for name, tc := range map[string]struct {
		condition corev1.PodCondition
		want      int
	}{
		"refused":          {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no"}, 1},
		"another's":        {corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NotReady", Message: "no"}, 0},
		"bound":            {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Reason: "Bound", Message: "yes"}, 0},
		"without a word":   {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}, 0},
		"the API server's": {corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated, Message: "gated"}, 0},
	} {
		c := open(t, func(w *rcatest.World) { w.Wait.Spec.SchedulerName = "volcano" })
		c.Refusal.Conditions = []corev1.PodCondition{tc.condition}
		if got := c.Words(); len(got) != tc.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A scheduler that speaks of a pod as kube-scheduler does not runs other code; what another says
// tells nothing of it.
func TestASchedulerOfItsOwnCode(t *testing.T) {
	for name, tc := range map[string]struct {
		by, says string
		want     bool
	}{
		"as kube-scheduler": {"mine", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", false},
		"otherwise":         {"mine", "no card for you", true},
		"another does":      {"other", "no card for you", false},
	} {
		c := open(t, func(w *rcatest.World) {
			w.Wait.Spec.SchedulerName = "mine"
			w.Events = []*corev1.Event{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: w.Wait.Name, UID: w.Wait.UID}, Reason: "FailedScheduling", Message: tc.says, ReportingController: tc.by}}
		})
		c.Refusal.Conditions = nil
		if got := c.Foreign("mine"); got != tc.want || len(c.Words()) != 1 {
			t.Errorf("%s: %v, %+v", name, got, c.Words())
		}
	}
}

// Events are words of who is named in them; kube-scheduler's own are none of a queue's affair.
func TestWhoseEventsAreWords(t *testing.T) {
	for by, want := range map[string]int{"": 0, corev1.DefaultSchedulerName: 0, "volcano": 1} {
		c := open(t, func(w *rcatest.World) {
			w.Wait.Spec.SchedulerName = "volcano"
			w.Events = []*corev1.Event{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "e"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: w.Wait.Name, UID: w.Wait.UID}, Reason: "FailedScheduling", Message: "no", ReportingController: by}}
		})
		c.Refusal.Conditions = nil
		if got := c.Words(); len(got) != want {
			t.Errorf("%q: %+v", by, got)
		}
	}
}
