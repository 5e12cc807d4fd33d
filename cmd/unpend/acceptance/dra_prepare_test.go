package acceptance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// unprepared is a running pod's claim on a node whose kubelet cannot prepare it.
func (w *draWorld) unprepared(pod string) *corev1.Pod {
	w.held(pod, "gpu-1", "gpu-0")
	p := w.objects[len(w.objects)-1].(*corev1.Pod)
	p.OwnerReferences, p.Status.Phase = nil, corev1.PodPending
	w.add(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: pod + ".1"}, Reason: incident.FailedPrepare, Type: corev1.EventTypeWarning, Source: corev1.EventSource{Component: "kubelet"},
		Message:        "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed for ResourceClaim " + pod + ": error preparing devices:\n GPU is lost",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "demo", Name: pod, UID: p.UID}})
	return p
}

// The scheduler is done with such a pod: of no node a blocker is told. That its claim
// has gone since is told beside it.
func TestUnpreparedDevicesBlockNoNode(t *testing.T) {
	for name, c := range map[string]struct {
		build func(w *draWorld)
		want  []diagnosis.CauseID
	}{
		"one node":      {func(*draWorld) {}, []diagnosis.CauseID{diagnosis.DRAPrepareFailed}},
		"beside others": {func(w *draWorld) { w.node("gpu-2"); w.devices("gpu-2", gpuDevice(0, "40Gi")) }, []diagnosis.CauseID{diagnosis.DRAPrepareFailed}},
		"its claim is gone": {func(w *draWorld) {
			w.unread = []string{"ResourceSlice"}
			w.objects = slices.Delete(w.objects, len(w.objects)-3, len(w.objects)-2)
		}, []diagnosis.CauseID{diagnosis.DRAClaimMissing, diagnosis.DRAPrepareFailed}},
	} {
		t.Run(name, func(t *testing.T) {
			w := draCluster(t)
			w.node("gpu-1")
			w.devices("gpu-1", gpuDevice(0, "40Gi"))
			w.unprepared("train")
			c.build(w)
			d := why(t, "-f", w.dump())
			var got []diagnosis.CauseID
			for _, cause := range d.Causes {
				got = append(got, cause.ID)
			}
			i := slices.IndexFunc(d.Causes, func(cause diagnosis.Cause) bool { return cause.ID == diagnosis.DRAPrepareFailed })
			if !slices.Equal(got, c.want) || d.Causes[i].Certainty != diagnosis.Proven ||
				d.Causes[i].Says != "the kubelet of gpu-1 could not prepare its devices: NodePrepareResources failed for ResourceClaim train: error preparing devices: GPU is lost" {
				t.Errorf("causes %+v, want %v", d.Causes, c.want)
			}
			for _, n := range d.Nodes {
				if len(n.Blockers) > 0 {
					t.Errorf("%s: %+v", n.Name, n.Blockers)
				}
			}
			if len(d.Fixes) != 1 || d.Fixes[0].Kind != diagnosis.Manual || d.Fixes[0].Automatic || d.Fixes[0].Proof.Verdict != diagnosis.Unproven {
				t.Errorf("fixes %+v", d.Fixes)
			}
		})
	}
}

// Of a Job of which one pod has a node and no devices, and another no node, both are
// told. The first is not evicted for the second, which is of the same Job.
func TestUnpreparedBesideWaiting(t *testing.T) {
	w := draCluster(t)
	w.node("gpu-1")
	w.devices("gpu-1", gpuDevice(0, "40Gi"))
	w.claim("more", draDriver, 1)
	yes := true
	for _, p := range []*corev1.Pod{w.unprepared("a"), w.waiting("more")} {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "j", Controller: &yes}}
	}
	d := why(t, "-f", w.dump())
	if d.Pods.Waiting != 2 || len(d.Causes) != 2 || d.Causes[0].ID != diagnosis.DRADevicesInUse || d.Causes[1].ID != diagnosis.DRAPrepareFailed || len(d.Causes[1].Nodes) != 0 {
		t.Errorf("%d wait: %+v", d.Pods.Waiting, d.Causes)
	}
	if len(d.Nodes) != 1 || len(d.Nodes[0].Blockers) != 1 || d.Nodes[0].Blockers[0].Cause != diagnosis.DRADevicesInUse {
		t.Errorf("nodes %+v", d.Nodes)
	}
	for _, f := range d.Fixes {
		if len(f.Cost.Evictions) > 0 || f.Kind == diagnosis.EvictPods {
			t.Errorf("fix %s %q: %+v", f.Kind, f.Title, f.Cost)
		}
	}
}

// What a kubelet says alone makes an incident of a bound pod, on a real API server, be it in an event or in
// the state of a container; that the pod runs resolves it.
func TestPodsThatAreNotBegunLive(t *testing.T) {
	gpu := map[string]string{"nvidia.com/gpu": "1"}
	for scenario, k := range map[string]struct {
		pod, reason string
		asks        map[string]string
	}{
		"DRAPrepareFailed":                        {"train", incident.FailedPrepare, map[string]string{}},
		"RuntimeNotConfigured-pod-of-a-user":      {"bench", incident.FailedSandbox, gpu},
		"RuntimeNotConfigured-cdi-device-unknown": {"example", incident.FailedContainer, gpu},
	} {
		t.Run(scenario, func(t *testing.T) {
			needsControlPlane(t)
			st, err := dump.Read([]string{filepath.Join(scenarios, scenario)}, nil)
			must(t, err)
			c := start(t, controlplane.Extras{})
			r := &replay{c: c, st: st, shift: time.Since(st.Now)}
			h := listen(t, c)
			r.make(t)
			id := incident.ID(incident.Ref{Kind: "Pod", Namespace: "ml", Name: k.pod}, k.asks)
			controlplane.Eventually(t, 20*time.Second, "the watcher tells it", func() (bool, string) {
				i, ok := h.last(id)
				return ok && !i.Resolved && i.Waiting == 1 && len(i.Pods) == 1 && i.Pods[0].Reason == k.reason, fmt.Sprintf("%+v", i)
			})
			pods := c.Client().CoreV1().Pods("ml")
			p, err := pods.Get(t.Context(), k.pod, metav1.GetOptions{})
			must(t, err)
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodRunning, nil
			for _, k := range p.Spec.Containers {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: k.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
			}
			_, err = pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
			must(t, err)
			controlplane.Eventually(t, 20*time.Second, "it is resolved", func() (bool, string) {
				i, ok := h.last(id)
				return ok && i.Resolved, fmt.Sprintf("%+v", i)
			})
			if code, out, errs := call(t, "why", "-A", "--kubeconfig", c.Kubeconfig()); code != 0 || strings.TrimSpace(out) != "" || !strings.Contains(errs, "Nothing waits") {
				t.Errorf("exit %d: %s%s", code, out, errs)
			}
		})
	}
}
