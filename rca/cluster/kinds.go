package cluster

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/nodeprobe"
)

// Object is anything a State holds.
type Object interface {
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// kind is one kind a diagnosis reads: where it is found and where it goes.
type kind struct {
	name       string
	resource   schema.GroupVersionResource
	namespaced bool
	// optional kinds may not be installed.
	optional bool
	// custom kinds are read through the dynamic client: they speak no protobuf.
	custom bool
	// byName kinds are never listed: only objects whose names are known are got.
	byName bool
	list   func(*State) any // pointer to the slice in the State
}

func gvr(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// kinds is everything a diagnosis reads, and so everything `unpend dump` writes.
var kinds = []kind{
	{name: "Node", resource: gvr("", "v1", "nodes"), list: func(s *State) any { return &s.Nodes }},
	{name: "Pod", resource: gvr("", "v1", "pods"), namespaced: true, list: func(s *State) any { return &s.Pods }},
	{name: "Event", resource: gvr("", "v1", "events"), namespaced: true, list: func(s *State) any { return &s.Events }},
	{name: "Namespace", resource: gvr("", "v1", "namespaces"), list: func(s *State) any { return &s.Namespaces }},
	{name: "ConfigMap", resource: gvr("", "v1", "configmaps"), namespaced: true, byName: true, list: func(s *State) any { return &s.ConfigMaps }},
	{name: "ResourceQuota", resource: gvr("", "v1", "resourcequotas"), namespaced: true, list: func(s *State) any { return &s.Quotas }},
	{name: "LimitRange", resource: gvr("", "v1", "limitranges"), namespaced: true, list: func(s *State) any { return &s.LimitRanges }},
	{name: "PersistentVolumeClaim", resource: gvr("", "v1", "persistentvolumeclaims"), namespaced: true, list: func(s *State) any { return &s.PVCs }},
	{name: "PersistentVolume", resource: gvr("", "v1", "persistentvolumes"), list: func(s *State) any { return &s.PVs }},
	{name: "PodDisruptionBudget", resource: gvr("policy", "v1", "poddisruptionbudgets"), namespaced: true, list: func(s *State) any { return &s.PDBs }},
	{name: "PriorityClass", resource: gvr("scheduling.k8s.io", "v1", "priorityclasses"), list: func(s *State) any { return &s.PriorityClasses }},
	{name: "ReplicaSet", resource: gvr("apps", "v1", "replicasets"), namespaced: true, list: func(s *State) any { return &s.ReplicaSets }},
	{name: "Deployment", resource: gvr("apps", "v1", "deployments"), namespaced: true, list: func(s *State) any { return &s.Deployments }},
	{name: "StatefulSet", resource: gvr("apps", "v1", "statefulsets"), namespaced: true, list: func(s *State) any { return &s.StatefulSets }},
	{name: "DaemonSet", resource: gvr("apps", "v1", "daemonsets"), namespaced: true, list: func(s *State) any { return &s.DaemonSets }},
	{name: "Job", resource: gvr("batch", "v1", "jobs"), namespaced: true, list: func(s *State) any { return &s.Jobs }},
	{name: "CronJob", resource: gvr("batch", "v1", "cronjobs"), namespaced: true, list: func(s *State) any { return &s.CronJobs }},
	{name: "StorageClass", resource: gvr("storage.k8s.io", "v1", "storageclasses"), list: func(s *State) any { return &s.StorageClasses }},
	{name: "CSINode", resource: gvr("storage.k8s.io", "v1", "csinodes"), list: func(s *State) any { return &s.CSINodes }},
	{name: "ResourceSlice", resource: gvr("resource.k8s.io", "v1", "resourceslices"), optional: true, list: func(s *State) any { return &s.ResourceSlices }},
	{name: "ResourceClaim", resource: gvr("resource.k8s.io", "v1", "resourceclaims"), namespaced: true, optional: true, list: func(s *State) any { return &s.ResourceClaims }},
	{name: "ResourceClaimTemplate", resource: gvr("resource.k8s.io", "v1", "resourceclaimtemplates"), namespaced: true, optional: true, list: func(s *State) any { return &s.ClaimTemplates }},
	{name: "DeviceClass", resource: gvr("resource.k8s.io", "v1", "deviceclasses"), optional: true, list: func(s *State) any { return &s.DeviceClasses }},
	{name: "ClusterPolicy", resource: gvr("nvidia.com", "v1", "clusterpolicies"), optional: true, custom: true, list: func(s *State) any { return &s.ClusterPolicies }},
	{name: nodeprobe.Kind.Kind, resource: nodeprobe.Resource, optional: true, custom: true, list: func(s *State) any { return &s.reports }},
}

// kindOf finds the kind by its name and API group; nil for one nobody reads.
// Versions other than the served one are read as it: their fields that matter
// here are the same.
func kindOf(apiVersion, name string) *kind {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	for i := range kinds {
		k := &kinds[i]
		if k.name == name && (k.resource.Group == gv.Group || name == "Event" && gv.Group == "events.k8s.io") {
			return k
		}
	}
	return nil
}

// decode reads one object as the kind's type.
func (k *kind) decode(data []byte) (Object, error) {
	typ := reflect.TypeOf(k.list(&State{})).Elem().Elem().Elem()
	obj := reflect.New(typ).Interface().(Object)
	if u, ok := any(obj).(*unstructured.Unstructured); ok {
		return obj, u.UnmarshalJSON(data)
	}
	if err := json.Unmarshal(data, obj); err != nil {
		return nil, err
	}
	if k.name == "Event" {
		completeEvent(obj.(*corev1.Event), data)
	}
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
	}
	if json.Unmarshal(data, &other) == nil {
		e.InvolvedObject, e.Message, e.ReportingController = other.Regarding, other.Note, other.ReportingController
	}
}

// add puts an object where its kind belongs.
func (k *kind) add(s *State, o Object) {
	list := reflect.ValueOf(k.list(s)).Elem()
	list.Set(reflect.Append(list, reflect.ValueOf(o)))
}

// objects lists what a state holds of the kind.
func (k *kind) objects(s *State) []Object {
	list := reflect.ValueOf(k.list(s)).Elem()
	out := make([]Object, list.Len())
	for i := range out {
		out[i] = list.Index(i).Interface().(Object)
	}
	return out
}

func (k *kind) String() string { return fmt.Sprintf("%s (%s)", k.name, k.resource.GroupResource()) }
