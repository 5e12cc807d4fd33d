package claims

import (
	"strings"
	"testing"

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
	}{
		"the driver fails":     {"NodePrepareResources failed", "by hand, none risk: see why the driver on n cannot prepare the devices (what the driver on the node would do next is not known)", 3, false},
		"an old kubelet's ask": {"the server could not find the requested resource", "by hand, medium risk: bring the kubelet of n (v1.33.1) to the API server's version (which versions the API server serves is in no object)", 5, true},
	} {
		w := world(tc.message)
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

// A class that does not exist is made, or another asked for, where nobody here knows whose it is.
func TestAClassIsMissing(t *testing.T) {
	w := edittest.New()
	w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
	claim := "mine"
	w.ResourceClaims = []*resourcev1.ResourceClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: claim, UID: "m"}, Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "theirs", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}}}}}
	w.Wait.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	w.Wait.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	k := w.Case(t, "Pod")
	w.Look(t, k)
	ch := LookAtClass(edit.New(k))
	if got := edittest.Told(ch); got != "by hand, none risk: make DeviceClass theirs, or ask one that exists (which devices a class that does not exist would take is not known)" || strings.Join(ch.Commands, "; ") != "kubectl get deviceclasses; kubectl get deviceclass theirs" {
		t.Errorf("%s, %q", got, ch.Commands)
	}
}
