package live

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

type (
	factory  = informers.SharedInformerFactory
	informer = cache.SharedIndexInformer
)

// typedInformers has the informer of every kind that is listed, but for Events and custom
// ones, in each version that may be asked for. The factory's ForResource would find them too, but who
// calls it links the client, lister and informer of every API of Kubernetes.
var typedInformers = map[schema.GroupVersionResource]func(factory) informer{
	v1("", "nodes"):                                 func(f factory) informer { return f.Core().V1().Nodes().Informer() },
	v1("", "pods"):                                  func(f factory) informer { return f.Core().V1().Pods().Informer() },
	v1("", "namespaces"):                            func(f factory) informer { return f.Core().V1().Namespaces().Informer() },
	v1("", "resourcequotas"):                        func(f factory) informer { return f.Core().V1().ResourceQuotas().Informer() },
	v1("", "limitranges"):                           func(f factory) informer { return f.Core().V1().LimitRanges().Informer() },
	v1("", "persistentvolumeclaims"):                func(f factory) informer { return f.Core().V1().PersistentVolumeClaims().Informer() },
	v1("", "persistentvolumes"):                     func(f factory) informer { return f.Core().V1().PersistentVolumes().Informer() },
	v1("policy", "poddisruptionbudgets"):            func(f factory) informer { return f.Policy().V1().PodDisruptionBudgets().Informer() },
	v1("scheduling.k8s.io", "priorityclasses"):      func(f factory) informer { return f.Scheduling().V1().PriorityClasses().Informer() },
	v1("apps", "replicasets"):                       func(f factory) informer { return f.Apps().V1().ReplicaSets().Informer() },
	v1("apps", "deployments"):                       func(f factory) informer { return f.Apps().V1().Deployments().Informer() },
	v1("apps", "statefulsets"):                      func(f factory) informer { return f.Apps().V1().StatefulSets().Informer() },
	v1("apps", "daemonsets"):                        func(f factory) informer { return f.Apps().V1().DaemonSets().Informer() },
	v1("batch", "jobs"):                             func(f factory) informer { return f.Batch().V1().Jobs().Informer() },
	v1("batch", "cronjobs"):                         func(f factory) informer { return f.Batch().V1().CronJobs().Informer() },
	v1("storage.k8s.io", "storageclasses"):          func(f factory) informer { return f.Storage().V1().StorageClasses().Informer() },
	v1("storage.k8s.io", "csinodes"):                func(f factory) informer { return f.Storage().V1().CSINodes().Informer() },
	v1("node.k8s.io", "runtimeclasses"):             func(f factory) informer { return f.Node().V1().RuntimeClasses().Informer() },
	v1("resource.k8s.io", "resourceslices"):         func(f factory) informer { return f.Resource().V1().ResourceSlices().Informer() },
	v1("resource.k8s.io", "resourceclaims"):         func(f factory) informer { return f.Resource().V1().ResourceClaims().Informer() },
	v1("resource.k8s.io", "resourceclaimtemplates"): func(f factory) informer { return f.Resource().V1().ResourceClaimTemplates().Informer() },
	v1("resource.k8s.io", "deviceclasses"):          func(f factory) informer { return f.Resource().V1().DeviceClasses().Informer() },
	{Group: "resource.k8s.io", Version: "v1beta2", Resource: "resourceslices"}:         func(f factory) informer { return f.Resource().V1beta2().ResourceSlices().Informer() },
	{Group: "resource.k8s.io", Version: "v1beta2", Resource: "resourceclaims"}:         func(f factory) informer { return f.Resource().V1beta2().ResourceClaims().Informer() },
	{Group: "resource.k8s.io", Version: "v1beta2", Resource: "resourceclaimtemplates"}: func(f factory) informer { return f.Resource().V1beta2().ResourceClaimTemplates().Informer() },
	{Group: "resource.k8s.io", Version: "v1beta2", Resource: "deviceclasses"}:          func(f factory) informer { return f.Resource().V1beta2().DeviceClasses().Informer() },
	{Group: "resource.k8s.io", Version: "v1beta1", Resource: "resourceslices"}:         func(f factory) informer { return f.Resource().V1beta1().ResourceSlices().Informer() },
	{Group: "resource.k8s.io", Version: "v1beta1", Resource: "resourceclaims"}:         func(f factory) informer { return f.Resource().V1beta1().ResourceClaims().Informer() },
	{Group: "resource.k8s.io", Version: "v1beta1", Resource: "resourceclaimtemplates"}: func(f factory) informer { return f.Resource().V1beta1().ResourceClaimTemplates().Informer() },
	{Group: "resource.k8s.io", Version: "v1beta1", Resource: "deviceclasses"}:          func(f factory) informer { return f.Resource().V1beta1().DeviceClasses().Informer() },
}

func v1(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}
