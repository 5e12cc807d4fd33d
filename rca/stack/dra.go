package stack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// DRA is why NVIDIA's DRA driver offers no GPU anywhere, as its DaemonSet shows.
type DRA struct {
	Certainty diagnosis.Certainty
	Says      string             // completes "no ResourceSlice of driver gpu.nvidia.com exists: …"
	Evidence  diagnosis.Evidence // without a reference where it is about the whole cluster
	Title     string
	Commands  []string
	Stops     []*corev1.Pod // who is made again for it
}

// gpusContainer is the half of the driver's kubelet plugin that offers GPUs; the other offers
// compute domains (kubernetes-sigs/dra-driver-nvidia-gpu, chart).
const gpusContainer = "gpus"

// draInit is the init container of the driver's kubelet plugin: it ends once the libraries of the
// node's driver are found.
const draInit = "init-container"

// driverRoot is where a node has its driver, with what that goes by.
func (s *Stack) driverRoot(n *view.Node) string {
	switch {
	case n.Labels[view.LabelGKE] != "":
		return "/home/kubernetes/bin/nvidia  # where GKE installs the driver; /run/nvidia/driver where the GPU Operator does"
	case s.kit.Pod(n, parts.Driver) != nil:
		return "/run/nvidia/driver  # where a container installs the driver; / where the machine has it"
	}
	return "/  # where the machine has the driver, by the lines of its log; /run/nvidia/driver where a container installs it"
}

// chartDRA is its chart, which is named as the release and its namespace are by default.
const chartDRA = "dra-driver-nvidia-gpu"

// switchOn are the commands that have a driver offer GPUs which it leaves out; no device plugin may offer them, too.
func switchOn(s *Stack, d *parts.Set) []string {
	on := d.Upgrade(chartDRA) + "--set resources.gpus.enabled=true --set gpuResourcesEnabledOverride=true"
	if len(s.kit.Sets(parts.Plugin)) > 0 || slices.ContainsFunc(s.w.SortedNodes(), func(n *view.Node) bool { return n.PluginPod() != nil || n.Allocatable(view.WholeGPU) > 0 }) {
		return []string{"# take the device plugin off those nodes first: else the same GPU is offered twice", on}
	}
	return []string{on}
}

// DRADriver is what is the matter with the driver that offers GPUs, on a node or, where nothing is seen there or on is nil, on the
// first that it does not serve; nil where DaemonSets were not read, where the driver asked for is another, and where nothing is wrong to be seen.
func (s *Stack) DRADriver(asked string, on *view.Node) *DRA {
	if asked != draDriver || s.notSeen() != "" {
		return nil
	}
	sets := s.kit.Sets(parts.DRADriver)
	if len(sets) == 0 {
		return &DRA{diagnosis.Proven, "NVIDIA's DRA driver is not installed", diagnosis.Evidence{Fact: "no DaemonSet of the cluster is NVIDIA's DRA driver", Claims: []diagnosis.Claim{diagnosis.That("spec.template.spec.containers", "", diagnosis.ContainsNot, "compute-domains").Of("DaemonSet/*")}}, "install NVIDIA's DRA driver",
			[]string{"helm repo add nvidia https://helm.ngc.nvidia.com/nvidia && helm repo update", (*parts.Set)(nil).Upgrade(chartDRA) + "--set resources.gpus.enabled=true --set gpuResourcesEnabledOverride=true"}, nil}
	}
	d := sets[0]
	if !slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == gpusContainer }) {
		return &DRA{diagnosis.Proven, "NVIDIA's DRA driver runs with its GPUs switched off", diagnosis.Fact(d.Ref(), "has no container "+gpusContainer, diagnosis.That("spec.template.spec.containers[name="+gpusContainer+"]", "", diagnosis.Absent, "")), "switch the GPUs of NVIDIA's DRA driver on",
			switchOn(s, d), d.Rolled(s.w)}
	}
	var first *DRA
	for _, n := range s.w.SortedNodes() {
		if len(n.Hardware()) == 0 || on != nil && on != n && first != nil {
			continue
		}
		dra := draOn(s, d, n)
		if dra != nil && (on == nil || on == n) {
			return dra
		}
		first = cmp.Or(first, dra)
	}
	return first
}

// draTime is for how long the driver's kubelet plugin may start (its chart's startup probe).
const draTime = 10 * time.Minute

// draOn is what is the matter with the driver on one node.
func draOn(s *Stack, d *parts.Set, n *view.Node) *DRA {
	if pod := s.kit.Pod(n, parts.DRADriver); pod != nil {
		if l := s.kit.Look(pod); l.State != "" {
			return draUnready(s, d, n, pod, l)
		}
		return nil
	}
	if m := d.Misses(n); !m.None() {
		mend := s.letOn(n, d, m, "")
		return &DRA{diagnosis.Proven, fmt.Sprintf("its DaemonSet does not run on %s: %s", n.Name, d.Text(n, m)), diagnosis.Fact(d.Ref(), d.Text(n, m), d.Claims(n, m)...), mend.Title, mend.Commands, mend.Stops}
	}
	if e := s.kit.Refused(d); e != nil {
		mend := admit(n, d, e.Message, "")
		return &DRA{diagnosis.Proven, "the API server refuses its pods: " + view.Quotable(afterColon(e.Message), maxWords), diagnosis.Fact(d.Ref(), "FailedCreate: "+view.Quotable(e.Message, 240), diagnosis.Says(e.Message)), mend.Title, mend.Commands, mend.Stops}
	}
	return nil
}

// draUnready: the driver's pod is there, and still starts, or fails.
func draUnready(s *Stack, d *parts.Set, n *view.Node, pod *corev1.Pod, l parts.Look) *DRA {
	fact := diagnosis.Fact(podRef(pod), l.Text(), l.Claims...)
	if took := s.since(l.Since); l.State == parts.Starting && !l.Loops && took < draTime {
		return &DRA{s.aged(), fmt.Sprintf("the driver's pod on %s is starting, which may take %s: %s", n.Name, view.Age(draTime), l.Text()), fact,
			fmt.Sprintf("wait until NVIDIA's DRA driver on %s has started, normally within %d min", n.Name, max(1, int((draTime-took).Minutes()))),
			[]string{fmt.Sprintf("kubectl -n %s get pod %s -w", pod.Namespace, pod.Name)}, nil}
	}
	dra := &DRA{diagnosis.Proven, fmt.Sprintf("the driver's pod on %s is not ready: %s", n.Name, l.Text()), fact, "mend NVIDIA's DRA driver on " + n.Name,
		[]string{strings.TrimSpace(fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50%s", pod.Namespace, pod.Name, l.Before()))}, nil}
	if awaits := l.Where == draInit && l.State == parts.Waiting; awaits || parts.FindsNoDriver(l.Words) {
		dra.Commands, dra.Stops = append(dra.Commands, d.Upgrade(chartDRA)+"--set nvidiaDriverRoot="+s.driverRoot(n)), d.Rolled(s.w)
		dra.Title = "point NVIDIA's DRA driver at where the driver of " + n.Name + " is (nvidiaDriverRoot)"
		if awaits {
			dra.Says += ": it waits until it finds nvidia-smi and libnvidia-ml below its nvidiaDriverRoot"
		}
	}
	return dra
}
