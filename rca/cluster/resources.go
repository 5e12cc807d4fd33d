package cluster

import (
	"encoding/json"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	v1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// DeviceVersions are those of resource.k8s.io that can be read, the best first. They differ in
// what matters here: v1beta1 has the class right under a request and attributes under "basic".
// A version that is not known here is not read at all, rather than half.
var DeviceVersions = []string{"v1", "v1beta2", "v1beta1"}

// OfDevices says whether the kind is one of those of resource.k8s.io that are converted.
func (k *Kind) OfDevices() bool { return k.Resource.Group == resourcev1.GroupName && !k.Custom }

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

// Readable says whether objects of the version can be read as the kind.
func (k *Kind) Readable(apiVersion string) bool {
	if !k.OfDevices() {
		return true
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && slices.Contains(DeviceVersions, gv.Version)
}

// AsV1 is an object of an older version of resource.k8s.io as v1; any other as it is.
func AsV1(o any) (any, error) {
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
func (k *Kind) decodeOld(apiVersion string, data []byte) (Object, bool, error) {
	empty := olds[apiVersion+" "+k.Name]
	if empty == nil {
		return nil, false, nil
	}
	old := empty()
	if err := json.Unmarshal(data, old); err != nil {
		return nil, true, err
	}
	o, err := AsV1(old)
	if err != nil {
		return nil, true, err
	}
	return o.(Object), true, nil
}
