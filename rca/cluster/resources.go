package cluster

import (
	"encoding/json"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1beta1 "k8s.io/dynamic-resource-allocation/api/v1beta1"
	v1beta2 "k8s.io/dynamic-resource-allocation/api/v1beta2"
)

// The versions of resource.k8s.io differ in what matters here: v1beta1 has the
// class right under a request and attributes under "basic". A version that is not
// known here is not read at all, rather than half.

// readable says whether objects of the version can be read as the kind.
func (k *kind) readable(apiVersion string) bool {
	if k.resource.Group != resourcev1.GroupName {
		return true
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	return err == nil && (gv.Version == "v1" || gv.Version == "v1beta1" || gv.Version == "v1beta2")
}

// decodeOld reads an object of resource.k8s.io/v1beta1 or v1beta2 as v1; false
// for any other version.
func (k *kind) decodeOld(apiVersion string, data []byte) (Object, bool, error) {
	type version struct{ api, kind string }
	switch (version{apiVersion, k.name}) {
	case version{"resource.k8s.io/v1beta1", "ResourceClaim"}:
		return as(data, &resourcev1beta1.ResourceClaim{}, &resourcev1.ResourceClaim{}, v1beta1.Convert_v1beta1_ResourceClaim_To_v1_ResourceClaim)
	case version{"resource.k8s.io/v1beta1", "ResourceClaimTemplate"}:
		return as(data, &resourcev1beta1.ResourceClaimTemplate{}, &resourcev1.ResourceClaimTemplate{}, v1beta1.Convert_v1beta1_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	case version{"resource.k8s.io/v1beta1", "ResourceSlice"}:
		return as(data, &resourcev1beta1.ResourceSlice{}, &resourcev1.ResourceSlice{}, v1beta1.Convert_v1beta1_ResourceSlice_To_v1_ResourceSlice)
	case version{"resource.k8s.io/v1beta1", "DeviceClass"}:
		return as(data, &resourcev1beta1.DeviceClass{}, &resourcev1.DeviceClass{}, v1beta1.Convert_v1beta1_DeviceClass_To_v1_DeviceClass)
	case version{"resource.k8s.io/v1beta2", "ResourceClaim"}:
		return as(data, &resourcev1beta2.ResourceClaim{}, &resourcev1.ResourceClaim{}, v1beta2.Convert_v1beta2_ResourceClaim_To_v1_ResourceClaim)
	case version{"resource.k8s.io/v1beta2", "ResourceClaimTemplate"}:
		return as(data, &resourcev1beta2.ResourceClaimTemplate{}, &resourcev1.ResourceClaimTemplate{}, v1beta2.Convert_v1beta2_ResourceClaimTemplate_To_v1_ResourceClaimTemplate)
	case version{"resource.k8s.io/v1beta2", "ResourceSlice"}:
		return as(data, &resourcev1beta2.ResourceSlice{}, &resourcev1.ResourceSlice{}, v1beta2.Convert_v1beta2_ResourceSlice_To_v1_ResourceSlice)
	case version{"resource.k8s.io/v1beta2", "DeviceClass"}:
		return as(data, &resourcev1beta2.DeviceClass{}, &resourcev1.DeviceClass{}, v1beta2.Convert_v1beta2_DeviceClass_To_v1_DeviceClass)
	}
	return nil, false, nil
}

func as[Old any, New Object](data []byte, old Old, obj New, convert func(Old, New, conversion.Scope) error) (Object, bool, error) {
	if err := json.Unmarshal(data, old); err != nil {
		return nil, true, err
	}
	if err := convert(old, obj, nil); err != nil {
		return nil, true, fmt.Errorf("read as resource.k8s.io/v1: %w", err)
	}
	return obj, true, nil
}
