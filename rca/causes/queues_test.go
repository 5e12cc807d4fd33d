package causes

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unpend/unpend/rca/diagnosis"
)

func object(namespace, name string, fields map[string]any) *unstructured.Unstructured {
	fields["metadata"] = map[string]any{"namespace": namespace, "name": name}
	return &unstructured.Unstructured{Object: fields}
}

func says(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Conditions[0].Message = message }
}

func inQueue(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["kai.scheduler/queue"] = name }
}

// A queue of KAI's without a parent takes no work in some set-ups: that is told where nothing
// else explains the refusal, and only there.
func TestQueueWithoutParent(t *testing.T) {
	const unable = "Unable to schedule pod"
	for name, row := range map[string]struct {
		parent, message string
		beside          string // the queue of a pod that runs
		gpus            int
		want            diagnosis.CauseID
	}{
		"no parent, and KAI says nothing":       {"", unable, "", 2, diagnosis.QueueMisconfigured},
		"a pod of it runs":                      {"", unable, "qa", 2, diagnosis.SchedulerRefused},
		"a pod of another runs":                 {"", unable, "other", 2, diagnosis.QueueMisconfigured},
		"it has a parent":                       {"dept", unable, "", 2, diagnosis.SchedulerRefused},
		"KAI says why":                          {"", "no nodes with enough resources were found", "", 2, diagnosis.SchedulerRefused},
		"the default scheduler has none either": {"", unable, "other", 1, diagnosis.SchedulerRefused},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.gpuNode(l4("n1", row.gpus))
			spec := map[string]any{}
			if row.parent != "" {
				spec["parentQueue"] = row.parent
			}
			w.Queues.KAI = []*unstructured.Unstructured{object("", "dept", map[string]any{}), object("", "qa", map[string]any{"spec": spec})}
			if row.beside != "" {
				w.pod("h", "n1", "nvidia.com/gpu", 1, by("kai-scheduler"), inQueue(row.beside))
			}
			w.pod("w", "", "nvidia.com/gpu", 1, by("kai-scheduler"), inQueue("qa"), says(row.message))
			c := w.open(t)
			c.Judge()
			for _, id := range []diagnosis.CauseID{diagnosis.QueueMisconfigured, diagnosis.SchedulerRefused} {
				if c.IsOwn(id) != (id == row.want) {
					t.Errorf("%s told: %v; want %s", id, c.IsOwn(id), row.want)
				}
			}
		})
	}
}

// What a queue of Volcano's may never hold is not waited for; what others hold of it is another
// matter.
func TestBeyondCapability(t *testing.T) {
	for name, row := range map[string]struct {
		capability, parents, least string // of nvidia.com/gpu
		want                       string
	}{
		"the gang asks more":         {"3", "", "4", "its gang together asks for 4 nvidia.com/gpu, and Volcano's Queue team may hold 3 of it in all"},
		"the gang asks all":          {"4", "", "4", ""},
		"the queue above holds less": {"8", "2", "4", "its gang together asks for 4 nvidia.com/gpu, and Volcano's Queue dept may hold 2 of it in all"},
		"one pod alone asks more":    {"1", "", "", "it asks for 2 nvidia.com/gpu, and Volcano's Queue team may hold 1 of it in all"},
		"it does not speak of GPUs":  {"", "", "4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.gpuNode(l4("n1", 8))
			holds := func(gpus string) map[string]any {
				list := map[string]any{"cpu": int64(96)}
				if gpus != "" {
					list["nvidia.com/gpu"] = gpus
				}
				return list
			}
			w.Queues.Volcano = []*unstructured.Unstructured{object("", "team", map[string]any{"spec": map[string]any{"parent": "dept", "capability": holds(row.capability)}}),
				object("", "dept", map[string]any{"spec": map[string]any{"parent": "root", "capability": holds(row.parents)}})}
			g := object("ml", "train", map[string]any{"spec": map[string]any{"minMember": int64(1), "queue": "team"}})
			if row.least != "" {
				g.Object["spec"].(map[string]any)["minResources"] = map[string]any{"nvidia.com/gpu": row.least}
			}
			w.PodGroups.Volcano = []*unstructured.Unstructured{g}
			w.pod("w", "", "nvidia.com/gpu", 2, by("volcano"), says("pod group is not ready"), func(p *corev1.Pod) { p.Annotations = map[string]string{"scheduling.k8s.io/group-name": "train"} })
			c := w.open(t)
			_, causes := c.Judge()
			if c.IsOwn(diagnosis.QueueNotAdmitted) != (row.want != "") || c.IsOwn(diagnosis.SchedulerRefused) != (row.want == "") || row.want != "" && causes[0].Says != row.want {
				t.Errorf("%+v, want %q", causes, row.want)
			}
		})
	}
}

// A rollout stands in its own way where its old pods hold every place that the new one could
// have: not where another workload does, nor where an old pod is to stop first.
func TestRolloutStandsApart(t *testing.T) {
	for name, row := range map[string]struct {
		surge, unavailable intstr.IntOrString
		stranger           string // the node that a pod of another workload is on
		want               bool
	}{
		"old pods on all nodes":     {intstr.FromInt32(1), intstr.FromInt32(0), "", true},
		"a stranger on one of them": {intstr.FromInt32(1), intstr.FromInt32(0), "n2", false},
		"an old pod is to stop":     {intstr.FromInt32(1), intstr.FromInt32(1), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for _, node := range []string{"n1", "n2"} {
				w.gpuNode(l4(node, 4))
			}
			apart := func(p *corev1.Pod) {
				p.Labels["app"] = "pool"
				p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pool"}}, TopologyKey: "kubernetes.io/hostname"}}}}
			}
			yes := true
			made := func(by string) func(*corev1.Pod) {
				return func(p *corev1.Pod) {
					apart(p)
					p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: by, UID: types.UID(by), Controller: &yes}}
				}
			}
			w.Deployments = []*appsv1.Deployment{{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "pool", UID: "pool"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(2)),
				Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &row.surge, MaxUnavailable: &row.unavailable}}}}}
			for _, rs := range []string{"old", "new"} {
				w.ReplicaSets = append(w.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: rs, UID: types.UID(rs), OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "pool", UID: "pool", Controller: &yes}}}})
			}
			for _, node := range []string{"n1", "n2"} {
				if node == row.stranger {
					w.pod("s", node, "nvidia.com/gpu", 1, apart)
				} else {
					w.pod("old-"+node, node, "nvidia.com/gpu", 1, made("old"))
				}
			}
			w.pod("w", "", "nvidia.com/gpu", 1, made("new"))
			c := w.open(t)
			c.Judge()
			if got := c.IsOwn(diagnosis.WorkloadDeadlock); got != row.want || len(c.Verdict.Feasible()) > 0 {
				t.Errorf("told: %v, want %v; feasible %v", got, row.want, c.Verdict.Feasible())
			}
		})
	}
}
