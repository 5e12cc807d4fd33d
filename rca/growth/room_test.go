package growth

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/scaling"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// What keeps each machine of a pool from having room, whatever its size, is told before that none is large
// enough: a DaemonSet that takes the devices, the disk of its node class, shares that nobody counts.
func TestRoomThatNoTypeHas(t *testing.T) {
	const room = "AutoscalerCannotHelp likely: no instance type of NodePool gpu has room for what the pod asks for at once ("
	tooFew := func(w *rcatest.World) {
		says(w, "karpenter", "FailedScheduling", `Failed to schedule pod, incompatible with nodepool "gpu", no instance type has enough resources`, 0)
	}
	class := func(w *rcatest.World, kind string) {
		w.NodePools = append(w.NodePools, object(t, "{metadata: {name: gpu}, spec: {template: {spec: {taints: [{key: team, effect: NoSchedule}], nodeClassRef: {kind: "+kind+", name: c}, requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [g6]}]}}}}"))
		w.Wait.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		tooFew(w)
	}
	daemon := func(w *rcatest.World, gpus string, of func(*corev1.PodSpec)) {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "test"}}
		d.Spec.Template.Spec = corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: rcatest.List("nvidia.com/gpu", gpus)}}}}
		of(&d.Spec.Template.Spec)
		w.DaemonSets = append(w.DaemonSets, d)
	}
	same := func(*corev1.PodSpec) {}
	takes := func(w *rcatest.World, types ...any) {
		spec := w.NodePools[0].Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		spec["requirements"] = []any{map[string]any{"key": corev1.LabelInstanceTypeStable, "operator": "In", "values": types}}
	}
	disk := func(w *rcatest.World, asks string) {
		class(w, "EC2NodeClass")
		list := rcatest.List("nvidia.com/gpu", "1")
		list[corev1.ResourceEphemeralStorage] = rcatest.List("x", asks)["x"]
		w.Asking(list)
		w.NodeClasses.AWS = append(w.NodeClasses.AWS, object(t, "{metadata: {name: c}, spec: {amiFamily: AL2023}}"))
	}
	shares := func(w *rcatest.World, asks, counted, offers string) {
		class(w, "EC2NodeClass")
		w.Asking(rcatest.List("nvidia.com/gpu", asks))
		w.NodeClaims = append(w.NodeClaims, object(t, "{metadata: {name: gpu-abcde, labels: {karpenter.sh/nodepool: gpu}}, status: {nodeName: n1, capacity: {nvidia.com/gpu: "+counted+"}, conditions: [{type: Launched, status: 'True'}, {type: Registered, status: 'True'}, {type: Initialized, status: 'True'}]}}"))
		w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Capacity: rcatest.List("nvidia.com/gpu", offers), Allocatable: rcatest.List("nvidia.com/gpu", offers)}})
	}
	const counts = "AutoscalerCannotHelp likely: Karpenter counts 1 nvidia.com/gpu on a machine of NodePool gpu such as n1, which offers 4: shares are made on the node, and no instance type speaks of them"
	run(t, map[string]row{
		"huge pages": {func(w *rcatest.World) {
			class(w, "EC2NodeClass")
			list := rcatest.List("nvidia.com/gpu", "1")
			list["hugepages-2Mi"] = rcatest.List("x", "1Gi")["x"]
			w.Asking(list)
		}, "AutoscalerCannotHelp likely: Karpenter knows no machine with hugepages-2Mi: the kernel of a machine sets them aside, and no instance type speaks of them"},
		"a DaemonSet takes it": {func(w *rcatest.World) { class(w, "EC2NodeClass"); daemon(w, "1", same) }, "AutoscalerCannotHelp likely: no machine of NodePool gpu has 1 nvidia.com/gpu beside what DaemonSets take of each: DaemonSet ops/test takes 1 nvidia.com/gpu"},
		"it is not for those nodes": {func(w *rcatest.World) {
			class(w, "EC2NodeClass")
			daemon(w, "1", func(s *corev1.PodSpec) { s.Tolerations = nil })
		}, room + "1 nvidia.com/gpu with what DaemonSets take)"},
		"it takes none": {func(w *rcatest.World) { class(w, "EC2NodeClass"); daemon(w, "0", same) }, room + "1 nvidia.com/gpu with what DaemonSets take)"},
		"the disk":      {func(w *rcatest.World) { disk(w, "18Gi") }, "AutoscalerCannotHelp likely: EC2NodeClass c gives each machine of NodePool gpu, whatever its type, a disk of Karpenter's default size for the files of pods, and the pod asks for 18Gi ephemeral-storage"},
		"the disk, as it says": {func(w *rcatest.World) {
			disk(w, "50Gi")
			w.NodeClasses.AWS = []*unstructured.Unstructured{object(t, "{metadata: {name: c}, spec: {amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 50Gi}}]}}")}
		}, "AutoscalerCannotHelp likely: EC2NodeClass c gives each machine of NodePool gpu, whatever its type, a disk of 50Gi for the files of pods, and the pod asks for 50Gi ephemeral-storage"},
		"a disk that holds it":   {func(w *rcatest.World) { disk(w, "17Gi") }, room + "1 nvidia.com/gpu with 17Gi ephemeral-storage, and what DaemonSets take)"},
		"shares":                 {func(w *rcatest.World) { shares(w, "2", "1", "4") }, counts},
		"as many as are offered": {func(w *rcatest.World) { shares(w, "4", "1", "4") }, counts},
		"more than are offered":  {func(w *rcatest.World) { shares(w, "5", "1", "4") }, room + "5 nvidia.com/gpu with what DaemonSets take)"},
		"as many as are counted": {func(w *rcatest.World) { shares(w, "2", "2", "4") }, room + "2 nvidia.com/gpu with what DaemonSets take)"},
		"of a provider that may not count": {func(w *rcatest.World) { class(w, "OtherNodeClass") },
			room + "1 nvidia.com/gpu with what DaemonSets take); whether OtherNodeClass, by which its machines are made, has Karpenter count their nvidia.com/gpu shows nowhere"},
		"parts of GPUs": {func(w *rcatest.World) {
			class(w, "EC2NodeClass")
			takes(w, "g6f.xlarge", "g6f.2xlarge")
		}, "AutoscalerCannotHelp likely: NodePool gpu takes machines with a part of a GPU alone (g6f.xlarge, g6f.2xlarge), which EC2 does not count, and by that Karpenter goes: for it none of them offers nvidia.com/gpu"},
		"some are whole": {func(w *rcatest.World) {
			class(w, "EC2NodeClass")
			takes(w, "g6f.xlarge", "g6.xlarge")
		}, room + "1 nvidia.com/gpu with what DaemonSets take)"},
		"of one that has": {func(w *rcatest.World) {
			shares(w, "3", "2", "2")
			w.NodePools = nil
			class(w, "OtherNodeClass")
		}, room + "3 nvidia.com/gpu with what DaemonSets take)"},
	})
}

// The fresh machine that Karpenter should be told of would take the pod, or more is wrong.
func TestSharesThatWouldDo(t *testing.T) {
	for want, cpu := range map[bool]string{true: "1", false: "3"} {
		g := of(t, func(w *rcatest.World) {
			w.NodePools = append(w.NodePools, object(t, "{metadata: {name: gpu}, spec: {limits: {nvidia.com/gpu: 8}}}"))
			says(w, "karpenter", "FailedScheduling", `incompatible with nodepool "gpu", no instance type has enough resources`, 0)
			list := rcatest.List("nvidia.com/gpu", "2")
			list["cpu"] = rcatest.List("x", cpu)["x"]
			w.Asking(list)
			w.NodeClaims = append(w.NodeClaims, object(t, "{metadata: {name: gpu-abcde, labels: {karpenter.sh/nodepool: gpu}}, status: {nodeName: n1, capacity: {nvidia.com/gpu: 1}, conditions: [{type: Launched, status: 'True'}, {type: Registered, status: 'True'}, {type: Initialized, status: 'True'}]}}"))
			has := rcatest.List("nvidia.com/gpu", "4")
			has["cpu"] = rcatest.List("x", "2")["x"]
			w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Capacity: has, Allocatable: has}})
		})
		if g.Shares == nil || g.Like != want || g.Lacks != "nvidia.com/gpu" {
			t.Errorf("cpu %s: %+v", cpu, g)
		}
	}
}

// What a group lacks whose nodes are there is not what one at zero lacks; machines that are too small are
// told with the largest of them.
func TestWhatGroupsLack(t *testing.T) {
	const none = "pod didn't trigger scale-up: "
	const zero = "- name: eks-gpu-1\n  health: {status: Healthy, cloudProviderTarget: 0, maxSize: 3}\n"
	node := func(w *rcatest.World, name, of, cpu, disk string) {
		list := rcatest.List("cpu", cpu)
		list[corev1.ResourceEphemeralStorage] = rcatest.List("x", disk)["x"]
		w.Nodes = append(w.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"agentpool": of}}, Status: corev1.NodeStatus{Capacity: list, Allocatable: list}})
	}
	at := func(w *rcatest.World, reasons, groups string) {
		status(w, 0, groups)
		says(w, scaling.ClusterAutoscaler, "NotTriggerScaleUp", none+reasons, 0)
	}
	asks := func(w *rcatest.World, device bool) {
		list := rcatest.List("cpu", "8")
		list[corev1.ResourceEphemeralStorage] = rcatest.List("x", "80Gi")["x"]
		if device {
			list["nvidia.com/gpu"] = rcatest.List("x", "1")["x"]
		}
		w.Asking(list)
	}
	const disk = "AutoscalerCannotHelp likely: a fresh node of a group at zero (eks-gpu-1), as the cluster autoscaler knows it, has not the 80Gi ephemeral-storage that the pod asks for: it knows no more of it than its template says"
	const device = "AutoscalerCannotHelp likely: no fresh node of any group, as the cluster autoscaler knows them, has the nvidia.com/gpu that the pod asks for (%d Insufficient nvidia.com/gpu); of a group at zero (eks-gpu-1) it knows no more than its template says"
	run(t, map[string]row{
		"the disk of the one at zero": {func(w *rcatest.World) {
			asks(w, true)
			node(w, "s", "system", "8", "90Gi")
			at(w, "1 Insufficient ephemeral-storage, 1 Insufficient nvidia.com/gpu", grown("aks-system-1", 1, "")+zero)
		}, disk},
		"the device of both": {func(w *rcatest.World) {
			asks(w, true)
			node(w, "s", "system", "8", "90Gi")
			at(w, "2 Insufficient nvidia.com/gpu", grown("aks-system-1", 1, "")+zero)
		}, strings.Replace(device, "%d", "2", 1)},
		"of a group that the pod may not use": {func(w *rcatest.World) {
			asks(w, true)
			node(w, "s", "system", "8", "90Gi")
			w.Nodes[0].Spec.Taints = []corev1.Taint{{Key: "own", Effect: corev1.TaintEffectNoSchedule}}
			at(w, "1 node(s) had untolerated taint {own: }, 1 Insufficient nvidia.com/gpu", grown("aks-system-1", 1, "")+zero)
		}, strings.Replace(device, "%d", "1", 1)},
		"machines that are too small": {func(w *rcatest.World) {
			asks(w, false)
			node(w, "s", "system", "7", "90Gi")
			node(w, "m", "more", "7500m", "90Gi")
			at(w, "2 Insufficient cpu", grown("aks-system-1", 1, "")+grown("aks-more-1", 1, ""))
		}, "AutoscalerCannotHelp likely: no fresh node of node group aks-system-1, aks-more-1 has the 8 cpu that the pod asks for: one such as m has 7500m, for the pods of DaemonSets too"},
		"nobody knows of what": {func(w *rcatest.World) { asks(w, false); at(w, "1 Insufficient cpu", "") }, "AutoscalerCannotHelp likely: no fresh node of any group has room for what the pod asks for at once"},
	})
	g := of(t, func(w *rcatest.World) {
		asks(w, false)
		node(w, "s", "system", "7", "90Gi")
		at(w, "1 Insufficient cpu", grown("aks-system-1", 1, ""))
	})
	if len(g.Small) != 1 || g.Small[0] != "cpu" || g.Roomiest == nil || g.Lacks != "" || len(g.Groups) != 1 {
		t.Errorf("%+v", g)
	}
}

// Where no NodePool has an instance type left those are named that say so; of one pod's requirements no pool
// is told.
func TestNoTypeLeft(t *testing.T) {
	const all, own = "nodepool requirements filtered out all available instance types", "no instance type met all requirements"
	const left = "AutoscalerCannotHelp likely: no NodePool that Karpenter looks at has an instance type left, whatever a pod asks"
	const end = ": what they require leaves none, or the cloud has none of them now"
	silent := func(w *rcatest.World, text string) {
		w.NodePools = append(w.NodePools, object(t, "{metadata: {name: gpu}}"), object(t, "{metadata: {name: more}}"))
		says(w, "karpenter", "FailedScheduling", "Failed to schedule pod, "+text, 0)
	}
	says1 := func(w *rcatest.World, pool, by, reason string) {
		w.Events = append(w.Events, &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "NodePool", Name: pool}, Reason: reason, Message: "none", ReportingController: by})
	}
	run(t, map[string]row{
		"of pools that say so": {func(w *rcatest.World) {
			silent(w, all)
			says1(w, "gpu", "karpenter", "NoCompatibleInstanceTypes")
			says1(w, "more", "karpenter", "NoCompatibleInstanceTypes")
		}, left + " (gpu, more)" + end},
		"one says so":    {func(w *rcatest.World) { silent(w, all); says1(w, "more", "karpenter", "NoCompatibleInstanceTypes") }, left + " (more)" + end},
		"another's word": {func(w *rcatest.World) { silent(w, all); says1(w, "gpu", "somebody", "NoCompatibleInstanceTypes") }, left + end},
		"another word":   {func(w *rcatest.World) { silent(w, all); says1(w, "gpu", "karpenter", "DisruptionBlocked") }, left + end},
		"for this pod":   {func(w *rcatest.World) { silent(w, own); says1(w, "gpu", "karpenter", "NoCompatibleInstanceTypes") }, "AutoscalerCannotHelp likely: Karpenter knows no instance type that meets what pod and NodePool require: " + own},
	})
}

// Another group that could hold the pod and may grow is one whose nodes are there; not one that is full, is
// left alone, or is what it is about.
func TestGroupsToSpare(t *testing.T) {
	names := func(fill func(*rcatest.World)) string {
		g := of(t, func(w *rcatest.World) {
			says(w, scaling.ClusterAutoscaler, "TriggeredScaleUp", "pod triggered scale-up: [{aks-gpu-1 0->1 (max: 3)}]", 0)
			fill(w)
		})
		var out []string
		for _, s := range g.Spare() {
			out = append(out, s.Name)
		}
		return strings.Join(out, " ")
	}
	const about = "- name: aks-gpu-1\n  health: {status: Healthy, cloudProviderTarget: 1, maxSize: 3}\n"
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		want string
	}{
		"it has such nodes": {func(w *rcatest.World) { member(w, "n", "more", true); status(w, 0, about+grown("aks-more-1", 1, "")) }, "aks-more-1"},
		"of no GPU": {func(w *rcatest.World) {
			member(w, "n", "more", false)
			member(w, "g", "x", true)
			status(w, 0, about+grown("aks-more-1", 1, ""))
		}, ""},
		"none is seen": {func(w *rcatest.World) { member(w, "n", "x", true); status(w, 0, about+grown("aks-more-1", 1, "")) }, ""},
		"it is full":   {func(w *rcatest.World) { member(w, "n", "more", true); status(w, 0, about+grown("aks-more-1", 3, "")) }, ""},
		"it is left alone": {func(w *rcatest.World) {
			member(w, "n", "more", true)
			status(w, 0, about+grown("aks-more-1", 1, backoff("QUOTA_EXCEEDED")))
		}, ""},
		"it is that one": {func(w *rcatest.World) { member(w, "n", "gpu", true); status(w, 0, grown("aks-gpu-1", 1, "")) }, ""},
	} {
		if got := names(tc.fill); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if (&Growth{}).Spare() != nil {
		t.Error("of a pod that has a node")
	}
}
