package live

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/testdata/controlplane"
)

// deviceObjects are one object of each kind, as v1 and v1beta2 have them, and as
// v1beta1 does.
func deviceObjects(version string) map[string]string {
	request, device := `{"name":"gpu","exactly":{"deviceClassName":"gpu","allocationMode":"ExactCount","count":2}}`, `{"name":"gpu-0","attributes":{"type":{"string":"gpu"}},"capacity":{"memory":{"value":"40Gi"}}}`
	if version == "v1beta1" {
		request, device = `{"name":"gpu","deviceClassName":"gpu","allocationMode":"ExactCount","count":2}`, `{"name":"gpu-0","basic":{"attributes":{"type":{"string":"gpu"}},"capacity":{"memory":{"value":"40Gi"}}}}`
	}
	spec := `{"devices":{"requests":[` + request + `]}}`
	return map[string]string{
		"resourceclaims":         `{"metadata":{"namespace":"default","name":"train"},"kind":"ResourceClaim","spec":` + spec + `}`,
		"resourceclaimtemplates": `{"metadata":{"namespace":"default","name":"train"},"kind":"ResourceClaimTemplate","spec":{"spec":` + spec + `}}`,
		"deviceclasses":          `{"metadata":{"name":"gpu"},"kind":"DeviceClass","spec":{"selectors":[{"cel":{"expression":"device.driver == 'gpu.example.com'"}}]}}`,
		"resourceslices":         `{"metadata":{"name":"gpu-1"},"kind":"ResourceSlice","spec":{"driver":"gpu.example.com","nodeName":"gpu-1","pool":{"name":"gpu-1","generation":1,"resourceSliceCount":1},"devices":[` + device + `]}}`,
	}
}

// Whatever version of devices an API server serves, what is read is v1, kept up to
// date, and a claim can be written back as the server takes it.
func TestOlderVersionsOfDevicesLive(t *testing.T) {
	only := func(version string) controlplane.Extras {
		x := controlplane.Extras{APIs: []string{"resource.k8s.io/" + version}, Alone: true}
		for _, v := range cluster.DeviceVersions {
			if v != version {
				x.Off = append(x.Off, "resource.k8s.io/"+v)
			}
		}
		return x
	}
	for _, version := range cluster.DeviceVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // it waits for a control plane of its own
			c := controlplane.StartWith(t, only(version))
			for resource, text := range deviceObjects(version) {
				serve(t, c, version, resource, text)
			}
			f, err := Follow(t.Context(), c.Client(), c.Dynamic(), time.Now)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			st := f.State(t.Context())
			for _, kind := range []string{"ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"} {
				if why := st.Unread[kind]; why != "" {
					t.Errorf("%s is unread: %s", kind, why)
				}
			}
			if len(st.ResourceClaims) != 1 || len(st.ClaimTemplates) != 1 || len(st.DeviceClasses) != 1 || len(st.ResourceSlices) != 1 || st.DeviceVersion != version {
				t.Fatalf("read %s: %d claims, %d templates, %d classes, %d slices", st.DeviceVersion, len(st.ResourceClaims), len(st.ClaimTemplates), len(st.DeviceClasses), len(st.ResourceSlices))
			}
			want := []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2}}}
			if got := st.ResourceClaims[0].Spec.Devices.Requests; !reflect.DeepEqual(got, want) {
				t.Errorf("claim asks %+v", got)
			}
			if got := st.ClaimTemplates[0].Spec.Spec.Devices.Requests; !reflect.DeepEqual(got, want) {
				t.Errorf("template asks %+v", got)
			}
			d := st.ResourceSlices[0].Spec.Devices[0]
			if q := d.Capacity["memory"].Value; q.String() != "40Gi" || *d.Attributes["type"].StringValue != "gpu" || *st.ResourceSlices[0].Spec.NodeName != "gpu-1" {
				t.Errorf("device %+v", d)
			}
			if got := st.DeviceClasses[0].Spec.Selectors[0].CEL.Expression; got != "device.driver == 'gpu.example.com'" {
				t.Errorf("class selects %q", got)
			}
			again(t, c, st)
			controlplane.Eventually(t, 10*time.Second, "the new claim is read", func() (bool, string) {
				st := f.State(t.Context())
				return len(st.ResourceClaims) == 2 && reflect.DeepEqual(st.ResourceClaims[0].Spec, st.ResourceClaims[1].Spec), "not there"
			})
		})
	}
}

// again writes the spec of the claim that was read as another claim.
func again(t *testing.T, c *controlplane.ControlPlane, st *cluster.State) {
	t.Helper()
	apiVersion, spec, err := st.ClaimSpec(st.ResourceClaims[0].Spec)
	if err != nil || apiVersion != "resource.k8s.io/"+st.DeviceVersion {
		t.Fatalf("%s, %v", apiVersion, err)
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"namespace": "default", "name": "train-again"}, "kind": "ResourceClaim", "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, c, st.DeviceVersion, "resourceclaims", string(text))
}

func serve(t *testing.T, c *controlplane.ControlPlane, version, resource, text string) {
	t.Helper()
	var u unstructured.Unstructured
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetAPIVersion("resource.k8s.io/" + version)
	gvr := schema.GroupVersionResource{Group: "resource.k8s.io", Version: version, Resource: resource}
	if _, err := c.Dynamic().Resource(gvr).Namespace(u.GetNamespace()).Create(t.Context(), &u, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
		t.Fatal(err)
	}
}

// A server that serves versions nobody here knows is said to; the rest is read.
func TestUnknownVersionsOfDevicesAreNamed(t *testing.T) {
	c := smallCluster()
	c.Resources = append(c.Resources, &metav1.APIResourceList{GroupVersion: "resource.k8s.io/v1alpha3"}, &metav1.APIResourceList{GroupVersion: "resource.k8s.io/v2"})
	s := read(t, c, "")
	for _, kind := range []string{"ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "ResourceSlice"} {
		if got := s.Unread[kind]; got != "the API server serves resource.k8s.io as v1alpha3, v2 alone, which cannot be read" {
			t.Errorf("%s: %q", kind, got)
		}
	}
	if len(s.Pods) != 2 || len(s.Unread) != 5 || slices.ContainsFunc(s.Pods, func(p *corev1.Pod) bool { return p == nil }) {
		t.Errorf("pods %v, unread %v", s.Pods, s.Unread)
	}
	for _, a := range c.Actions() {
		if a.GetResource().Group == "resource.k8s.io" {
			t.Errorf("%s %s was asked", a.GetVerb(), a.GetResource())
		}
	}
}
