package kubelet

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

const (
	mineUID  = "00000000-0000-4000-8000-000000000001"
	otherUID = "00000000-0000-4000-8000-000000000002"
)

// unprepared is pod a/w on node n, which uses claim mine, with what its kubelet says.
func unprepared(w *rcatest.World, says string) []*corev1.Pod {
	node(w)
	mine := "mine"
	p := w.Wait
	p.UID, p.Spec.NodeName = "u-w", "n"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &mine}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Reason: incident.FailedPrepare, Message: "Failed to prepare dynamic resources: prepare dynamic resources: " + says}}
	w.ResourceClaims = append(w.ResourceClaims, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "mine", UID: mineUID},
		Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "other.example", Device: "gpu-7"}}}}}})
	return []*corev1.Pod{p}
}

func reserve(claim *resourcev1.ResourceClaim, name string, uid types.UID) {
	claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: name, UID: uid})
}

// A helper whose pods the API server refuses is told by the words of the last part of the refusal,
// and by who makes its ReplicaSet; of others' refusals nothing is.
func TestHelpersThatAreRefused(t *testing.T) {
	const set, refused = "mps-" + mineUID + "-44f48", `pods "x" is forbidden: `
	const scc = "unable to validate against any security context constraint: []"
	says := func(name, words string) string {
		return "it waits for d/" + name + ", whose pods the API server refuses: " + words
	}
	describe := "kubectl -n d describe replicaset " + set
	privileged := func(account string) string {
		return describe + "\noc adm policy add-scc-to-user privileged -z " + account + " -n d risk medium"
	}
	for name, tc := range map[string]struct {
		words string
		edit  func(*appsv1.ReplicaSet, *corev1.Event)
		claim func(*resourcev1.ResourceClaim)
		want  string
	}{
		"by a quota":       {words: refused + "exceeded quota: q", want: says("mps-"+mineUID, "exceeded quota: q") + "\n" + describe + " risk low"},
		"in other words":   {words: "no answer", want: says("mps-"+mineUID, "no answer") + "\n" + describe + " risk low"},
		"that nobody made": {words: refused + "no", edit: func(rs *appsv1.ReplicaSet, _ *corev1.Event) { rs.OwnerReferences = nil }, want: says(set, "no") + "\n" + describe + " risk low"},
		"by OpenShift":     {words: refused + scc, want: says("mps-"+mineUID, scc) + "\n" + privileged("default")},
		"with an account":  {words: refused + scc, edit: func(rs *appsv1.ReplicaSet, _ *corev1.Event) { rs.Spec.Template.Spec.ServiceAccountName = "mps" }, want: says("mps-"+mineUID, scc) + "\n" + privileged("mps")},
		"another claim's": {words: "no", edit: func(rs *appsv1.ReplicaSet, e *corev1.Event) {
			rs.Name = "mps-" + otherUID
			e.InvolvedObject.Name = rs.Name
		}},
		"of no claim":        {words: "no", claim: func(c *resourcev1.ResourceClaim) { c.UID = "" }},
		"its pods were made": {words: "no", edit: func(_ *appsv1.ReplicaSet, e *corev1.Event) { e.Reason = "SuccessfulCreate" }},
		"of its Deployment":  {words: "no", edit: func(_ *appsv1.ReplicaSet, e *corev1.Event) { e.InvolvedObject.Kind = "Deployment" }},
		"of another":         {words: "no", edit: func(_ *appsv1.ReplicaSet, e *corev1.Event) { e.InvolvedObject.Name = "other" }},
		"of one of its name": {words: "no", edit: func(_ *appsv1.ReplicaSet, e *corev1.Event) { e.InvolvedObject.Namespace = "other" }},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			pods := unprepared(w, "MPS control daemon is not yet ready")
			yes := true
			rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: set, OwnerReferences: []metav1.OwnerReference{{Kind: "Deployment", Name: "mps-" + mineUID, Controller: &yes}}}}
			e := &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Namespace: "d", Name: set}, Reason: "FailedCreate", Message: tc.words}
			if tc.edit != nil {
				tc.edit(rs, e)
			}
			if tc.claim != nil {
				tc.claim(w.ResourceClaims[0])
			}
			w.ReplicaSets, w.Events = append(w.ReplicaSets, rs), append(w.Events, e)
			got := ""
			if h := Hindered(view.New(w.State), pods); h != nil {
				got = h.Says + "\n" + strings.Join(h.Commands, "\n") + " risk " + string(h.Risk)
			}
			if got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// plugins gives the nodes m and n devices of a driver, and its DaemonSet a pod on each of those named; o is another.
func plugins(on ...string) func(*rcatest.World) {
	return func(w *rcatest.World) {
		if len(w.ResourceSlices) == 0 {
			for _, name := range []string{"m", "o"} {
				w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
			for _, name := range []string{"m", "n"} {
				w.ResourceSlices = append(w.ResourceSlices, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{Driver: "other.example", NodeName: &name}})
			}
		}
		ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "plugin"}}
		ds.Spec.Template.Spec.NodeSelector = map[string]string{"dra": "on"}
		w.DaemonSets = append(w.DaemonSets, ds)
		for _, name := range on {
			w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "plugin-" + name, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "plugin", Controller: new(true)}}},
				Spec: corev1.PodSpec{NodeName: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
		}
	}
}

// What stands behind the kubelet's words is told where objects show it, and not else.
func TestHindered(t *testing.T) {
	const notAllowed, held = "pod w (u-w) is not allowed to use ResourceClaim mine (" + mineUID + ")", "requested device gpu-7 is already allocated to different claim " + otherUID
	crashes := func(name string, labels map[string]string) func(*rcatest.World) {
		return func(w *rcatest.World) {
			w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: "u-d", Labels: labels}, Spec: corev1.PodSpec{NodeName: "n"},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}}})
		}
	}
	domain := map[string]string{domainLabel: "x"}
	const gone = "DRA driver other.example is not registered"
	for name, tc := range map[string]struct {
		says string
		edit func(*rcatest.World)
		want string // what is said; empty: nothing
		has  string // in its commands
	}{
		"reserved for nobody":           {says: notAllowed, want: "ResourceClaim mine is not reserved for it, but for nobody"},
		"for nobody, in older words":    {says: "pod w(u-w) is not allowed to use resource claim mine(" + mineUID + ")", want: "ResourceClaim mine is not reserved for it, but for nobody"},
		"nor is it allocated":           {says: notAllowed, edit: func(w *rcatest.World) { w.ResourceClaims[0].Status.Allocation = nil }, want: "ResourceClaim mine is neither allocated nor reserved: who gave the pod its node does not know claims", has: "--feature-gates=DynamicResourceAllocation=true"},
		"for one that is gone":          {says: notAllowed, edit: func(w *rcatest.World) { reserve(w.ResourceClaims[0], "gone", "u-g") }, want: "ResourceClaim mine is not reserved for it, but for gone, which is not there"},
		"for it, by now":                {says: notAllowed, edit: func(w *rcatest.World) { reserve(w.ResourceClaims[0], "w", "u-w") }},
		"a claim that is not there":     {says: notAllowed, edit: func(w *rcatest.World) { w.ResourceClaims = nil }},
		"claims not read":               {says: notAllowed, edit: func(w *rcatest.World) { w.Unread["ResourceClaim"] = "forbidden" }},
		"held for a claim that is gone": {says: held, want: "its driver holds device gpu-7 for a ResourceClaim that is not there any more (uid " + otherUID + ")", has: "/var/lib/kubelet/plugins/other.example/checkpoint.json"},
		"held for a claim that is there": {says: held, edit: func(w *rcatest.World) {
			w.ResourceClaims = append(w.ResourceClaims, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "theirs", UID: otherUID}})
		}, want: "its driver has device gpu-7 for ResourceClaim b/theirs"},
		"bound to another driver": {says: "error getting device handle from UUID 'GPU-1a': Not Found", edit: func(w *rcatest.World) {
			uuid := "GPU-1a"
			w.ResourceSlices = append(w.ResourceSlices, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{{Name: "other"}, {Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}}}}}})
		}, want: "NVIDIA's driver does not serve GPU-1a any more: it is bound to another driver (vfio-pci), or lost", has: "lspci -nnk"},
		"a helper of the claim":          {says: "MPS control daemon is not yet ready", edit: crashes("mps-control-daemon-"+mineUID+"-44f48-x", nil), want: "it waits for pod d/mps-control-daemon-" + mineUID + "-44f48-x, whose container c is in CrashLoopBackOff after 3 restarts"},
		"a domain's daemon":              {says: "error asserting ComputeDomain Ready", edit: crashes("cd", domain), want: "it waits for pod d/cd, whose container c is in CrashLoopBackOff after 3 restarts", has: "nvidia-imex.service"},
		"a domain's daemon, other words": {says: "no such device", edit: crashes("cd", domain)},
		"a daemon that is done": {says: "error asserting ComputeDomain Ready", edit: func(w *rcatest.World) {
			crashes("cd", domain)(w)
			w.Pods[1].Status.Phase = corev1.PodSucceeded
		}},
		"it is of the domain itself": {says: "error asserting ComputeDomain Ready", edit: func(w *rcatest.World) {
			w.Wait.Labels, w.Wait.Status.ContainerStatuses = domain, []corev1.ContainerStatus{{Name: "c"}}
		}},
		"another pod that crashes there": {says: "error asserting ComputeDomain Ready", edit: crashes("web", nil)},
		"its plugin has no pod there":    {says: gone, edit: plugins("m"), want: "DaemonSet d/plugin, which runs on the other nodes with devices of other.example, has no pod there: it selects nodes by label dra=on, which is absent", has: "kubectl label node n dra=on --overwrite"},
		"in older words":                 {says: "plugin name other.example not found in the list of registered DRA plugins", edit: plugins("m"), want: "DaemonSet d/plugin, which runs on the other nodes with devices of other.example, has no pod there: it selects nodes by label dra=on, which is absent"},
		"its plugin has one, too":        {says: gone, edit: plugins("m", "n")},
		"it is elsewhere, too":           {says: gone, edit: plugins("m", "o")},
		"it takes the node":              {says: gone, edit: func(w *rcatest.World) { plugins("m")(w); w.DaemonSets[0].Spec.Template.Spec.NodeSelector = nil }, want: "DaemonSet d/plugin, which runs on the other nodes with devices of other.example, has no pod there", has: "is its pod refused?"},
		"two are where it should be": {says: gone, edit: func(w *rcatest.World) {
			plugins("m")(w)
			plugins("m")(w)
			w.DaemonSets[1].Name = "more"
			w.Pods[2].OwnerReferences[0].Name = "more"
		}},
		"words that nothing stands behind": {says: "DRA driver gpu.nvidia.com is not registered"},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			pods := unprepared(w, tc.says)
			if tc.edit != nil {
				tc.edit(w)
			}
			h := Hindered(view.New(w.State), pods)
			if h == nil {
				h = &Hindrance{}
			}
			if h.Says != tc.want || !slices.ContainsFunc(append(h.Commands, ""), func(c string) bool { return strings.Contains(c, tc.has) }) {
				t.Errorf("%q\n%q", h.Says, h.Commands)
			}
		})
	}
}
