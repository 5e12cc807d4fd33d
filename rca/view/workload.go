package view

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

// Template is the pod spec the workload makes its pods from; nil when the
// workload could not be read or is a bare pod.
func (w *Cluster) Template(of incident.Ref) *corev1.PodSpec {
	owner, ok := w.State.Owner(of.Kind, of.Namespace, of.Name)
	if !ok {
		return nil
	}
	switch o := owner.(type) {
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec
	case *batchv1.Job:
		return &o.Spec.Template.Spec
	}
	return nil
}

// MadeFrom is the spec that the nearest of a pod's owners whose template is read makes it from,
// and that owner; nil where none is.
func (w *Cluster) MadeFrom(p *corev1.Pod) (*corev1.PodSpec, incident.Ref) {
	for _, of := range incident.Owners(p, w.State.Owner)[1:] {
		if spec := w.Template(of); spec != nil {
			return spec, of
		}
	}
	return nil, incident.Ref{}
}

// IncidentOf is the incident that a waiting pod is part of.
func (w *Cluster) IncidentOf(p *corev1.Pod) string {
	return incident.ID(w.WorkloadOf(p), incident.Requests(p))
}

// Team names what runs or stops together.
type Team incident.Ref

// TeamOf is the workload whose pods are never evicted for one of them: what Kueue has admitted
// as one, else the topmost owner. Of a CronJob it is the pod's own run alone, and of what owns an
// operator's workload (an experiment its trials) that workload. A bare pod is on its own.
func (w *Cluster) TeamOf(p *corev1.Pod) Team {
	chain := incident.Owners(p, w.State.Owner)
	for _, o := range chain {
		if admitted, ok := w.admitted[o]; ok {
			return admitted
		}
	}
	if r := RevisionOf(p); r.Service != "" { // its revisions make way for each other by their own rules
		return Team{Kind: r.Kind, Namespace: p.Namespace, Name: r.Service}
	}
	if at := slices.IndexFunc(chain, func(o incident.Ref) bool { return o.Kind == "CronJob" }); at > 0 {
		return Team(chain[at-1])
	}
	for _, o := range chain[1:] { // what owns an operator's workload may own others, that end on their own
		if !incident.OwnKind(o.Kind) && o.Kind != "Pod" {
			return Team(o)
		}
	}
	return Team(chain[len(chain)-1])
}

// admittedAs are Kueue's Workloads by the object that each stands for.
func admittedAs(queued []*unstructured.Unstructured) map[incident.Ref]Team {
	out := map[incident.Ref]Team{}
	for _, q := range queued {
		for _, o := range q.GetOwnerReferences() {
			out[incident.Ref{Kind: incident.OwnerKind(&o), Namespace: q.GetNamespace(), Name: o.Name}] = Team{Kind: "Workload", Namespace: q.GetNamespace(), Name: q.GetName()}
		}
	}
	return out
}

// Revision is what makes a service's pods of one version, beside that of another until the new one serves: Knative numbers them,
// and each makes its own Deployment (serving, pkg/apis/serving/register.go); of a RayService each is a RayCluster (kuberay,
// ray-operator/controllers/ray/utils/constant.go).
type Revision struct{ Kind, Service, Name string }

// RevisionOf is the pod's; zero for none.
func RevisionOf(p *corev1.Pod) Revision {
	const ray = "ray.io/originated-from-"
	switch {
	case p.Labels["serving.knative.dev/service"] != "":
		return Revision{"Service.serving.knative.dev", p.Labels["serving.knative.dev/service"], p.Labels["serving.knative.dev/revision"]}
	case p.Labels[ray+"crd"] == "RayService" && p.Labels["ray.io/cluster"] != "":
		return Revision{"RayService", p.Labels[ray+"cr-name"], p.Labels["ray.io/cluster"]}
	}
	return Revision{}
}

// Running are the pods of a workload that have a node and have not ended, the newest
// first; those that are leaving already are left out.
func (w *Cluster) Running(of incident.Ref) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range w.State.Pods {
		if p.Namespace == of.Namespace && p.Spec.NodeName != "" && !Ended(p) && p.DeletionTimestamp == nil && w.isOf(p, of) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return out
}

// Waiting counts the pods of a workload that wait.
func (w *Cluster) Waiting(of incident.Ref) int { return len(w.WaitingOf(of)) }

// WaitingOf are the pods of a workload that wait.
func (w *Cluster) WaitingOf(of incident.Ref) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range w.State.Pods {
		if _, _, waits := incident.Waiting(p); waits && p.Namespace == of.Namespace && w.isOf(p, of) {
			out = append(out, p)
		}
	}
	return out
}

// isOf says whether a workload, its own or one that owns that, is the pod's.
func (w *Cluster) isOf(p *corev1.Pod, of incident.Ref) bool {
	return slices.Contains(incident.Owners(p, w.State.Owner), of)
}

// meetingKinds are workloads whose members meet before any of them works; elasticKinds those
// that may begin with some of them.
var (
	meetingKinds = []string{"PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob", "TrainJob", "JobSet", "LeaderWorkerSet"}
	elasticKinds = []string{"RayCluster", "RayJob", "RayService", "SparkApplication", "DaskCluster", "DaskJob", "AppWrapper"}
)

// MembersMeet says whether members of a workload of that kind wait for each other, and how well
// that is known.
func MembersMeet(kind string) (diagnosis.Certainty, bool) {
	name, _, _ := strings.Cut(kind, ".")
	switch {
	case slices.Contains(meetingKinds, name):
		return diagnosis.Proven, true
	case slices.Contains(elasticKinds, name), kind == "Job.batch.volcano.sh":
		return diagnosis.Likely, true
	}
	return "", false
}

// MemberOf is the workload that a pod is a member of: the nearest whose members meet, for what
// owns that (an experiment its trials) may own several; without one, the topmost.
func (w *Cluster) MemberOf(p *corev1.Pod) incident.Ref {
	chain := incident.Owners(p, w.State.Owner)
	for _, of := range chain {
		if _, meet := MembersMeet(of.Kind); meet {
			return of
		}
	}
	return chain[len(chain)-1]
}

// groupLabel numbers the group of a LeaderWorkerSet that a pod is of (lws,
// api/leaderworkerset/v1/leaderworkerset_types.go).
const groupLabel = "leaderworkerset.sigs.k8s.io/group-index"

// GroupOf is the group of its workload that a pod is of, where the members of each meet and the
// groups work without each other; empty where all members meet.
func GroupOf(p *corev1.Pod) string { return p.Labels[groupLabel] }

// InGroup claims of which group a pod is; nothing where its workload has none.
func InGroup(p *corev1.Pod) []diagnosis.Claim {
	if GroupOf(p) == "" {
		return nil
	}
	return []diagnosis.Claim{diagnosis.That(diagnosis.Labels, groupLabel, diagnosis.Is, GroupOf(p))}
}

// WaitingGroups are the groups of a workload that wait for a member.
func (w *Cluster) WaitingGroups(of incident.Ref) map[string]bool {
	out := map[string]bool{}
	for _, p := range w.State.Pods {
		if _, _, waits := incident.Waiting(p); waits && p.Namespace == of.Namespace && GroupOf(p) != "" && w.isOf(p, of) {
			out[GroupOf(p)] = true
		}
	}
	return out
}

// WorkloadOf is whose pod it is.
func (w *Cluster) WorkloadOf(p *corev1.Pod) incident.Ref { return incident.Topmost(p, w.State.Owner) }
