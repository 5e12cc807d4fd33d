package cluster

import (
	"encoding/json"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/unpend/unpend/nodeprobe"
)

// Decode reads one object as the kind's type.
func (k *Kind) Decode(apiVersion string, data []byte) (Object, error) {
	if obj, old, err := k.decodeOld(apiVersion, data); old {
		if err == nil {
			obj.GetObjectKind().SetGroupVersionKind(k.Resource.GroupVersion().WithKind(k.Name))
			defaultRequests(obj)
		}
		return obj, err
	}
	typ := reflect.TypeOf(k.list(&State{})).Elem().Elem().Elem()
	obj := reflect.New(typ).Interface().(Object)
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		if err := utiljson.Unmarshal(data, &u.Object); err != nil {
			return nil, err
		}
		u.SetAPIVersion(k.Resource.GroupVersion().String()) // an item of a typed list may lack both
		u.SetKind(k.API())
		return obj, nil
	}
	if err := json.Unmarshal(data, obj); err != nil {
		return nil, err
	}
	switch o := any(obj).(type) {
	case *corev1.Event:
		completeEvent(o, data)
	case *nodeprobe.NodeGeometry:
		noteUntold(o, data)
	}
	defaultRequests(obj)
	return obj, nil
}

// completeEvent fills in what events.k8s.io/v1 calls by other names.
func completeEvent(e *corev1.Event, data []byte) {
	if e.InvolvedObject.Name != "" {
		return
	}
	var other struct {
		Regarding           corev1.ObjectReference `json:"regarding"`
		Note                string                 `json:"note"`
		ReportingController string                 `json:"reportingController"`
		First               metav1.Time            `json:"deprecatedFirstTimestamp"`
		Last                metav1.Time            `json:"deprecatedLastTimestamp"`
		Count               int32                  `json:"deprecatedCount"`
	}
	if json.Unmarshal(data, &other) == nil && other.Regarding.Name != "" {
		e.InvolvedObject, e.Message, e.ReportingController = other.Regarding, other.Note, other.ReportingController
		e.FirstTimestamp, e.LastTimestamp, e.Count = other.First, other.Last, other.Count
	}
}

// noteUntold marks the GPUs of a dumped report that does not say whether they are healthy:
// that they are sick it does not say either. A report is read again for that only where a
// GPU is not said to be healthy.
func noteUntold(geo *nodeprobe.NodeGeometry, data []byte) {
	if !slices.ContainsFunc(geo.Report.GPUs, func(g nodeprobe.GPU) bool { return !g.Healthy }) {
		return
	}
	var told struct {
		Report struct {
			GPUs []struct {
				Healthy *bool `json:"healthy"`
			} `json:"gpus"`
		} `json:"report"`
	}
	if json.Unmarshal(data, &told) != nil {
		return
	}
	for i, g := range told.Report.GPUs {
		geo.Report.GPUs[i].Untold = g.Healthy == nil
	}
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
