package whatif

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const draPlugin = "DynamicResources"

// gpus is a class, and a slice of whole GPUs on a node.
func gpus(node string, count int) []runtime.Object {
	spec := resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1}}
	for i := range count {
		spec.Devices = append(spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i)})
	}
	extended := "nvidia.com/gpu"
	return []runtime.Object{
		&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: spec},
		&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.nvidia.com"}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &extended}},
	}
}

// claim asks for one GPU; holder, if any, has gpu-0 of the node.
func claim(name, node, device, holder string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "gpu.nvidia.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	if holder != "" {
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpu", Driver: "gpu.nvidia.com", Pool: node, Device: device}}}}
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: holder, UID: "u"}}
	}
	return c
}

func claiming(name, claim string) *corev1.Pod {
	p := pod(name, 1, 0)
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	return p
}

func TestForksFreeAndTakeDevices(t *testing.T) {
	holder := on(claiming("holder", "held"), "a")
	second, third := claiming("second", "second"), claiming("third", "third")
	s := snapshot(t, Objects{Nodes: []*corev1.Node{node("a", 8, 0)}, Pods: []*corev1.Pod{holder},
		Others: append(gpus("a", 1), claim("held", "a", "gpu-0", "holder"), claim("second", "", "", ""), claim("third", "", "", ""))})
	fits := func(s *Snapshot, p *corev1.Pod, want ...string) {
		t.Helper()
		got, err := s.Fits(t.Context(), p)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s fits %v, want %v; %v", p.Name, got, want, err)
		}
	}
	fits(s, second)
	err := Try(s, func(s *Snapshot) error {
		s.DeletePod("ml", "holder")
		fits(s, second, "a")
		err := Try(s, func(s *Snapshot) error {
			if at, err := s.Place(t.Context(), second); at != "a" || err != nil {
				t.Errorf("placed on %q, %v", at, err)
			}
			fits(s, third)
			return nil
		})
		fits(s, third, "a") // and what the inner fork took is free again
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fits(s, second)
	_ = Try(s, func(s *Snapshot) error {
		if err := s.FreeDevices(); err != nil {
			t.Error(err)
		}
		if got, err := s.AllowedBy(t.Context(), draPlugin, second, []string{"a", "b"}); err != nil || !slices.Equal(got, []string{"a"}) {
			t.Errorf("allowed on %v, %v", got, err)
		}
		return nil
	})
	if got, err := s.AllowedBy(t.Context(), draPlugin, second, []string{"a"}); err != nil || got != nil {
		t.Errorf("after the fork allowed on %v, %v", got, err)
	}
}

func TestForksChangeClaims(t *testing.T) {
	asks := claim("asks", "", "", "")
	asks.Spec.Devices.Requests[0].Exactly.Count = 2
	s := snapshot(t, Objects{Nodes: []*corev1.Node{node("a", 8, 0)}, Others: append(gpus("a", 1), asks)})
	p := claiming("waiting", "asks")
	if got, _ := s.Fits(t.Context(), p); got != nil {
		t.Errorf("two GPUs of one: fits %v", got)
	}
	_ = Try(s, func(s *Snapshot) error {
		fewer := asks.DeepCopy()
		fewer.Spec.Devices.Requests[0].Exactly.Count = 1
		if err := s.SetClaim(fewer); err != nil {
			t.Error(err)
		}
		if got, _ := s.Fits(t.Context(), p); !slices.Equal(got, []string{"a"}) {
			t.Errorf("one GPU of one: fits %v", got)
		}
		if err := s.SetClaim(claim("nobody", "", "", "")); err == nil {
			t.Error("a claim that does not exist was set")
		}
		return nil
	})
	if got, _ := s.Fits(t.Context(), p); got != nil {
		t.Errorf("after the fork: fits %v", got)
	}
}

// An extended resource that a class stands behind is looked for among devices,
// and set aside like them.
func TestExtendedResourcesAreDevices(t *testing.T) {
	asking := func(name string) *corev1.Pod {
		p := pod(name, 1, 0)
		p.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"] = *node("x", 1, 1).Status.Allocatable.Cpu()
		return p
	}
	s := snapshot(t, Objects{Nodes: []*corev1.Node{node("a", 8, 0)}, Others: gpus("a", 1)})
	_ = Try(s, func(s *Snapshot) error {
		if at, err := s.Place(t.Context(), asking("one")); at != "a" || err != nil {
			t.Errorf("placed on %q, %v", at, err)
		}
		if v := explain(t, s, asking("two")); v.Nodes[0].Blockers == nil || v.Nodes[0].Blockers[0].Plugin != draPlugin {
			t.Errorf("the second GPU of one: %+v", v)
		}
		return nil
	})
	if v := explain(t, s, asking("two")); v.Nodes[0].Blockers != nil {
		t.Errorf("after the fork: %+v", v)
	}
}
