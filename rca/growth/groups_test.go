package growth

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// grown is a group of the status that has so many machines, all of them nodes.
func grown(name string, nodes int, rest string) string {
	return fmt.Sprintf("- name: %s\n  health: {status: Healthy, cloudProviderTarget: %d, maxSize: 3, nodeCounts: {registered: {total: %d, ready: %d}}}\n%s", name, nodes, nodes, nodes, rest)
}

// backoff is what the status says of a group that the cloud has refused a machine with a code.
func backoff(code string) string {
	return "  scaleUp: {status: Backoff, backoffInfo: {errorCode: " + code + ", errorMessage: none left}}\n"
}

// member adds a node of a pool, with a whole GPU or with none.
func member(w *rcatest.World, name, of string, gpu bool) *corev1.Node {
	if gpu {
		w.AddNode(sim.Node{Name: name, MIGOff: []int{0}, Labels: map[string]string{"agentpool": of}})
	} else {
		w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"agentpool": of}}})
	}
	return w.Nodes[len(w.Nodes)-1]
}

// failure has the cluster autoscaler say on its ConfigMap that a group did not grow.
func failure(w *rcatest.World, reason, message string, ago time.Duration) {
	w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "ConfigMap", Namespace: "kube-system", Name: "cluster-autoscaler-status"}, Reason: reason, Message: message, ReportingController: scaling.ClusterAutoscaler, LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}})
}

// about is what is told, whether the autoscaler took the pod for one that the group suits, and
// which groups it is about.
func about(g *Growth) string {
	out := told(g)
	if g.Suits {
		out += "; it suits"
	}
	for _, group := range g.Groups {
		out += "; " + group.Short()
	}
	return out
}

// Of the groups that are left alone for they failed to grow those are named that could hold the
// pod, with the cloud's codes; where nobody knows which could, it is said so.
func TestGroupsThatFailedToGrow(t *testing.T) {
	const alone, beside = "1 in backoff after failed scale-up", "1 in backoff after failed scale-up, 1 Insufficient nvidia.com/gpu"
	const quota, out = "the account's quota is used up", "it has no such machine left there"
	const one = "CloudCapacityRefused proven: the cloud refuses node group g1 a machine with QUOTA_EXCEEDED: " + quota
	const two = ": the cloud refuses node groups g1, g2 a machine with QUOTA_EXCEEDED, INSUFFICIENT_CAPACITY: " + quota + "; " + out
	const unread = "CloudCapacityRefused possible: a node group failed to grow shortly before, and is left alone for a while; with what code the cloud refused was not read"
	both := grown("g1", 0, backoff("QUOTA_EXCEEDED")) + grown("g2", 0, backoff("INSUFFICIENT_CAPACITY"))
	full := grown("g1", 1, backoff("QUOTA_EXCEEDED")) + grown("g2", 1, backoff("INSUFFICIENT_CAPACITY"))
	gpus := func(first, second bool) func(*rcatest.World) {
		return func(w *rcatest.World) { member(w, "n1", "g1", first); member(w, "n2", "g2", second) }
	}
	for name, tc := range map[string]struct {
		reasons, status string
		fill            func(*rcatest.World)
		want            string
	}{
		"one":                                        {alone, grown("g1", 0, backoff("QUOTA_EXCEEDED")), nil, one + "; it suits; g1"},
		"one beside others":                          {beside, grown("g1", 0, backoff("QUOTA_EXCEEDED")) + grown("g2", 0, ""), nil, one + "; g1"},
		"two of which nobody knows":                  {alone, both, nil, "CloudCapacityRefused likely" + two + whichIsUnknown + "; g1; g2"},
		"two that could hold it":                     {alone, full, gpus(true, true), "CloudCapacityRefused proven" + two + "; it suits; g1; g2"},
		"one of two could":                           {alone, full, gpus(true, false), one + "; it suits; g1"},
		"none could":                                 {alone, full, gpus(false, false), "AutoscalerCannotHelp likely: no node group that failed to grow could hold the pod"},
		"none could, and another may":                {beside, full, gpus(false, false), "AutoscalerCannotHelp likely: no fresh node of any group, as the cluster autoscaler knows them, has the nvidia.com/gpu that the pod asks for (1 Insufficient nvidia.com/gpu)"},
		"a code that nobody knows":                   {alone, grown("g1", 0, backoff("OTHER")), nil, "CloudCapacityRefused likely: the cloud refuses node group g1 a machine with OTHER: none left; it suits; g1"},
		"two, one with such a code":                  {alone, grown("g1", 0, backoff("OTHER")) + grown("g2", 0, backoff("QUOTA_EXCEEDED")), nil, "CloudCapacityRefused likely: the cloud refuses node group g1 a machine with OTHER: none left; it suits; g1"},
		"without a code":                             {alone, grown("g1", 0, "  scaleUp: {status: Backoff}\n"), nil, unread},
		"without a code, and an Event":               {alone, grown("g1", 0, "  scaleUp: {status: Backoff}\n"), func(w *rcatest.World) { failure(w, "ScaleUpFailed", "group g1: QUOTA_EXCEEDED", time.Hour) }, "CloudCapacityRefused likely: the cloud refuses a node group a machine with QUOTA_EXCEEDED: " + quota + "; it suits; g1"},
		"without a code, another's Event":            {beside, grown("g1", 0, "  scaleUp: {status: Backoff}\n"), func(w *rcatest.World) { failure(w, "ScaleUpFailed", "group g9: QUOTA_EXCEEDED", time.Hour) }, "CloudCapacityRefused likely: the cloud refuses a node group a machine with QUOTA_EXCEEDED: " + quota},
		"of a group that has its back-off behind it": {alone, grown("g1", 0, ""), nil, unread},
	} {
		t.Run(name, func(t *testing.T) {
			g := of(t, func(w *rcatest.World) {
				says(w, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: "+tc.reasons, 0)
				status(w, 0, tc.status)
				if tc.fill != nil {
					tc.fill(w)
				}
			})
			if got := about(g); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// What the autoscaler says of groups on its ConfigMap is told of those that it promised, since
// then: the newest, with the cloud's code or its words.
func TestFailuresSinceThePromise(t *testing.T) {
	const bringing = "ScalingUp likely: an autoscaler is bringing a node"
	const refused = "CloudCapacityRefused likely: the cloud refuses a node"
	run(t, map[string]row{
		"with a code":  {func(w *rcatest.World) { failure(w, "FailedToScaleUpGroup", "gpu-grp: QUOTA_EXCEEDED", 0) }, refused + " group a machine with QUOTA_EXCEEDED: the account's quota is used up"},
		"in words":     {func(w *rcatest.World) { failure(w, "ScaleUpFailed", "gpu-grp: it said so", 0) }, refused + ": gpu-grp: it said so"},
		"never joined": {func(w *rcatest.World) { failure(w, "ScaleUpTimedOut", "gpu-grp: QUOTA_EXCEEDED", 0) }, "ScaleUpStuck likely: a node was asked for and never joined: gpu-grp: QUOTA_EXCEEDED"},
		"as it began":  {func(w *rcatest.World) { failure(w, "ScaleUpFailed", "gpu-grp: at once", time.Minute) }, refused + ": gpu-grp: at once"},
		"before":       {func(w *rcatest.World) { failure(w, "ScaleUpFailed", "gpu-grp: no", time.Minute+time.Second) }, bringing},
		"of another":   {func(w *rcatest.World) { failure(w, "ScaleUpFailed", "other: no", 0) }, bringing},
		"the newest": {func(w *rcatest.World) {
			failure(w, "ScaleUpFailed", "gpu-grp: older", 30*time.Second)
			failure(w, "ScaleUpFailed", "gpu-grp: newer", 0)
			failure(w, "ScaleUpFailed", "gpu-grp: oldest", time.Minute)
		}, refused + ": gpu-grp: newer"},
	}, func(w *rcatest.World) {
		says(w, "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu-grp 0->1 (max: 3)}]", time.Minute)
	})
}

// GKE's autoscaler tells the pod itself what became of a scale-up for it, with words for Google's codes; what it says of a
// group in back-off afterwards is explained by them. A new attempt is one.
func TestFailuresThatThePodIsTold(t *testing.T) {
	const zones = "Node scale up in zones us-central1-a associated with this pod failed: "
	const risk = ". Pod is at risk of not being scheduled."
	const refused = "CloudCapacityRefused likely: the cloud refuses node pools of us-central1-a a machine with "
	failed := func(w *rcatest.World, why string, ago time.Duration) {
		says(w, "cluster-autoscaler", "FailedScaleUp", zones+why+risk, ago)
	}
	run(t, map[string]row{
		"out of resources": {func(w *rcatest.World) { failed(w, "GCE out of resources", 0) }, refused + "GCE out of resources: it has no such machine left there"},
		"no quota":         {func(w *rcatest.World) { failed(w, "GCE quota exceeded", 0) }, refused + "GCE quota exceeded: the account's quota is used up"},
		"no address":       {func(w *rcatest.World) { failed(w, "IP space exhausted", 0) }, refused + "IP space exhausted: the subnet has no free address left"},
		"never joined": {func(w *rcatest.World) { failed(w, `Some nodes in node group ["g"] failed to appear in time`, 0) },
			"ScaleUpStuck likely: a node was asked for and never joined: " + zones + `Some nodes in node group ["g"] failed to appear in time. Pod is at risk of not being sche…`},
		"who knows": {func(w *rcatest.World) { failed(w, "Internal error", 0) }, "CloudCapacityRefused likely: the cloud refuses a node: " + zones + "Internal error" + risk},
		"in back-off since": {func(w *rcatest.World) {
			failed(w, "GCE out of resources", 30*time.Second)
			says(w, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 in backoff after failed scale-up", 0)
		}, refused + "GCE out of resources: it has no such machine left there"},
		"before a new attempt": {func(w *rcatest.World) { failed(w, "GCE out of resources", 2*time.Minute) }, "ScalingUp likely: an autoscaler is bringing a node"},
		"of somebody else":     {func(w *rcatest.World) { says(w, "x", "FailedScaleUp", zones+"GCE out of resources"+risk, 0) }, "ScalingUp likely: an autoscaler is bringing a node"},
	}, func(w *rcatest.World) {
		says(w, "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu-grp 0->1 (max: 3)}]", time.Minute)
	})
}

// Whether machines of a group could hold the pod is told by those that it has: by their labels,
// the taints that they were made with, and what they offer.
func TestWhichGroupsCouldHoldThePod(t *testing.T) {
	const yes, no, maybe = scaling.Yes, scaling.No, scaling.Maybe
	taint := corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}
	for name, tc := range map[string]struct {
		nodes int // that the status knows
		fill  func(*rcatest.World)
		want  scaling.Fit
	}{
		"it has a GPU":                 {1, func(w *rcatest.World) { member(w, "n", "gpu", true) }, yes},
		"it has no machine":            {0, func(w *rcatest.World) { member(w, "n", "gpu", true) }, maybe},
		"which nodes are its is open":  {1, func(w *rcatest.World) { member(w, "n", "", true) }, maybe},
		"nodes were not read":          {1, func(w *rcatest.World) { member(w, "n", "gpu", true); w.Unread["Node"] = "x" }, maybe},
		"the pod asks for no device":   {1, func(w *rcatest.World) { member(w, "n", "gpu", true); w.Asking(rcatest.List("cpu", "1")) }, maybe},
		"none has GPUs, all are seen":  {1, func(w *rcatest.World) { member(w, "n", "other", false) }, no},
		"none has GPUs, one is unseen": {2, func(w *rcatest.World) { member(w, "n", "other", false) }, maybe},
		"others have GPUs":             {1, func(w *rcatest.World) { member(w, "n", "gpu", false); member(w, "m", "other", true) }, no},
		"too few GPUs":                 {1, func(w *rcatest.World) { member(w, "n", "gpu", true); w.Asking(rcatest.List("nvidia.com/gpu", "2")) }, no},
		"instances it could be cut in": {1, func(w *rcatest.World) {
			member(w, "n", "gpu", true)
			w.Asking(rcatest.List("nvidia.com/mig-1g.5gb", "1"))
		}, maybe},
		"it advertises nothing yet": {1, func(w *rcatest.World) {
			n := member(w, "n", "gpu", true)
			delete(n.Status.Capacity, view.WholeGPU)
			delete(n.Status.Allocatable, view.WholeGPU)
		}, maybe},
		"another label": {1, func(w *rcatest.World) {
			member(w, "n", "gpu", true)
			w.Wait.Spec.NodeSelector = map[string]string{"team": "x"}
		}, no},
		"a taint":          {1, func(w *rcatest.World) { n := member(w, "n", "gpu", true); n.Spec.Taints = []corev1.Taint{taint} }, no},
		"one has GPUs":     {2, func(w *rcatest.World) { member(w, "m", "gpu", false); member(w, "n", "gpu", true) }, yes},
		"of the long name": {1, func(w *rcatest.World) { member(w, "n", "gpu", false); member(w, "m", "gpu-big", true) }, yes},
		"of the name that is not shorter": {1, func(w *rcatest.World) {
			member(w, "m", "gpu-big", true)
			member(w, "n", "gpu", false)
		}, yes},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.Asking(rcatest.List("nvidia.com/gpu", "1"))
			status(w, 0, grown("aks-gpu-big-1", tc.nodes, ""))
			tc.fill(w)
			v, done, err := view.Open(t.Context(), w.State, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer done()
			c := &Case{Cluster: v, Pod: w.Wait, Asks: view.AsksOf(w.Wait)}
			o := v.Outlook()
			if got := c.groupFit(o, &o.Status.Groups[0]); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

// Of groups at their largest size all are named that could hold the pod, with their sizes.
func TestGroupsAtTheirLargestSize(t *testing.T) {
	at := func(name string) string {
		return "- name: " + name + "\n  health: {cloudProviderTarget: 2, maxSize: 2, nodeCounts: {registered: {total: 0}}}\n"
	}
	const size, limit = "1 max node group size reached", "AutoscalerLimit likely: "
	for name, tc := range map[string]struct{ reasons, status, want string }{
		"one":                         {size, at("x/g1"), limit + "at their largest size: node group g1 (2 of 2); it suits; g1"},
		"two":                         {size, at("g1") + at("g2"), limit + "at their largest size: node group g1 (2 of 2), g2 (2 of 2)" + whichIsUnknown + "; it suits; g1; g2"},
		"one beside another reason":   {size + ", 1 something", at("g1"), limit + "at their largest size: node group g1 (2 of 2); g1"},
		"one that may grow":           {size, grown("g1", 0, ""), limit + "the cluster autoscaler may not grow: max node group size reached; it suits"},
		"nodes in all":                {"1 max total nodes in cluster reached", at("g1"), limit + "the cluster autoscaler may not grow: max total nodes in cluster reached; it suits; g1"},
		"a quota beside the size":     {"1 exceeded quota: gpus, " + size, "", limit + "the cluster autoscaler's own limits are reached (no ResourceQuota, and not the cloud's): exceeded quota: gpus; it suits"},
		"the size beside the quota":   {size + ", 1 exceeded quota: gpus", "", limit + "the cluster autoscaler's own limits are reached (no ResourceQuota, and not the cloud's): exceeded quota: gpus; it suits"},
		"a volume, and another thing": {"1 volume node affinity conflict, 1 something", "", "AutoscalerCannotHelp likely: the cluster autoscaler looked and cannot help"},
		"nothing":                     {"", "", "AutoscalerCannotHelp likely: the cluster autoscaler looked and cannot help"},
	} {
		t.Run(name, func(t *testing.T) {
			g := of(t, func(w *rcatest.World) {
				says(w, "cluster-autoscaler", "NotTriggerScaleUp", "pod didn't trigger scale-up: "+tc.reasons, 0)
				status(w, 0, tc.status)
			})
			if got := about(g); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// A cluster autoscaler before 1.14 says only that the pod wouldn't fit: then the groups are named that have their largest size and
// a machine that would hold the pod, were it fresh.
func TestTheSizeInOldWords(t *testing.T) {
	const cannot = "AutoscalerCannotHelp likely: the cluster autoscaler looked and cannot help"
	for name, tc := range map[string]struct {
		words string
		size  int
		gpu   bool
		edit  func(*corev1.Node)
		want  string
	}{
		"at its largest size":    {"it wouldn't fit if a new node is added", 3, true, nil, "AutoscalerLimit likely: at their largest size: node group g1 (3 of 3); g1"},
		"it may grow":            {"it wouldn't fit if a new node is added", 2, true, nil, cannot},
		"its machines have none": {"it wouldn't fit if a new node is added", 3, false, nil, cannot},
		"they are not for it": {"it wouldn't fit if a new node is added", 3, true, func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
		}, cannot},
		"a newer one says a thing": {"1 something", 3, true, nil, cannot},
	} {
		g := of(t, func(w *rcatest.World) {
			message := "pod didn't trigger scale-up (" + tc.words + ")"
			if !strings.HasPrefix(tc.words, "it ") {
				message = "pod didn't trigger scale-up: " + tc.words
			}
			says(w, "cluster-autoscaler", "NotTriggerScaleUp", message, 0)
			n := member(w, "g1-a", "g1", tc.gpu)
			if n.Status.Allocatable == nil {
				n.Status.Allocatable = corev1.ResourceList{}
			}
			if tc.edit != nil {
				tc.edit(n)
			}
			status(w, 0, grown("g1", tc.size, ""))
		})
		if got := about(g); got != tc.want {
			t.Errorf("%s: %s\nwant\n%s", name, got, tc.want)
		}
	}
}

// What is told of a group comes with the status's own numbers, and no others.
func TestTheStatusIsQuoted(t *testing.T) {
	const numbers = "node group gpu-grp: 1 asked of the cloud, 1 registered, 1 ready, at most 3"
	for name, tc := range map[string]struct{ status, want string }{
		"of a sound group":      {grown("gpu-grp", 1, ""), numbers},
		"of its back-off":       {grown("gpu-grp", 1, backoff("QUOTA_EXCEEDED")), numbers + "; scaleUp Backoff: QUOTA_EXCEEDED: none left"},
		"of one without a code": {grown("gpu-grp", 1, "  scaleUp: {status: NoActivity}\n"), numbers + "; scaleUp NoActivity"},
		"of nodes without GPUs": {strings.Replace(grown("gpu-grp", 1, ""), "ready: 1", "ready: 1, unready: {resourceUnready: 2}", 1), numbers + ", 2 without their GPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			g := of(t, func(w *rcatest.World) {
				says(w, "cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu-grp 0->1 (max: 3)}]", 0)
				status(w, 0, tc.status)
			})
			var got []string
			for _, f := range g.told {
				for _, e := range f.Evidence {
					got = append(got, e.Ref+": "+e.Fact)
				}
			}
			want := "Pod/a/w: TriggeredScaleUp: pod triggered scale-up: [{gpu-grp 0->1 (max: 3)}]\nConfigMap/kube-system/cluster-autoscaler-status: " + tc.want
			if strings.Join(got, "\n") != want {
				t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), want)
			}
		})
	}
}
