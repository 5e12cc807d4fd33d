package edit

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// place is where the object of a kind that is not Kubernetes' own keeps the spec of its pods.
type place struct {
	// At is the path, with a %s for what the pod's Label says where there is one for each part of the workload.
	At, Label string
	// Once: its controller, or the API, does not take another spec for what is made from it already: the whole
	// is made again.
	Once bool
	// Named is how the path writes what the label says; as it is where that is nil.
	Named func(string) string
}

// places are those of kinds that run GPU work: KServe (its pods' spec stands in the component itself), JobSet,
// LeaderWorkerSet, the Kubeflow training operator, the Spark operator, Volcano, Knative, Kubeflow notebooks, KubeRay, Tekton, whose
// webhook refuses an edit of what has begun, and Kubeflow's Trainer, which has no template of its own but writes the resources into
// that of its runtime.
var places = map[string]place{
	"InferenceService.serving.kserve.io":             {At: "spec.%s", Label: "component"},
	"JobSet.jobset.x-k8s.io":                         {At: "spec.replicatedJobs[name=%s].template.spec.template.spec", Label: "jobset.sigs.k8s.io/replicatedjob-name", Once: true},
	"LeaderWorkerSet.leaderworkerset.x-k8s.io":       {At: "spec.leaderWorkerTemplate.workerTemplate.spec, of leaders leaderTemplate.spec"},
	"PyTorchJob.kubeflow.org":                        replicas("pytorch"),
	"TFJob.kubeflow.org":                             replicas("tf"),
	"MPIJob.kubeflow.org":                            replicas("mpi"),
	"XGBoostJob.kubeflow.org":                        replicas("xgb"),
	"PaddleJob.kubeflow.org":                         replicas("paddle"),
	"JAXJob.kubeflow.org":                            replicas("jax"),
	"Job.batch.volcano.sh":                           {At: "spec.tasks[name=%s].template.spec", Label: "volcano.sh/task-spec", Once: true},
	"Service.serving.knative.dev":                    {At: "spec.template.spec"},
	"Notebook.kubeflow.org":                          {At: "spec.template.spec"},
	"RayCluster.ray.io":                              rayGroup("spec", false),
	"RayJob.ray.io":                                  rayGroup("spec.rayClusterSpec", true),
	"RayService.ray.io":                              rayGroup("spec.rayClusterConfig", false),
	"SparkApplication.sparkoperator.k8s.io":          {At: "spec.%s", Label: "spark-role", Named: sparkRole},
	"ScheduledSparkApplication.sparkoperator.k8s.io": {At: "spec.template.%s", Label: "spark-role", Named: sparkRole},
	"PipelineRun.tekton.dev":                         {At: "spec.taskRunTemplate.podTemplate, and of resources spec.taskRunSpecs[].computeResources", Once: true},
	"TaskRun.tekton.dev":                             {At: "spec.podTemplate, and of resources spec.computeResources", Once: true},
	"TrainJob.trainer.kubeflow.org":                  {At: "spec.trainer.resourcesPerNode, and all but resources in its runtime", Once: true},
}

// sparkRole is a part of a SparkApplication: executors come after their driver, and are to have what it is given (the operator
// reads none of it from the spec above both).
func sparkRole(role string) string {
	if role == "driver" {
		return "driver and likewise executor"
	}
	return role
}

// replicas is a job of the training operator's, which makes no pod again for another template.
func replicas(of string) place {
	return place{At: "spec." + of + "ReplicaSpecs.%s.template.spec", Label: "training.kubeflow.org/replica-type", Once: true, Named: func(kind string) string { return strings.ToUpper(kind[:1]) + kind[1:] }}
}

// rayGroup is a group of KubeRay's: that of the head has a place of its own, and a name that KubeRay gives it. A RayJob makes its
// cluster once.
func rayGroup(cluster string, once bool) place {
	return place{At: cluster + ".%s.template.spec", Label: "ray.io/group", Once: once, Named: func(group string) string {
		if group == "headgroup" {
			return "headGroupSpec"
		}
		return "workerGroupSpecs[groupName=" + group + "]"
	}}
}

// of is where the spec of that pod stands; empty where the pod does not say of which part it is.
func (k place) of(p *corev1.Pod) string {
	if k.Label == "" {
		return k.At
	}
	part := p.Labels[k.Label]
	if part == "" {
		return ""
	}
	if k.Named != nil {
		part = k.Named(part)
	}
	return strings.Replace(k.At, "%s", part, 1)
}

// standing is a change of the pod spec with where in the workload it stands, where that is known: in each part of it of which a
// pod of the incident waits.
func (c *Workload) standing(change string) string {
	k := places[c.Incident.Workload.Kind]
	at := k.of(c.Pod)
	if at == "" {
		return change
	}
	parts := []string{at}
	for _, p := range c.WaitingPods() {
		if other := k.of(p); other != "" && !slices.Contains(parts, other) && !strings.Contains(at, "likewise") {
			parts = append(parts, other)
		}
	}
	return strings.Join(parts, " and likewise ") + ": " + change
}
