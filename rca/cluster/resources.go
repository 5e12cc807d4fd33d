package cluster

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	v1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// The versions of resource.k8s.io differ in what matters here: v1beta1 has the
// class right under a request and attributes under "basic". A version that is not
// known here is not read at all, rather than half.
var deviceVersions = []string{"v1", "v1beta2", "v1beta1"} // best first

// ofDevices says whether the kind is one of those of resource.k8s.io that are converted.
func (k *kind) ofDevices() bool { return k.resource.Group == resourcev1.GroupName && !k.custom }

// ClaimSpec is the spec of a claim as the cluster that the state is of would take it:
// in the newest version of resource.k8s.io that it serves.
func (s *State) ClaimSpec(spec resourcev1.ResourceClaimSpec) (apiVersion string, out any, err error) {
	switch s.DeviceVersion {
	case "v1beta1":
		old := &resourcev1beta1.ResourceClaimSpec{}
		err, out = v1beta1.Convert_v1_ResourceClaimSpec_To_v1beta1_ResourceClaimSpec(&spec, old, nil), old
	case "v1beta2":
		old := &resourcev1beta2.ResourceClaimSpec{}
		err, out = v1beta2.Convert_v1_ResourceClaimSpec_To_v1beta2_ResourceClaimSpec(&spec, old, nil), old
	default:
		return resourcev1.SchemeGroupVersion.String(), spec, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("write a claim as %s: %w", s.DeviceVersion, err)
	}
	return resourcev1.GroupName + "/" + s.DeviceVersion, out, nil
}

// readable says whether objects of the version can be read as the kind.
func (k *kind) readable(apiVersion string) bool {
	if !k.ofDevices() {
		return true
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && slices.Contains(deviceVersions, gv.Version)
}

// countable refuses claims that no API server takes and that the scheduler's code
// cannot bear: that allocates memory for as many devices as a claim asks.
func countable(o Object) error {
	var requests []resourcev1.DeviceRequest
	switch t := o.(type) {
	case *resourcev1.ResourceClaim:
		requests = t.Spec.Devices.Requests
	case *resourcev1.ResourceClaimTemplate:
		requests = t.Spec.Spec.Devices.Requests
	}
	for _, r := range requests {
		counts := []int64{}
		if r.Exactly != nil {
			counts = append(counts, r.Exactly.Count)
		}
		for _, sub := range r.FirstAvailable {
			counts = append(counts, sub.Count)
		}
		if least := slices.Min(append(counts, 0)); least < 0 {
			return fmt.Errorf("request %s asks for %d devices", r.Name, least)
		}
	}
	return nil
}

// deviceVersion chooses the version of resource.k8s.io that an API server is asked
// for: v1 is served from 1.34 on, v1beta2 from 1.33, v1beta1 from 1.32, each only
// where the server has it switched on. unread says that all it serves are
// versions that cannot be read. A server that serves none, or does not tell (nil), is
// asked for v1.
func deviceVersion(groups *metav1.APIGroupList) (version, unread string) {
	if groups == nil {
		return "v1", ""
	}
	var served []string
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			if g.Name == resourcev1.GroupName {
				served = append(served, v.Version)
			}
		}
	}
	for _, v := range deviceVersions {
		if slices.Contains(served, v) {
			return v, ""
		}
	}
	if len(served) > 0 {
		return "v1", "the API server serves " + resourcev1.GroupName + " as " + strings.Join(served, ", ") + " alone, which cannot be read"
	}
	return "v1", ""
}

// asV1 is an object of an older version of resource.k8s.io as v1; any other as it is.
func asV1(o any) (any, error) {
	switch t := o.(type) {
	case *resourcev1beta1.ResourceClaim:
		return converted(t, &resourcev1.ResourceClaim{}, v1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim)
	case *resourcev1beta1.ResourceClaimTemplate:
		return converted(t, &resourcev1.ResourceClaimTemplate{}, v1beta1.Convert_v1beta1_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	case *resourcev1beta1.ResourceSlice:
		return converted(t, &resourcev1.ResourceSlice{}, v1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice)
	case *resourcev1beta1.DeviceClass:
		return converted(t, &resourcev1.DeviceClass{}, v1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass)
	case *resourcev1beta2.ResourceClaim:
		return converted(t, &resourcev1.ResourceClaim{}, v1beta2.Convert_v1beta2_ResourceClaim_To_v1_ResourceClaim)
	case *resourcev1beta2.ResourceClaimTemplate:
		return converted(t, &resourcev1.ResourceClaimTemplate{}, v1beta2.Convert_v1beta2_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	case *resourcev1beta2.ResourceSlice:
		return converted(t, &resourcev1.ResourceSlice{}, v1beta2.Convert_v1beta2_ResourceSlice_To_v1_ResourceSlice)
	case *resourcev1beta2.DeviceClass:
		return converted(t, &resourcev1.DeviceClass{}, v1beta2.Convert_v1beta2_DeviceClass_To_v1_DeviceClass)
	}
	return o, nil
}

func converted[Old any, New Object](old Old, obj New, convert func(Old, New, conversion.Scope) error) (any, error) {
	if err := convert(old, obj, nil); err != nil {
		return nil, fmt.Errorf("read as resource.k8s.io/v1: %w", err)
	}
	return obj, nil
}

// olds makes empty objects of the older versions, by version and kind.
var olds = map[string]func() any{
	"resource.k8s.io/v1beta1 ResourceClaim":         func() any { return &resourcev1beta1.ResourceClaim{} },
	"resource.k8s.io/v1beta1 ResourceClaimTemplate": func() any { return &resourcev1beta1.ResourceClaimTemplate{} },
	"resource.k8s.io/v1beta1 ResourceSlice":         func() any { return &resourcev1beta1.ResourceSlice{} },
	"resource.k8s.io/v1beta1 DeviceClass":           func() any { return &resourcev1beta1.DeviceClass{} },
	"resource.k8s.io/v1beta2 ResourceClaim":         func() any { return &resourcev1beta2.ResourceClaim{} },
	"resource.k8s.io/v1beta2 ResourceClaimTemplate": func() any { return &resourcev1beta2.ResourceClaimTemplate{} },
	"resource.k8s.io/v1beta2 ResourceSlice":         func() any { return &resourcev1beta2.ResourceSlice{} },
	"resource.k8s.io/v1beta2 DeviceClass":           func() any { return &resourcev1beta2.DeviceClass{} },
}

// decodeOld reads an object of resource.k8s.io/v1beta1 or v1beta2 as v1; false
// for any other version.
func (k *kind) decodeOld(apiVersion string, data []byte) (Object, bool, error) {
	empty := olds[apiVersion+" "+k.name]
	if empty == nil {
		return nil, false, nil
	}
	old := empty()
	if err := json.Unmarshal(data, old); err != nil {
		return nil, true, err
	}
	o, err := asV1(old)
	if err != nil {
		return nil, true, err
	}
	return o.(Object), true, nil
}

// defaultRequests fills in what the API server would have (SetDefaults_ExactDeviceRequest
// and SetDefaults_DeviceSubRequest of resource.k8s.io/v1): a dump may hold manifests, and
// the scheduler's code knows no request without a mode.
func defaultRequests(o Object) {
	var devices *resourcev1.DeviceClaim
	switch t := o.(type) {
	case *resourcev1.ResourceClaim:
		devices = &t.Spec.Devices
	case *resourcev1.ResourceClaimTemplate:
		devices = &t.Spec.Spec.Devices
	default:
		return
	}
	for i := range devices.Requests {
		r := &devices.Requests[i]
		if r.Exactly != nil {
			defaultCount(&r.Exactly.AllocationMode, &r.Exactly.Count)
		}
		for k := range r.FirstAvailable {
			defaultCount(&r.FirstAvailable[k].AllocationMode, &r.FirstAvailable[k].Count)
		}
	}
}

func defaultCount(mode *resourcev1.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourcev1.DeviceAllocationModeExactCount
	}
	if *mode == resourcev1.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}
