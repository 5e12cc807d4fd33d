package gangs

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher/incident"
)

// made has pods be made by an owner, whose kind is told by its name alone.
func made(kind, name string, pods ...*corev1.Pod) {
	yes := true
	for _, p := range pods {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: name, UID: types.UID(name), Controller: &yes}}
	}
}

// member adds a pod that runs on a node and holds GPUs, of the owner of the one that waits.
func member(w *rcatest.World, name, on, gpus string) *corev1.Pod {
	p := w.Wait.DeepCopy()
	p.Name, p.UID, p.Spec.NodeName, p.Status.Phase = name, types.UID(name), on, corev1.PodRunning
	list := rcatest.List("nvidia.com/gpu", gpus)
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	w.Pods = append(w.Pods, p)
	return p
}

// gpus adds a node with so many whole GPUs.
func gpus(w *rcatest.World, name string, count int) {
	off := make([]int, count)
	for i := range off {
		off[i] = i
	}
	w.AddNode(sim.Node{Name: name, GPUs: count, MIGOff: off}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels["kubernetes.io/hostname"] = name })
}

// waits is the workload of the pod that waits, of which so many do.
func waits(t *testing.T, w *rcatest.World, kind, name string, count int) *Workload {
	t.Helper()
	of, by := opened(t, w)
	verdict, err := of.Cluster.Snapshot.Explain(t.Context(), w.Wait)
	if err != nil {
		t.Fatal(err)
	}
	return &Workload{Subject: of, Incident: incident.Incident{Workload: incident.Ref{Kind: kind, Namespace: "a", Name: name}, Waiting: count}, Asks: view.AsksOf(w.Wait), Wants: view.PodRequests(w.Wait), Verdict: verdict, Company: terms.CompanyOf(of, by)}
}

func found(f *view.Finding) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s", f.Certainty, f.Says)
}

// What is scarce is the device that is asked, else memory or CPU that is asked and that a node has
// too little of, memory first; not on a node that something else keeps the pod from.
func TestWhatIsScarce(t *testing.T) {
	asks := []view.Ask{{Resource: "nvidia.com/gpu", Count: 2}}
	both := rcatest.List("memory", "2Gi", "cpu", "500m")
	for name, tc := range map[string]struct {
		asks    []view.Ask
		wants   corev1.ResourceList
		lacking []string // on a node
		taint   string
		want    scarce
	}{
		"a device":            {asks, both, []string{"memory"}, "", scarce{name: "nvidia.com/gpu", count: 2}},
		"memory":              {nil, both, []string{"cpu", "memory"}, "", scarce{name: "memory", count: 2 << 30, host: true}},
		"CPU":                 {nil, both, []string{"cpu"}, "", scarce{name: "cpu", count: 500, host: true}},
		"memory is not asked": {nil, rcatest.List("cpu", "500m"), []string{"cpu", "memory"}, "", scarce{name: "cpu", count: 500, host: true}},
		"there is enough":     {nil, both, nil, "", scarce{}},
		"it may not be there": {nil, both, []string{"cpu"}, "node(s) had untolerated taint {a: b}", scarce{}},
	} {
		c := &Workload{Asks: tc.asks, Wants: tc.wants, Verdict: whatif.Verdict{Nodes: []whatif.NodeVerdict{{}}}}
		for _, name := range tc.lacking {
			c.Verdict.Nodes = append(c.Verdict.Nodes, whatif.NodeVerdict{Blockers: []whatif.Blocker{{Plugin: "NodeResourcesFit", Reason: "Insufficient " + name}}})
		}
		if tc.taint != "" {
			last := &c.Verdict.Nodes[len(c.Verdict.Nodes)-1]
			last.Blockers = append(last.Blockers, whatif.Blocker{Plugin: "TaintToleration", Reason: tc.taint})
		}
		got := scarce{}
		if s := c.scarce(); s != nil {
			got = *s
		}
		if got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}

// Members wait for each other in vain where those that run hold what the others need, and there
// is no more of it on the nodes that they may use, also if everybody else left.
func TestMembersThatWaitInVain(t *testing.T) {
	const vain = ": its own workload holds what it waits for: all members ask for %d nvidia.com/gpu together, the nodes that they may use have %d, and no member ends before all run"
	says := func(certainty string, asks, have int) string { return certainty + fmt.Sprintf(vain, asks, have) }
	for name, tc := range map[string]struct {
		kind  string
		count int // that wait
		asks  string
		fill  func(*rcatest.World)
		want  string
	}{
		"all is theirs": {"PyTorchJob", 1, "2", func(w *rcatest.World) { gpus(w, "n", 2); member(w, "m", "n", "2") }, says("proven", 4, 2)},
		"several wait":  {"PyTorchJob", 3, "2", func(w *rcatest.World) { gpus(w, "n", 2); member(w, "m", "n", "2") }, says("proven", 8, 2)},
		"room for one of two, beside who asks none": {"PyTorchJob", 2, "2", func(w *rcatest.World) {
			gpus(w, "n", 4)
			member(w, "m", "n", "2")
			w.AddHolder("x", "n", "cpu", 0)
		}, says("proven", 6, 4)},
		"how many is not said":     {"PyTorchJob", 0, "2", func(w *rcatest.World) { gpus(w, "n", 2); member(w, "m", "n", "2") }, says("proven", 4, 2)},
		"of a kind that may begin": {"RayCluster", 1, "2", func(w *rcatest.World) { gpus(w, "n", 2); member(w, "m", "n", "2") }, says("likely", 4, 2)},
		"with its group's name":    {"PyTorchJob.kubeflow.org", 1, "2", func(w *rcatest.World) { gpus(w, "n", 2); member(w, "m", "n", "2") }, says("proven", 4, 2)},
		"of a kind that does not":  {"CronJob", 1, "2", func(w *rcatest.World) { gpus(w, "n", 2); member(w, "m", "n", "2") }, ""},
		"pods were not all read":   {"PyTorchJob", 1, "2", func(w *rcatest.World) { gpus(w, "n", 2); member(w, "m", "n", "2"); w.Unread["Pod"] = "x" }, says("likely", 4, 2)},
		"no device is asked":       {"PyTorchJob", 1, "", func(w *rcatest.World) { gpus(w, "n", 2); member(w, "m", "n", "2") }, ""},
		"none of them runs":        {"PyTorchJob", 1, "2", func(w *rcatest.World) { gpus(w, "n", 1) }, ""},
		"who runs holds none":      {"PyTorchJob", 1, "2", func(w *rcatest.World) { gpus(w, "n", 1); member(w, "m", "n", "0") }, ""},
		"another holds the rest": {"PyTorchJob", 1, "2", func(w *rcatest.World) {
			gpus(w, "n", 4)
			member(w, "m", "n", "2")
			w.AddHolder("x", "n", "nvidia.com/gpu", 0)
		}, ""},
		"too little is another's": {"PyTorchJob", 1, "2", func(w *rcatest.World) {
			gpus(w, "n", 3)
			member(w, "m", "n", "2")
			w.AddHolder("x", "n", "nvidia.com/gpu", 0)
		}, says("proven", 4, 3)},
		"others hold room for one": {"PyTorchJob", 2, "2", func(w *rcatest.World) {
			gpus(w, "n", 4)
			member(w, "m", "n", "2")
			w.AddHolder("x", "n", "nvidia.com/gpu", 0)
		}, ""},
		"nobody else holds any":   {"PyTorchJob", 2, "2", func(w *rcatest.World) { gpus(w, "n", 4); member(w, "m", "n", "2") }, says("proven", 6, 4)},
		"there is room for all":   {"PyTorchJob", 2, "2", func(w *rcatest.World) { gpus(w, "n", 6); member(w, "m", "n", "2") }, ""},
		"no node is large enough": {"PyTorchJob", 1, "4", func(w *rcatest.World) { gpus(w, "n", 2); gpus(w, "o", 2); member(w, "m", "n", "2") }, ""},
		"on two nodes": {"PyTorchJob", 1, "2", func(w *rcatest.World) {
			gpus(w, "n", 2)
			gpus(w, "o", 3)
			member(w, "m", "n", "2")
			member(w, "k", "o", "2")
		}, says("proven", 6, 5)},
		"a node that it may not use": {"PyTorchJob", 1, "2", func(w *rcatest.World) {
			gpus(w, "n", 2)
			gpus(w, "o", 8)
			w.Nodes[1].Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
			member(w, "m", "n", "2")
		}, says("proven", 4, 2)},
		"more than it has is held": {"PyTorchJob", 1, "2", func(w *rcatest.World) {
			gpus(w, "n", 2)
			gpus(w, "o", 2)
			member(w, "m", "n", "4")
			member(w, "k", "o", "2")
		}, says("proven", 8, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			made(tc.kind, "train", w.Wait)
			if tc.asks != "" {
				w.Asking(rcatest.List("nvidia.com/gpu", tc.asks))
			}
			tc.fill(w)
			c := waits(t, w, tc.kind, "train", tc.count)
			f := c.Deadlock()
			if got := found(f); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
			if f != nil && (f.Evidence[len(f.Evidence)-1].Fact != "waits for "+tc.asks+" nvidia.com/gpu" || f.Evidence[0].Ref != "Pod/a/m" || !strings.HasPrefix(f.Evidence[0].Fact, "runs on n, holds ")) {
				t.Errorf("%+v", f.Evidence)
			}
		})
	}
}

// Of a Job the members wait for each other where they are several, each with an index, and find
// each other by name; Volcano's is told by its API.
func TestWhichJobsMeet(t *testing.T) {
	indexed, not, two, one := batchv1.IndexedCompletion, batchv1.NonIndexedCompletion, int32(2), int32(1)
	for name, tc := range map[string]struct {
		mode      *batchv1.CompletionMode
		parallel  *int32
		subdomain string
		want      bool
	}{
		"they meet":               {&indexed, &two, "train", true},
		"independent":             {&indexed, &two, "", false},
		"without an index":        {&not, &two, "train", false},
		"no mode":                 {nil, &two, "train", false},
		"one after the other":     {&indexed, &one, "train", false},
		"how many is not written": {&indexed, nil, "train", false},
	} {
		w := rcatest.NewWorld()
		made("Job", "train", w.Wait)
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train", UID: "train"}, Spec: batchv1.JobSpec{CompletionMode: tc.mode, Parallelism: tc.parallel}}
		j.Spec.Template.Spec.Subdomain = tc.subdomain
		w.Jobs = []*batchv1.Job{j}
		if certainty, meet := waits(t, w, "Job", "train", 1).membersWait(); meet != tc.want || meet && certainty != "likely" {
			t.Errorf("%s: %v, %s", name, meet, certainty)
		}
	}
	for kind, edit := range map[string]func(*corev1.Pod){"Job": func(p *corev1.Pod) { p.OwnerReferences[0].APIVersion = "batch.volcano.sh/v1alpha1" }, "Pod": nil, "Job.batch": nil, "Flow.batch.volcano.sh": nil} {
		w := rcatest.NewWorld()
		made("Job", "train", w.Wait)
		if edit != nil {
			edit(w.Wait)
		}
		if certainty, meet := waits(t, w, kind, "train", 1).membersWait(); meet != (edit != nil) || meet && certainty != "likely" {
			t.Errorf("%s: %v, %s", kind, meet, certainty)
		}
	}
}

// A rollout waits for itself where its pod is of a new template, old ones run, and none of them
// stops first.
func TestARolloutWaitsForItself(t *testing.T) {
	const holds = "proven: its rollout makes a new pod before it stops an old one (%s), and its old pods hold what the new one waits for: 2 of 2 nvidia.com/gpu"
	const apart = "its rollout makes a new pod before it stops an old one (maxUnavailable is not set, and the default share of 2 is none), its pods have to be apart, and an old one stands on the only node that would take the new one"
	const port = "its rollout makes a new pod before it stops an old one (maxUnavailable is not set, and the default share of 2 is none), two of its pods cannot have host port 80 on one node, and an old one stands on the only node that would take the new one"
	ported := func(w *rcatest.World) {
		w.Nodes = nil
		gpus(w, "n", 4)
		for _, p := range w.Pods {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
		}
	}
	none, some, third := intstr.FromInt32(0), intstr.FromString("50%"), intstr.FromString("33%")
	beside := func(w *rcatest.World) {
		w.Nodes = nil
		gpus(w, "n", 4)
		term := []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}, TopologyKey: "kubernetes.io/hostname"}}
		for _, p := range w.Pods {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term}}
		}
	}
	for name, tc := range map[string]struct {
		edit func(*appsv1.Deployment)
		fill func(*rcatest.World)
		want string
	}{
		"none may stop":           {func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = &none }, nil, fmt.Sprintf(holds, "maxUnavailable is 0")},
		"a third of two":          {func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = &third }, nil, fmt.Sprintf(holds, "maxUnavailable 33% of 2 is none")},
		"half may":                {func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate.MaxUnavailable = &some }, nil, ""},
		"a quarter of two":        {func(*appsv1.Deployment) {}, nil, fmt.Sprintf(holds, "maxUnavailable is not set, and the default share of 2 is none")},
		"a quarter, by default":   {func(d *appsv1.Deployment) { d.Spec.Strategy.RollingUpdate = nil }, nil, fmt.Sprintf(holds, "maxUnavailable is not set, and the default share of 2 is none")},
		"a quarter of four":       {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(4)) }, nil, ""},
		"of one, by default":      {func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, nil, fmt.Sprintf(holds, "maxUnavailable is not set, and the default share of 1 is none")},
		"all stop first":          {func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType }, nil, ""},
		"it is paused":            {func(d *appsv1.Deployment) { d.Spec.Paused = true }, nil, ""},
		"who runs is new as well": {func(*appsv1.Deployment) {}, func(w *rcatest.World) { made("ReplicaSet", "new", w.Pods[1]) }, ""},
		"who waits is nobody's":   {func(*appsv1.Deployment) {}, func(w *rcatest.World) { w.Wait.OwnerReferences = nil }, ""},
		"they have to be apart":   {func(*appsv1.Deployment) {}, beside, "proven: " + apart},
		"apart, and pods unread":  {func(*appsv1.Deployment) {}, func(w *rcatest.World) { beside(w); w.Unread["Pod"] = "x" }, "likely: " + apart},
		"apart from another, too": {func(*appsv1.Deployment) {}, func(w *rcatest.World) { beside(w); w.AddHolder("x", "n", "cpu", 0).Labels["app"] = "w" }, ""},
		"apart, and beside one that is gone": {func(*appsv1.Deployment) {}, func(w *rcatest.World) {
			beside(w)
			w.Wait.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "gone"}}, TopologyKey: "kubernetes.io/hostname"}}}
		}, ""},
		"apart, with no room beside": {func(*appsv1.Deployment) {}, func(w *rcatest.World) {
			beside(w)
			gpus(w, "o", 1)
		}, "proven: " + apart},
		"by a port of the host": {func(*appsv1.Deployment) {}, ported, "proven: " + port},
		"by a port that another has too": {func(*appsv1.Deployment) {}, func(w *rcatest.World) {
			ported(w)
			other := w.AddHolder("x", "n", "cpu", 0)
			other.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 81}}
			w.Wait.Spec.Containers[0].Ports = append(w.Wait.Spec.Containers[0].Ports, corev1.ContainerPort{HostPort: 81})
		}, ""},
		"apart, and another node has no such pod": {func(*appsv1.Deployment) {}, func(w *rcatest.World) {
			beside(w)
			gpus(w, "o", 2)
			w.Wait.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "gone"}}, TopologyKey: "kubernetes.io/hostname"}}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			gpus(w, "n", 2)
			w.Asking(rcatest.List("nvidia.com/gpu", "2"))
			made("ReplicaSet", "new", w.Wait)
			made("ReplicaSet", "old", member(w, "m", "n", "2"))
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "serve", UID: "serve"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)), Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{}}}}
			tc.edit(d)
			w.Deployments = []*appsv1.Deployment{d}
			yes := true
			for _, rs := range []string{"old", "new"} {
				w.ReplicaSets = append(w.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: rs, UID: types.UID(rs), OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "serve", UID: "serve", Controller: &yes}}}})
			}
			if tc.fill != nil {
				tc.fill(w)
			}
			if got := found(waits(t, w, "Deployment", "serve", 1).Deadlock()); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// A DaemonSet whose rollout makes the new pod of a node first waits for its old one's port; one that stops the old
// first does not.
func TestASurgeOfDaemons(t *testing.T) {
	some, none := intstr.FromString("50%"), intstr.FromInt32(0)
	for name, tc := range map[string]struct {
		rolling *appsv1.RollingUpdateDaemonSet
		want    string
	}{
		"by default":   {nil, ""},
		"none is more": {&appsv1.RollingUpdateDaemonSet{MaxSurge: &none}, ""},
		"half are":     {&appsv1.RollingUpdateDaemonSet{MaxSurge: &some}, "proven: its rollout makes a new pod before it stops an old one (maxSurge is 50%), two of its pods cannot have host port 80 on one node, and an old one stands on the only node that would take the new one"},
	} {
		w := rcatest.NewWorld()
		gpus(w, "n", 4)
		w.Asking(rcatest.List("nvidia.com/gpu", "2"))
		made("DaemonSet", "relay", w.Wait, member(w, "m", "n", "2"))
		for _, p := range w.Pods {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
		}
		w.DaemonSets = []*appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "relay", UID: "relay"}, Spec: appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{RollingUpdate: tc.rolling}}}}
		if got := found(waits(t, w, "DaemonSet", "relay", 1).Deadlock()); got != tc.want {
			t.Errorf("%s: %s\nwant\n%s", name, got, tc.want)
		}
	}
}

// Members that have to be apart wait for places, not for a rollout of their own.
func TestOnlyRolloutsStandInTheirOwnWay(t *testing.T) {
	w := rcatest.NewWorld()
	gpus(w, "n", 4)
	w.Asking(rcatest.List("nvidia.com/gpu", "2"))
	made("PyTorchJob", "train", w.Wait, member(w, "m", "n", "2"))
	for _, p := range w.Pods {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "w"}}, TopologyKey: "kubernetes.io/hostname"}}}}
	}
	if got := found(waits(t, w, "PyTorchJob", "train", 1).Deadlock()); got != "" {
		t.Error(got)
	}
}

// Workloads that each hold a part of what they need wait for each other; one whose members work
// comes to its end.
func TestWorkloadsThatWaitForEachOther(t *testing.T) {
	const both = "likely: a and b each hold a part of the nvidia.com/gpu that their members need and wait for the rest, and none of them ends before its members run"
	for name, tc := range map[string]struct {
		fill func(*rcatest.World)
		want string
	}{
		"both wait": {func(w *rcatest.World) {
			made("SparkApplication", "b", member(w, "b-driver", "n", "1"), waiting(w, "b-exec"))
		}, both},
		"the other has all that it needs": {func(w *rcatest.World) { made("SparkApplication", "b", member(w, "b-driver", "n", "1")) }, ""},
		"the other works with fewer": {func(w *rcatest.World) {
			works := member(w, "b-exec-1", "n", "1")
			works.Labels = map[string]string{"spark-role": "executor"}
			made("SparkApplication", "b", works, waiting(w, "b-exec-2"))
		}, ""},
		"the other is of a kind that ends": {func(w *rcatest.World) { made("CronJob", "b", member(w, "b-1", "n", "1"), waiting(w, "b-2")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := rcatest.NewWorld()
			w.Asking(rcatest.List("nvidia.com/gpu", "1"))
			gpus(w, "n", 2)
			made("SparkApplication", "a", w.Wait, member(w, "a-driver", "n", "1"))
			tc.fill(w)
			if got := found(waits(t, w, "SparkApplication", "a", 1).Deadlock()); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// waiting adds a pod like the one that waits.
func waiting(w *rcatest.World, name string) *corev1.Pod {
	p := w.Wait.DeepCopy()
	p.Name, p.UID = name, types.UID(name)
	w.Pods = append(w.Pods, p)
	return p
}
