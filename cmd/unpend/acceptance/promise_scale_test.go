package acceptance

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

// P15 in its short form, and with UNPEND_SOAK=1 as it is promised. Times are those of a processor:
// what else a machine does is not in them.
const (
	scaleNodes  = 50
	soakNodes   = 1_000
	scaleGPUs   = 8
	scaleEach   = 10 // pods that run on each node
	scaleMemory = 300 << 20
	// scaleWhy is what 3 s come to where one of two processors decodes what the other one reads,
	// half of the time.
	scaleWhy = 4500 * time.Millisecond
	// scaleExplain is for one diagnosis: beside the half second in which changes gather
	// (rca/fairqueue) a quarter of the two within which a change is told of.
	scaleExplain = 500 * time.Millisecond
)

// promiseP15: on a cluster of many nodes with 8 GPUs and ten running pods each the service stays
// small, and a diagnosis, all of them once a node has changed, and `unpend why -A` take no time to
// speak of.
func promiseP15(t *testing.T) {
	needsControlPlane(t)
	nodes := scaleNodes
	if soak() {
		nodes = soakNodes
	}
	c := start(t, controlplane.Extras{Alone: true})
	c.InstallCRDs(t, crds)
	s := calm(t, c)
	s.fleet(c, nodes)
	s.pods(stormOwners)
	var program []string
	if soak() {
		program = released(t)
	}
	o := observe(t, c, fmt.Sprintf("{storeDir: %s}", t.TempDir()), program...)
	o.says(t, "ok", time.Minute)
	told := func(n int) {
		controlplane.Eventually(t, 2*time.Minute, fmt.Sprintf("%d diagnoses are published", n), func() (bool, string) {
			o.lives(t)
			is := len(o.diagnoses())
			return is >= n, fmt.Sprint(is)
		})
		o.counts(t, "false", stormOwners)
	}
	told(stormOwners)
	lines := len(o.diagnoses())
	used, began := controlplane.ProcessorOf(t, o.cmd.Process.Pid), time.Now()
	taint := []byte(`{"spec":{"taints":[{"key":"team","value":"vision","effect":"NoSchedule"}]}}`)
	_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), "fleet-0000", types.StrategicMergePatchType, taint, metav1.PatchOptions{})
	must(t, err)
	told(lines + stormOwners)
	after, again := time.Since(began), controlplane.ProcessorOf(t, o.cmd.Process.Pid)-used
	now, most := controlplane.MemoryOf(t, o.cmd.Process.Pid)
	each := o.figure(t, "unpend_diagnosis_duration_seconds_sum") / o.figure(t, "unpend_diagnosis_duration_seconds_count")
	command := append(program, "unpend", "why", "-A", "-o", "json", "--kubeconfig", c.Kubeconfig())
	why := newProcess(t, nil, command[0], command[1:]...)
	began = time.Now()
	why.start(t)
	if code := why.exits(t, time.Minute); code != exitDone {
		t.Fatalf("why ended with %d", code)
	}
	took, worked := time.Since(began), why.cmd.ProcessState.UserTime()+why.cmd.ProcessState.SystemTime()
	for _, d := range o.diagnoses() {
		if d.NodeCount != nodes+calmNodes || d.Alike == "" && len(d.Fixes) == 0 {
			t.Errorf("%s: %d nodes, %d fixes", d.Headline, d.NodeCount, len(d.Fixes))
		}
	}
	report(t, countHeld(t, map[string]bool{
		fmt.Sprintf("%d MiB", most>>20):                        most <= scaleMemory,
		fmt.Sprintf("%s for one diagnosis", again/stormOwners): again/stormOwners <= scaleExplain,
		fmt.Sprintf("%s of processor time for why -A", worked): worked <= scaleWhy,
	}), 3, fmt.Sprintf("%d nodes of %d GPUs, %d running pods: RSS %d MiB, at most %d; a change of a node told of %d incidents in %.1f s, %.2f s of processor time; a diagnosis %.0f ms; why -A %.1f s, %.1f s of processor time",
		nodes, scaleGPUs, nodes*scaleEach, now>>20, most>>20, stormOwners, after.Seconds(), again.Seconds(), 1000*each, took.Seconds(), worked.Seconds()))
}

// released is what a command runs below to be that of the program as it is released: of the
// pages of a test binary a third are tests.
func released(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", folder, "../../unpend")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if says, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, says)
	}
	return []string{"env", "PATH=" + folder}
}

// fleet makes so many nodes with their reports, and pods that run on them and hold
// instances.
func (s *storm) fleet(c *controlplane.ControlPlane, nodes int) {
	s.Helper()
	reports := c.Dynamic().Resource(nodeprobe.Resource)
	inParallel(s.T, nodes, func(i int) error {
		n := sim.Node{Name: fmt.Sprintf("fleet-%04d", i), Model: a100, GPUs: scaleGPUs, Config: "all-1g.5gb"}
		for range scaleGPUs {
			n.Layouts = append(n.Layouts, sim.All(a100, "1g.5gb"))
		}
		if _, err := s.client.CoreV1().Nodes().Create(s.Context(), n.Object(time.Now()), metav1.CreateOptions{}); err != nil {
			return err
		}
		geo := n.Geometry(time.Now())
		for k := range scaleEach {
			name := fmt.Sprintf("runs-%04d-%d", i, k)
			geo.Report.GPUs[k%scaleGPUs].Instances[k/scaleGPUs].Holder = &nodeprobe.Holder{Namespace: s.ns, Pod: name, Container: "main"}
			if err := s.running(name, n.Name); err != nil {
				return err
			}
		}
		geo.Report.ObservedAt = metav1.Now() // after the pods began
		u, err := sim.Unstructured(geo)
		if err == nil {
			_, err = reports.Create(s.Context(), u, metav1.CreateOptions{})
		}
		return err
	})
}

// running makes a pod that runs on a node.
func (s *storm) running(name, node string) error {
	spec := template("1g.5gb", nil).Spec
	spec.NodeName, spec.TerminationGracePeriodSeconds = node, new(int64)
	pods := s.client.CoreV1().Pods(s.ns)
	if _, err := pods.Create(s.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "serve"}}, Spec: spec}, metav1.CreateOptions{}); err != nil {
		return err
	}
	status := fmt.Sprintf(`{"status":{"phase":"Running","startTime":%q,"conditions":[{"type":"PodScheduled","status":"True"},{"type":"Ready","status":"True"}]}}`, time.Now().UTC().Format(time.RFC3339))
	_, err := pods.Patch(s.Context(), name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	return err
}
