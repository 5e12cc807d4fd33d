package claims

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
	"github.com/unpend/unpend/watcher/incident"
)

// Who cannot prepare devices is looked at on the node, with each claim; a kubelet that is older
// than the API server serves is brought to its version, for which its pods leave.
func TestWhoPreparesDevices(t *testing.T) {
	claim := "mine"
	world := func(message string) *edittest.World {
		w := edittest.New()
		w.AddNode(sim.Node{Name: "n"})
		w.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.33.1"
		w.ResourceClaims = []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: claim, UID: "m"}}}
		w.Wait.Spec.NodeName, w.Wait.Spec.ResourceClaims = "n", []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
		w.Wait.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Reason: incident.FailedPrepare, Message: message}}
		return w
	}
	for name, tc := range map[string]struct {
		message, want string
		commands      int
		stops         bool
		phase         corev1.PodPhase
		booted        int // minutes after its kubelet took it up; 0: not at all
	}{
		"the driver fails":     {"NodePrepareResources failed", "by hand, none risk: see why the driver on n cannot prepare the devices (what the driver on the node would do next is not known)", 3, false, corev1.PodPending, 0},
		"an old kubelet's ask": {"the server could not find the requested resource", "by hand, medium risk: bring the kubelet of n (v1.33.1) to the API server's version (which versions the API server serves is in no object)", 5, true, corev1.PodPending, 0},
		"booted since":         {"NodePrepareResources failed", "by hand, low risk: make a/w again, so that its claim is prepared from the beginning: n has been started again since it was bound to it (what the driver prepares is seen when it has)", 4, false, corev1.PodPending, 1},
		"booted before":        {"NodePrepareResources failed", "by hand, none risk: see why the driver on n cannot prepare the devices (what the driver on the node would do next is not known)", 3, false, corev1.PodPending, -1},
		"it has run":           {"NodePrepareResources failed", "by hand, low risk: make a/w again, so that its claim is prepared from the beginning: it has run on n, and the driver does not prepare that once more (what the driver prepares is seen when it has)", 4, false, corev1.PodRunning, 0},
	} {
		w := world(tc.message)
		w.Wait.Status.Phase = tc.phase
		if tc.booted != 0 {
			at := metav1.NewTime(w.Now)
			w.Wait.Status.StartTime = &at
			w.Events = append(w.Events, &corev1.Event{Reason: "Rebooted", InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "n"}, LastTimestamp: metav1.NewTime(at.Add(time.Duration(tc.booted) * time.Minute))})
		}
		if tc.phase == corev1.PodRunning {
			w.Wait.Status.Conditions[0].Status = corev1.ConditionFalse
		}
		k := w.Case(t, "Pod")
		k.Unstarted = []*corev1.Pod{w.Wait}
		got := LookAtPreparation(edit.New(k))
		if len(got) != 1 || edittest.Told(got[0]) != tc.want || len(got[0].Commands) != tc.commands || got[0].StopsUnknown != tc.stops || got[0].Cause != diagnosis.DRAPrepareFailed {
			t.Errorf("%s: %+v", name, got)
		}
		if last := got[0].Commands[len(got[0].Commands)-1]; !tc.stops && !strings.HasPrefix(last, "kubectl -n a get resourceclaim mine ") {
			t.Errorf("%s: %s", name, last)
		}
	}
}

// A class that does not exist is made as its driver's chart makes it, where that driver publishes devices; else nobody here knows
// what it would take.
func TestAClassIsMissing(t *testing.T) {
	for name, tc := range map[string]struct{ class, driver, want, command string }{
		"nobody's":                {"theirs", "gpu.nvidia.com", "by hand, none risk: make DeviceClass theirs, or ask one that exists (which devices a class that does not exist would take is not known)", "kubectl get deviceclasses"},
		"no device of its driver": {"gpu.amd.com", "", "by hand, none risk: make DeviceClass gpu.amd.com, or ask one that exists (which devices a class that does not exist would take is not known)", "kubectl get deviceclasses"},
		"NVIDIA's for slices": {"mig.nvidia.com", "gpu.nvidia.com", "by hand, none risk: make DeviceClass mig.nvidia.com as its driver's chart does (whether the chart gave its class more than the driver's name and the kind of device is not known)",
			`echo '{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: mig.nvidia.com}, spec: {selectors: [{cel: {expression: "device.driver == \"gpu.nvidia.com\" && device.attributes[\"gpu.nvidia.com\"].type == \"mig\""}}]}}' | kubectl apply -f -`},
		"called as its driver": {"gpu.amd.com", "gpu.amd.com", "by hand, none risk: make DeviceClass gpu.amd.com as its driver's chart does (whether the chart gave its class more than the driver's name and the kind of device is not known)",
			`echo '{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu.amd.com}, spec: {selectors: [{cel: {expression: "device.driver == \"gpu.amd.com\""}}]}}' | kubectl apply -f -`},
	} {
		w := edittest.New()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
		if on := "n"; tc.driver != "" {
			w.ResourceSlices = []*resourcev1.ResourceSlice{{ObjectMeta: metav1.ObjectMeta{Name: "n-1"}, Spec: resourcev1.ResourceSliceSpec{Driver: tc.driver, NodeName: &on, Pool: resourcev1.ResourcePool{Name: "n", Generation: 1, ResourceSliceCount: 1}, Devices: []resourcev1.Device{{Name: "gpu-0"}}}}}
		}
		claim := "mine"
		w.ResourceClaims = []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: claim, UID: "m"}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: tc.class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}}}}
		w.Wait.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
		w.Wait.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		k := w.Case(t, "Pod")
		w.Look(t, k)
		ch := LookAtClass(edit.New(k))
		if got := edittest.Told(ch); got != tc.want || ch.Commands[0] != tc.command {
			t.Errorf("%s: %s, %q", name, got, ch.Commands)
		}
	}
}
