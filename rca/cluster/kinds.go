package cluster

import (
	"cmp"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/nodeprobe"
)

// Object is anything a State holds.
type Object interface {
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

// Kind is one kind a diagnosis reads: where it is found and where it goes.
type Kind struct {
	Name string // its own here, and that of the API where wire is empty
	// wire is the API's name of a kind whose name others have too.
	wire       string
	Resource   schema.GroupVersionResource
	Namespaced bool
	// Optional kinds may not be installed.
	Optional bool
	// Custom kinds are read through the dynamic client: they speak no protobuf.
	Custom bool
	// Discovered kinds are followed only where the API server serves them, in the
	// version that it does: where it does not, there are none.
	Discovered bool
	// ByName kinds are never listed: only objects whose names are known are got.
	ByName bool
	// Owners are read by their metadata alone.
	Owners bool
	list   func(*State) any // pointer to the slice in the State
}

func v1(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}

// kinds is everything a diagnosis reads, and so everything `unpend dump` writes.
var kinds = []Kind{
	{Name: "Node", Resource: v1("", "nodes"), list: func(s *State) any { return &s.Nodes }},
	{Name: "Pod", Resource: v1("", "pods"), Namespaced: true, list: func(s *State) any { return &s.Pods }},
	{Name: "Event", Resource: v1("", "events"), Namespaced: true, list: func(s *State) any { return &s.Events }},
	{Name: "Namespace", Resource: v1("", "namespaces"), list: func(s *State) any { return &s.Namespaces }},
	{Name: "ConfigMap", Resource: v1("", "configmaps"), Namespaced: true, ByName: true, list: func(s *State) any { return &s.ConfigMaps }},
	{Name: "ResourceQuota", Resource: v1("", "resourcequotas"), Namespaced: true, list: func(s *State) any { return &s.Quotas }},
	{Name: "LimitRange", Resource: v1("", "limitranges"), Namespaced: true, list: func(s *State) any { return &s.LimitRanges }},
	{Name: "PersistentVolumeClaim", Resource: v1("", "persistentvolumeclaims"), Namespaced: true, list: func(s *State) any { return &s.PVCs }},
	{Name: "PersistentVolume", Resource: v1("", "persistentvolumes"), list: func(s *State) any { return &s.PVs }},
	{Name: "PodDisruptionBudget", Resource: v1("policy", "poddisruptionbudgets"), Namespaced: true, list: func(s *State) any { return &s.PDBs }},
	{Name: "PriorityClass", Resource: v1("scheduling.k8s.io", "priorityclasses"), list: func(s *State) any { return &s.PriorityClasses }},
	{Name: "ReplicaSet", Resource: v1("apps", "replicasets"), Namespaced: true, list: func(s *State) any { return &s.ReplicaSets }},
	{Name: "Deployment", Resource: v1("apps", "deployments"), Namespaced: true, list: func(s *State) any { return &s.Deployments }},
	{Name: "StatefulSet", Resource: v1("apps", "statefulsets"), Namespaced: true, list: func(s *State) any { return &s.StatefulSets }},
	{Name: "DaemonSet", Resource: v1("apps", "daemonsets"), Namespaced: true, list: func(s *State) any { return &s.DaemonSets }},
	{Name: "Job", Resource: v1("batch", "jobs"), Namespaced: true, list: func(s *State) any { return &s.Jobs }},
	{Name: "CronJob", Resource: v1("batch", "cronjobs"), Namespaced: true, list: func(s *State) any { return &s.CronJobs }},
	{Name: "StorageClass", Resource: v1("storage.k8s.io", "storageclasses"), list: func(s *State) any { return &s.StorageClasses }},
	{Name: "CSINode", Resource: v1("storage.k8s.io", "csinodes"), list: func(s *State) any { return &s.CSINodes }},
	{Name: "ResourceSlice", Resource: v1("resource.k8s.io", "resourceslices"), Optional: true, list: func(s *State) any { return &s.ResourceSlices }},
	{Name: "ResourceClaim", Resource: v1("resource.k8s.io", "resourceclaims"), Namespaced: true, Optional: true, list: func(s *State) any { return &s.ResourceClaims }},
	{Name: "ResourceClaimTemplate", Resource: v1("resource.k8s.io", "resourceclaimtemplates"), Namespaced: true, Optional: true, list: func(s *State) any { return &s.ClaimTemplates }},
	{Name: "DeviceClass", Resource: v1("resource.k8s.io", "deviceclasses"), Optional: true, list: func(s *State) any { return &s.DeviceClasses }},
	installed("DeviceTaintRule", "resource.k8s.io", "v1", "devicetaintrules", false, func(s *State) any { return &s.DeviceTaintRules }),
	{Name: "ClusterPolicy", Resource: v1("nvidia.com", "clusterpolicies"), Optional: true, Custom: true, list: func(s *State) any { return &s.ClusterPolicies }},
	{Name: nodeprobe.Kind.Kind, Resource: nodeprobe.Resource, Optional: true, Custom: true, list: func(s *State) any { return &s.reports }},
	{Name: "RuntimeClass", Resource: v1("node.k8s.io", "runtimeclasses"), list: func(s *State) any { return &s.RuntimeClasses }},
	installed("NVIDIADriver", "nvidia.com", "v1alpha1", "nvidiadrivers", false, func(s *State) any { return &s.NVIDIADrivers }),
	installed("GPUCluster", "nvidia.com", "v1alpha1", "gpuclusters", false, func(s *State) any { return &s.GPUClusters }),
	installed("NodePool", "karpenter.sh", "v1", "nodepools", false, func(s *State) any { return &s.NodePools }),
	installed("NodeClaim", "karpenter.sh", "v1", "nodeclaims", false, func(s *State) any { return &s.NodeClaims }),
	installed("EC2NodeClass", "karpenter.k8s.aws", "v1", "ec2nodeclasses", false, func(s *State) any { return &s.NodeClasses.AWS }),
	installed("NodeClass", "eks.amazonaws.com", "v1", "nodeclasses", false, func(s *State) any { return &s.NodeClasses.AutoMode }),
	installed("AKSNodeClass", "karpenter.azure.com", "v1beta1", "aksnodeclasses", false, func(s *State) any { return &s.NodeClasses.Azure }),
	installed("GCENodeClass", "karpenter.k8s.gcp", "v1alpha1", "gcenodeclasses", false, func(s *State) any { return &s.NodeClasses.Google }),
	installed("ProvisioningRequest", "autoscaling.x-k8s.io", "v1", "provisioningrequests", true, func(s *State) any { return &s.ProvisioningRequests }),
	installed("NodeResourceTopology", "topology.node.k8s.io", "v1alpha2", "noderesourcetopologies", false, func(s *State) any { return &s.NodeTopologies }),
	podGroups("scheduling.k8s.io", "v1beta1", func(s *State) any { return &s.PodGroups.Kubernetes }),
	podGroups("scheduling.x-k8s.io", "v1alpha1", func(s *State) any { return &s.PodGroups.Plugins }),
	podGroups("scheduling.volcano.sh", "v1beta1", func(s *State) any { return &s.PodGroups.Volcano }),
	podGroups("scheduling.run.ai", "v2alpha2", func(s *State) any { return &s.PodGroups.KAI }),
	grouped("Job", "batch.volcano.sh", "v1alpha1", "jobs", true, func(s *State) any { return &s.VolcanoJobs }),
	grouped("RayCluster", "ray.io", "v1", "rayclusters", true, func(s *State) any { return &s.RayClusters }),
	installed("JobSet", "jobset.x-k8s.io", "v1alpha2", "jobsets", true, func(s *State) any { return &s.JobSets }),
	installed("PyTorchJob", "kubeflow.org", "v1", "pytorchjobs", true, func(s *State) any { return &s.Kubeflow.PyTorch }),
	installed("TFJob", "kubeflow.org", "v1", "tfjobs", true, func(s *State) any { return &s.Kubeflow.TF }),
	installed("XGBoostJob", "kubeflow.org", "v1", "xgboostjobs", true, func(s *State) any { return &s.Kubeflow.XGBoost }),
	installed("PaddleJob", "kubeflow.org", "v1", "paddlejobs", true, func(s *State) any { return &s.Kubeflow.Paddle }),
	installed("JAXJob", "kubeflow.org", "v1", "jaxjobs", true, func(s *State) any { return &s.Kubeflow.JAX }),
	installed("InferenceService", "serving.kserve.io", "v1beta1", "inferenceservices", true, func(s *State) any { return &s.InferenceServices }),
	installed("SparkApplication", "sparkoperator.k8s.io", "v1beta2", "sparkapplications", true, func(s *State) any { return &s.SparkApplications }),
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
func installed(name, group, version, resource string, namespaced bool, list func(*State) any) Kind {
	return Kind{Name: name, Resource: schema.GroupVersionResource{Group: group, Version: version, Resource: resource},
		Namespaced: namespaced, Optional: true, Custom: true, Discovered: true, list: list}
}

// grouped is one whose name other API groups have too.
func grouped(name, group, version, resource string, namespaced bool, list func(*State) any) Kind {
	k := installed(name+"."+group, group, version, resource, namespaced, list)
	k.wire = name
	return k
}

// podGroups is the PodGroup of one API group: four have a kind of that name.
func podGroups(group, version string, list func(*State) any) Kind {
	return grouped("PodGroup", group, version, "podgroups", true, list)
}

// API is the kind's name in the API.
func (k *Kind) API() string { return cmp.Or(k.wire, k.Name) }

// KindOf finds the kind by its name and API group; nil for one nobody reads.
// Versions other than the served one are read as it: their fields that matter
// here are the same, but for those of resource.k8s.io, which are converted.
func KindOf(apiVersion, name string) *Kind {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil
	}
	for i := range kinds {
		k := &kinds[i]
		if k.API() == name && (k.Resource.Group == gv.Group || name == "Event" && gv.Group == "events.k8s.io") {
			return k
		}
	}
	return nil
}

// Add puts an object where its kind belongs.
func (k *Kind) Add(s *State, o Object) {
	list := reflect.ValueOf(k.list(s)).Elem()
	list.Set(reflect.Append(list, reflect.ValueOf(o)))
}

// Objects lists what a state holds of the kind.
func (k *Kind) Objects(s *State) []Object {
	list := reflect.ValueOf(k.list(s)).Elem()
	out := make([]Object, list.Len())
	for i := range out {
		out[i] = list.Index(i).Interface().(Object)
	}
	return out
}

func (k *Kind) String() string { return fmt.Sprintf("%s (%s)", k.API(), k.Resource.GroupResource()) }

// KindNamed finds the kind by its own name here; nil for one nobody reads.
func KindNamed(name string) *Kind {
	for i := range kinds {
		if kinds[i].Name == name {
			return &kinds[i]
		}
	}
	return nil
}

// Kinds is everything a diagnosis reads, and so everything a dump holds.
func Kinds() []*Kind {
	out := make([]*Kind, len(kinds))
	for i := range kinds {
		out[i] = &kinds[i]
	}
	return out
}
