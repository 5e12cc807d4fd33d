package dump

import (
	"reflect"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// A manifest in a dump is read as the API server would have stored it.
func TestRequestsOfManifestsGetTheirDefaults(t *testing.T) {
	s := fromText(t, `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {namespace: ml, name: one}
spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}, {name: b, exactly: {deviceClassName: gpu, allocationMode: All}}]}}
---
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {namespace: ml, name: old}
spec: {devices: {requests: [{name: a, deviceClassName: gpu, count: 2}]}}
---
apiVersion: resource.k8s.io/v1beta2
kind: ResourceClaimTemplate
metadata: {namespace: ml, name: template}
spec: {spec: {devices: {requests: [{name: a, firstAvailable: [{name: x, deviceClassName: gpu}]}]}}}
`)
	exactly := func(claim *resourcev1.ResourceClaim) []resourcev1.ExactDeviceRequest {
		var out []resourcev1.ExactDeviceRequest
		for _, r := range claim.Spec.Devices.Requests {
			out = append(out, *r.Exactly)
		}
		return out
	}
	got := map[string][]resourcev1.ExactDeviceRequest{}
	for _, claim := range s.ResourceClaims {
		got[claim.Name] = exactly(claim)
	}
	want := map[string][]resourcev1.ExactDeviceRequest{
		"one": {{DeviceClassName: "gpu", AllocationMode: "ExactCount", Count: 1}, {DeviceClassName: "gpu", AllocationMode: "All"}},
		"old": {{DeviceClassName: "gpu", AllocationMode: "ExactCount", Count: 2}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("claims %+v, want %+v", got, want)
	}
	sub := s.ClaimTemplates[0].Spec.Spec.Devices.Requests[0].FirstAvailable[0]
	if sub.AllocationMode != "ExactCount" || sub.Count != 1 {
		t.Errorf("of the template %+v", sub)
	}
}
