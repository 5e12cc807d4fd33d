package mend

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// MIG manager gets through once who holds the GPUs has left; where no pod does, what runs on the
// host is ended; at last the node is booted.
func TestWhatUnsticksMIGManager(t *testing.T) {
	for name, tc := range map[string]struct {
		held  bool
		cause diagnosis.CauseID
		want  string
		last  int // minutes of the first
	}{
		"a pod holds some": {true, diagnosis.MIGConfigFailed, "by hand, medium risk: have a/h leave n, then MIG manager try again (what MIG manager makes of it no copy can show); by hand, high risk: reboot n, or reset its GPUs (a reboot cannot be tried on a copy)", 5},
		"no pod does":      {false, diagnosis.MIGConfigFailed, "by hand, medium risk: end what else uses the GPUs of n, then have MIG manager try again (no pod holds its GPUs, and what runs on the host is in no object); by hand, high risk: reboot n, or reset its GPUs (a reboot cannot be tried on a copy)", 5},
		"it is stuck":      {false, diagnosis.MIGConfigStuck, "by hand, medium risk: end what else uses the GPUs of n, then have MIG manager try again (no pod holds its GPUs, and what runs on the host is in no object); by hand, high risk: reboot n, or reset its GPUs (a reboot cannot be tried on a copy)", 10},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Laid("all-1g.5gb", "failed", func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { n.Labels["nvidia.com/gpu.deploy.dcgm"] = view.Paused })
			if tc.held {
				w.AddHolder("h", "n", "nvidia.com/mig-1g.5gb", 0)
			}
			c := w.bench(t)
			all := Unstick(c, c.Node("n"), tc.cause)
			if got := edittest.ToldAll(all); got != tc.want || all[0].Minutes != tc.last {
				t.Errorf("%s in %d, want %s", got, all[0].Minutes, tc.want)
			}
			if all[0].Detail != nil {
				all[0].Detail(&all[0])
			}
			text := strings.Join(all[0].Commands, "\n")
			if !strings.Contains(text, "nvidia.com/gpu.deploy.dcgm=true --overwrite") || strings.Contains(text, "kubectl uncordon n") != tc.held || len(all[0].Drained) > 0 != tc.held {
				t.Errorf("%s", text)
			}
		})
	}
}

// Who was told to leave and has not is named first, with what makes it go.
func TestWhoKeepsMIGManagerWaiting(t *testing.T) {
	w := newWorld()
	w.Laid("all-1g.5gb", "pending", func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		n.Labels["nvidia.com/gpu.deploy.dcgm-exporter"] = view.Paused
	})
	yes, at := true, metav1.NewTime(rcatest.Noon.Add(-time.Hour))
	w.Pods = append(w.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "e", UID: "e", DeletionTimestamp: &at, Finalizers: []string{"x/y"}, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "nvidia-dcgm-exporter", Controller: &yes}}}, Spec: corev1.PodSpec{NodeName: "n"}})
	c := w.bench(t)
	all := Unstick(c, c.Node("n"), diagnosis.MIGConfigStuck)
	all[0].Detail(&all[0])
	text := strings.Join(all[0].Commands, "\n")
	if all[0].Title != "have g/e be gone from n: MIG manager waits for that" || len(all[0].Drained) != 1 || !strings.Contains(text, "kubectl -n g delete pod e --grace-period=0 --force") || !strings.Contains(text, `{"finalizers":null}}'  # x/y`) {
		t.Errorf("%s: %s", all[0].Title, text)
	}
}

// Where a reset may not be had, what holds the GPUs is not what keeps their MIG mode: a reboot switches it.
func TestAModeThatARebootSwitches(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		held   bool
		title  string
		boots  string
	}{
		"it is to be off":  {"all-disabled", false, "switch the MIG mode of n off by a reboot: in a virtual machine its GPUs may take it no other way", "chroot /host nvidia-smi -mig 0"},
		"it is as it was":  {"all-2g.10gb", false, "end what else uses the GPUs of n, then have MIG manager try again", ""},
		"a pod holds some": {"all-disabled", true, "have a/h leave n, then MIG manager try again", ""},
	} {
		w := newWorld()
		w.Laid(tc.config, "failed", func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.Labels["feature.node.kubernetes.io/cpu-cpuid.HYPERVISOR"] = "true"
		})
		if tc.held {
			w.AddHolder("h", "n", "nvidia.com/mig-1g.5gb", 0)
		}
		c := w.bench(t)
		all := Unstick(c, c.Node("n"), diagnosis.MIGConfigFailed)
		if all[0].Title != tc.title || !strings.Contains(strings.Join(all[0].Commands, "\n"), tc.boots) || (len(all) == 1) != (tc.boots != "") {
			t.Errorf("%s: %s, %q", name, edittest.ToldAll(all), all[0].Commands)
		}
	}
}

// A profile that drivers spell otherwise is looked up where nobody reports the driver's names,
// and no pod is in MIG manager's way.
func TestWhichNameTheDriverKnows(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		fill   func(*world)
		want   string
	}{
		"half a board":     {"all-3g.20gb", func(w *world) { delete(w.Geometries, "n") }, "by hand, low risk: see by which name the driver of n knows 3g.20gb, and have an entry of its own say that (no NodeGeometry of n tells the names of its driver)"},
		"less than half":   {"all-2g.10gb", func(w *world) { delete(w.Geometries, "n") }, ""},
		"it is reported":   {"all-3g.20gb", func(*world) {}, ""},
		"a pod is there":   {"all-3g.20gb", func(w *world) { w.AddHolder("h", "n", "nvidia.com/mig-1g.5gb", 0); delete(w.Geometries, "n") }, ""},
		"no entry of that": {"mine", func(w *world) { delete(w.Geometries, "n") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Laid(tc.config, "failed")
			tc.fill(w)
			c := w.bench(t)
			if got := edittest.ToldAll(Respell(c, c.Node("n"))); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
	for driver, first := range map[string]bool{"true": true, "pre-installed": false} { // a machine's own driver has the host's clients
		w := newWorld()
		w.Laid("all-3g.20gb", "failed")
		delete(w.Geometries, "n")
		w.Nodes[0].Labels[stack.DeployDriver] = driver
		c := w.bench(t)
		if name, host := Respell(c, c.Node("n"))[0], endHostClients(c.Node("n"), diagnosis.MIGConfigFailed); (name.Minutes <= host.Minutes) != first {
			t.Errorf("driver %s: %d min to look at names, %d at the host", driver, name.Minutes, host.Minutes)
		}
	}
}

// On a node that MIG manager has failed on, another layout is doubted where nobody is in its way
// and nobody leaves for it.
func TestWhenALayoutIsDoubted(t *testing.T) {
	w := newWorld()
	w.Laid("all-1g.5gb", "failed")
	n := w.bench(t).Node("n")
	failed, victim := []diagnosis.CauseID{diagnosis.MIGFull, diagnosis.MIGConfigFailed}, []*corev1.Pod{w.Wait}
	if Doubtful(n, failed, nil) == "" || Doubtful(n, failed, victim) != "" || Doubtful(n, failed[:1], nil) != "" {
		t.Errorf("%q, %q, %q", Doubtful(n, failed, nil), Doubtful(n, failed, victim), Doubtful(n, failed[:1], nil))
	}
	for id, want := range map[diagnosis.CauseID]bool{diagnosis.MIGConfigFailed: true, diagnosis.MIGConfigStuck: true, diagnosis.MIGConfigInProgress: true, diagnosis.MIGModePending: true,
		diagnosis.MIGConfigUnknown: true, diagnosis.MIGConfigInvalidForGPU: true, diagnosis.MIGLayoutDrift: true, diagnosis.MIGFull: false, diagnosis.MIGLayoutMismatch: false} {
		if Unsettled(id) != want {
			t.Errorf("%s: %v", id, !want)
		}
	}
}
