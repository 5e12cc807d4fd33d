// Package cluster holds the state one diagnosis is made from, and says what belongs into it: which
// kinds (kinds.go), what of an object is kept (trim.go), how older versions are read
// (resources.go, decode.go). Where it comes from it does not know: rca/cluster/live fills it from
// an API server, rca/cluster/dump from files, and it reads the same either way.
//
// Rules start at State: its slices, and what it finds by name (lookup.go). Who fills one adds
// every object by its Kind, and then calls Finish and DeriveGeometries.
package cluster

import (
	"encoding/json"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/watcher/owners"
)

// State is what is known of a cluster at one moment. Every slice is sorted by
// namespace and name. The objects are shared: never change one, copy it.
type State struct {
	// Now is the moment the state stands for: the clock for a live cluster, the time at
	// which a dump was taken, else the newest time found in it.
	Now time.Time
	// Taken says of a dump that it tells when it was taken: else ages are at least what
	// they seem, and may be much more.
	Taken bool
	// Live is false for a dump, whose "now" is no clock: no grace periods there.
	Live bool

	Nodes           []*corev1.Node
	Pods            []*corev1.Pod
	Events          []*corev1.Event
	Namespaces      []*corev1.Namespace
	ConfigMaps      []*corev1.ConfigMap // those that hold a mig-parted config, and the cluster autoscaler's status
	Quotas          []*corev1.ResourceQuota
	LimitRanges     []*corev1.LimitRange
	PVCs            []*corev1.PersistentVolumeClaim
	PVs             []*corev1.PersistentVolume
	PDBs            []*policyv1.PodDisruptionBudget
	PriorityClasses []*schedulingv1.PriorityClass
	ReplicaSets     []*appsv1.ReplicaSet
	Deployments     []*appsv1.Deployment
	StatefulSets    []*appsv1.StatefulSet
	DaemonSets      []*appsv1.DaemonSet
	Jobs            []*batchv1.Job
	CronJobs        []*batchv1.CronJob
	StorageClasses  []*storagev1.StorageClass
	CSINodes        []*storagev1.CSINode
	ResourceSlices  []*resourcev1.ResourceSlice
	ResourceClaims  []*resourcev1.ResourceClaim
	ClaimTemplates  []*resourcev1.ResourceClaimTemplate
	DeviceClasses   []*resourcev1.DeviceClass
	// DeviceTaintRules taint devices of the slices, see TaintedSlices.
	DeviceTaintRules []*unstructured.Unstructured
	// DeviceVersion is the version of resource.k8s.io that the four kinds above were
	// read in; empty in a dump that has none of them.
	DeviceVersion   string
	RuntimeClasses  []*nodev1.RuntimeClass
	ClusterPolicies []*unstructured.Unstructured // nvidia.com/v1, the GPU Operator's
	NVIDIADrivers   []*unstructured.Unstructured // nvidia.com/v1alpha1, the GPU Operator's
	GPUClusters     []*unstructured.Unstructured // nvidia.com/v1alpha1, the GPU Operator's DRA stack
	NodePools       []*unstructured.Unstructured // karpenter.sh
	NodeClaims      []*unstructured.Unstructured // karpenter.sh
	NodeClasses     NodeClasses
	// NodeTopologies say what each NUMA zone of a node has (topology.node.k8s.io).
	NodeTopologies []*unstructured.Unstructured
	// ProvisioningRequests are the cluster autoscaler's.
	ProvisioningRequests []*unstructured.Unstructured
	// Owners own what makes pods, or what does, and are of kinds that a configuration names, or
	// of any that a dump holds: metadata alone.
	Owners []*metav1.PartialObjectMetadata
	// OwnerKinds are the kinds that Owners were looked for of, OwnersAbsent those that were
	// named and that the API server does not serve. Unread has by its name (plural and group)
	// why one was not read after all.
	OwnerKinds   []owners.Kind
	OwnersAbsent []schema.GroupResource
	// Remediations are those of a dump, as it has them: no diagnosis reads them. Nil when
	// it holds none, and on a live cluster.
	Remediations []json.RawMessage
	// PodGroups are gangs, by whose kind they are.
	PodGroups PodGroups
	// QueuedWorkloads are Kueue's Workloads: what a queue has admitted or not, and why.
	QueuedWorkloads []*unstructured.Unstructured
	// VolcanoJobs are those of batch.volcano.sh: what their pods would ask that are not made yet.
	VolcanoJobs []*unstructured.Unstructured
	// RayClusters are KubeRay's: what their pods would ask, and which it could not make.
	RayClusters []*unstructured.Unstructured
	// JobSets and Kubeflow's jobs are read for the same.
	JobSets  []*unstructured.Unstructured
	Kubeflow Kubeflow
	// InferenceServices are KServe's, SparkApplications the Spark operator's.
	InferenceServices, SparkApplications []*unstructured.Unstructured

	Queues Queues
	// Geometries by node name: as probes reported them, else as the DRA driver's
	// ResourceSlices tell.
	Geometries map[string]*nodeprobe.NodeGeometry
	// Illegible says, by node, why its NodeGeometry cannot be read.
	Illegible map[string]string
	// Doubts say, by node, why its ResourceSlices make no geometry.
	Doubts map[string]string

	// Unread says, by kind, what could not be read and why. A kind that a dump
	// does not hold at all is unread: its absence proves nothing.
	Unread map[string]string

	reports []*nodeprobe.NodeGeometry // what Geometries is made of
	once    sync.Once
	index   *index
}

// Clocked says whether Now is what a clock said.
func (s *State) Clocked() bool { return s.Live || s.Taken }

// Kubeflow are the jobs of its training operator.
type Kubeflow struct {
	PyTorch, TF, XGBoost, Paddle, JAX []*unstructured.Unstructured
}

// PodGroups are the objects that say how many pods of a group are scheduled
// together or not at all. Four APIs have a kind of that name.
type PodGroups struct {
	Kubernetes []*unstructured.Unstructured // scheduling.k8s.io, the API server's own (1.36 and later)
	Plugins    []*unstructured.Unstructured // scheduling.x-k8s.io, of the scheduler plugins' coscheduling
	Volcano    []*unstructured.Unstructured // scheduling.volcano.sh
	KAI        []*unstructured.Unstructured // scheduling.run.ai
}

// NodeClasses say how Karpenter's NodePools make machines in a cloud, by whose kind they are.
type NodeClasses struct {
	AWS      []*unstructured.Unstructured // karpenter.k8s.aws
	AutoMode []*unstructured.Unstructured // eks.amazonaws.com, of EKS Auto Mode
	Azure    []*unstructured.Unstructured // karpenter.azure.com
	Google   []*unstructured.Unstructured // karpenter.k8s.gcp
}

// Of are those of a kind; nil for one that is not read.
func (c NodeClasses) Of(kind string) []*unstructured.Unstructured { return c.ByKind()[kind] }

// ByKind has all of them.
func (c NodeClasses) ByKind() map[string][]*unstructured.Unstructured {
	return map[string][]*unstructured.Unstructured{"EC2NodeClass": c.AWS, "NodeClass": c.AutoMode, "AKSNodeClass": c.Azure, "GCENodeClass": c.Google}
}

// Queues are what admits workloads, by whose kind they are.
type Queues struct {
	Local   []*unstructured.Unstructured // Kueue's, of one namespace
	Cluster []*unstructured.Unstructured // Kueue's
	Flavors []*unstructured.Unstructured // Kueue's: which nodes a quota is of
	Checks  []*unstructured.Unstructured // Kueue's: what else has to agree
	// Topologies are Kueue's: the levels, by node labels, at which pods are placed together.
	Topologies []*unstructured.Unstructured
	Volcano    []*unstructured.Unstructured
	KAI        []*unstructured.Unstructured
}
