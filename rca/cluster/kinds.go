package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/unpend/unpend/nodeprobe"
)

// Object is anything a State holds.
type Object interface {
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// kind is one kind a diagnosis reads: where it is found and where it goes.
type kind struct {
	name string // its own here, and that of the API where wire is empty
	// wire is the API's name of a kind whose name others have too.
	wire       string
	resource   schema.GroupVersionResource
	namespaced bool
	// optional kinds may not be installed.
	optional bool
	// custom kinds are read through the dynamic client: they speak no protobuf.
	custom bool
	// discovered kinds are followed only where the API server serves them, in the
	// version that it does: where it does not, there are none.
	discovered bool
	// byName kinds are never listed: only objects whose names are known are got.
	byName bool
	// owners are read by their metadata alone.
	owners bool
	list   func(*State) any // pointer to the slice in the State
}

func v1(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}

// kinds is everything a diagnosis reads, and so everything `unpend dump` writes.
var kinds = []kind{
	{name: "Node", resource: v1("", "nodes"), list: func(s *State) any { return &s.Nodes }},
	{name: "Pod", resource: v1("", "pods"), namespaced: true, list: func(s *State) any { return &s.Pods }},
	{name: "Event", resource: v1("", "events"), namespaced: true, list: func(s *State) any { return &s.Events }},
	{name: "Namespace", resource: v1("", "namespaces"), list: func(s *State) any { return &s.Namespaces }},
	{name: "ConfigMap", resource: v1("", "configmaps"), namespaced: true, byName: true, list: func(s *State) any { return &s.ConfigMaps }},
	{name: "ResourceQuota", resource: v1("", "resourcequotas"), namespaced: true, list: func(s *State) any { return &s.Quotas }},
	{name: "LimitRange", resource: v1("", "limitranges"), namespaced: true, list: func(s *State) any { return &s.LimitRanges }},
	{name: "PersistentVolumeClaim", resource: v1("", "persistentvolumeclaims"), namespaced: true, list: func(s *State) any { return &s.PVCs }},
	{name: "PersistentVolume", resource: v1("", "persistentvolumes"), list: func(s *State) any { return &s.PVs }},
	{name: "PodDisruptionBudget", resource: v1("policy", "poddisruptionbudgets"), namespaced: true, list: func(s *State) any { return &s.PDBs }},
	{name: "PriorityClass", resource: v1("scheduling.k8s.io", "priorityclasses"), list: func(s *State) any { return &s.PriorityClasses }},
	{name: "ReplicaSet", resource: v1("apps", "replicasets"), namespaced: true, list: func(s *State) any { return &s.ReplicaSets }},
	{name: "Deployment", resource: v1("apps", "deployments"), namespaced: true, list: func(s *State) any { return &s.Deployments }},
	{name: "StatefulSet", resource: v1("apps", "statefulsets"), namespaced: true, list: func(s *State) any { return &s.StatefulSets }},
	{name: "DaemonSet", resource: v1("apps", "daemonsets"), namespaced: true, list: func(s *State) any { return &s.DaemonSets }},
	{name: "Job", resource: v1("batch", "jobs"), namespaced: true, list: func(s *State) any { return &s.Jobs }},
	{name: "CronJob", resource: v1("batch", "cronjobs"), namespaced: true, list: func(s *State) any { return &s.CronJobs }},
	{name: "StorageClass", resource: v1("storage.k8s.io", "storageclasses"), list: func(s *State) any { return &s.StorageClasses }},
	{name: "CSINode", resource: v1("storage.k8s.io", "csinodes"), list: func(s *State) any { return &s.CSINodes }},
	{name: "ResourceSlice", resource: v1("resource.k8s.io", "resourceslices"), optional: true, list: func(s *State) any { return &s.ResourceSlices }},
	{name: "ResourceClaim", resource: v1("resource.k8s.io", "resourceclaims"), namespaced: true, optional: true, list: func(s *State) any { return &s.ResourceClaims }},
	{name: "ResourceClaimTemplate", resource: v1("resource.k8s.io", "resourceclaimtemplates"), namespaced: true, optional: true, list: func(s *State) any { return &s.ClaimTemplates }},
	{name: "DeviceClass", resource: v1("resource.k8s.io", "deviceclasses"), optional: true, list: func(s *State) any { return &s.DeviceClasses }},
	installed("DeviceTaintRule", "resource.k8s.io", "v1", "devicetaintrules", false, func(s *State) any { return &s.DeviceTaintRules }),
	{name: "ClusterPolicy", resource: v1("nvidia.com", "clusterpolicies"), optional: true, custom: true, list: func(s *State) any { return &s.ClusterPolicies }},
	{name: nodeprobe.Kind.Kind, resource: nodeprobe.Resource, optional: true, custom: true, list: func(s *State) any { return &s.reports }},
	{name: "RuntimeClass", resource: v1("node.k8s.io", "runtimeclasses"), list: func(s *State) any { return &s.RuntimeClasses }},
	installed("NVIDIADriver", "nvidia.com", "v1alpha1", "nvidiadrivers", false, func(s *State) any { return &s.NVIDIADrivers }),
	installed("GPUCluster", "nvidia.com", "v1alpha1", "gpuclusters", false, func(s *State) any { return &s.GPUClusters }),
	installed("NodePool", "karpenter.sh", "v1", "nodepools", false, func(s *State) any { return &s.NodePools }),
	installed("NodeClaim", "karpenter.sh", "v1", "nodeclaims", false, func(s *State) any { return &s.NodeClaims }),
	installed("EC2NodeClass", "karpenter.k8s.aws", "v1", "ec2nodeclasses", false, func(s *State) any { return &s.NodeClasses.AWS }),
	installed("AKSNodeClass", "karpenter.azure.com", "v1beta1", "aksnodeclasses", false, func(s *State) any { return &s.NodeClasses.Azure }),
	installed("ProvisioningRequest", "autoscaling.x-k8s.io", "v1", "provisioningrequests", true, func(s *State) any { return &s.ProvisioningRequests }),
	installed("NodeResourceTopology", "topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", false, func(s *State) any { return &s.NodeTopologies }),
	podGroups("scheduling.k8s.io", "v1beta1", func(s *State) any { return &s.PodGroups.Kubernetes }),
	podGroups("scheduling.x-k8s.io", "v1alpha1", func(s *State) any { return &s.PodGroups.Plugins }),
	podGroups("scheduling.volcano.sh", "v1beta1", func(s *State) any { return &s.PodGroups.Volcano }),
	podGroups("scheduling.run.ai", "v2alpha2", func(s *State) any { return &s.PodGroups.KAI }),
	grouped("Job", "batch.volcano.sh", "v1alpha1", "jobs", true, func(s *State) any { return &s.VolcanoJobs }),
	grouped("Workload", "kueue.x-k8s.io", "v1beta1", "workloads", true, func(s *State) any { return &s.QueuedWorkloads }),
	installed("LocalQueue", "kueue.x-k8s.io", "v1beta1", "localqueues", true, func(s *State) any { return &s.Queues.Local }),
	installed("ClusterQueue", "kueue.x-k8s.io", "v1beta1", "clusterqueues", false, func(s *State) any { return &s.Queues.Cluster }),
	installed("ResourceFlavor", "kueue.x-k8s.io", "v1beta1", "resourceflavors", false, func(s *State) any { return &s.Queues.Flavors }),
	installed("AdmissionCheck", "kueue.x-k8s.io", "v1beta1", "admissionchecks", false, func(s *State) any { return &s.Queues.Checks }),
	installed("Topology", "kueue.x-k8s.io", "v1beta1", "topologies", false, func(s *State) any { return &s.Queues.Topologies }),
	grouped("Queue", "scheduling.volcano.sh", "v1beta1", "queues", false, func(s *State) any { return &s.Queues.Volcano }),
	grouped("Queue", "scheduling.run.ai", "v2", "queues", false, func(s *State) any { return &s.Queues.KAI }),
}

// installed is a kind of an API that only some clusters have.
func installed(name, group, version, resource string, namespaced bool, list func(*State) any) kind {
	return kind{name: name, resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		namespaced: namespaced, optional: true, custom: true, discovered: true, list: list}
}

// grouped is one whose name other API groups have too.
func grouped(name, group, version, resource string, namespaced bool, list func(*State) any) kind {
	k := installed(name+"."+group, group, version, resource, namespaced, list)
	k.wire = name
	return k
}

// podGroups is the PodGroup of one API group: four have a kind of that name.
func podGroups(group, version string, list func(*State) any) kind {
	return grouped("PodGroup", group, version, "podgroups", true, list)
}

// api is the kind's name in the API.
func (k *kind) api() string { return cmp.Or(k.wire, k.name) }

// kindOf finds the kind by its name and API group; nil for one nobody reads.
// Versions other than the served one are read as it: their fields that matter
// here are the same, but for those of resource.k8s.io, which are converted.
func kindOf(apiVersion, name string) *kind {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	for i := range kinds {
		k := &kinds[i]
		if k.api() == name && (k.resource.Group == gv.Group || name == "Event" && gv.Group == "events.k8s.io") {
			return k
		}
	}
	return nil
}

// decode reads one object as the kind's type.
func (k *kind) decode(apiVersion string, data []byte) (Object, error) {
	if obj, old, err := k.decodeOld(apiVersion, data); old {
		if err == nil {
			obj.GetObjectKind().SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.name))
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
		u.SetAPIVersion(k.resource.GroupVersion().String()) // an item of a typed list may lack both
		u.SetKind(k.api())
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

func (k *kind) String() string { return fmt.Sprintf("%s (%s)", k.api(), k.resource.GroupResource()) }
