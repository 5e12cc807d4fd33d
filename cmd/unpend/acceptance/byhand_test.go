package acceptance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// A controller that was told to leave its pods to people, or a part of them, stops those that
// the fix names and nobody else: once its template is changed, and a person has done what the
// commands say.
func TestWhatControllersLeaveToPeople(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	team := corev1.Taint{Key: "team", Value: "vision", Effect: corev1.TaintEffectNoSchedule}
	room := func(n int64) []*corev1.Node { return []*corev1.Node{gpuNode("gpu-1", 2), gpuNode("gpu-2", n, team)} }
	tolerate := func(restarts int, risk diagnosis.Risk, title, effect string) wantFix {
		return wantFix{Kinds: []diagnosis.FixKind{diagnosis.AddToleration}, Verdict: diagnosis.Schedules, Risk: risk, Restarts: &restarts, Title: title, Effect: effect}
	}
	for name, w := range map[string]whole{
		"partition": {nodes: room(1), make: setAs(3, func(s *appsv1.StatefulSet) { partition(s, 1) }), runs: 2, waits: 1,
			apply: tolerate(1, diagnosis.MediumRisk, "rolls statefulset/shard from ordinal 1 on, stopping 1 running pod", "1/1 1>0")},
		"partition counted from the first ordinal": {nodes: room(1), make: setAs(3, func(s *appsv1.StatefulSet) {
			s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 4}
			partition(s, 1)
		}), runs: 2, waits: 1,
			apply: tolerate(1, diagnosis.MediumRisk, "rolls statefulset/shard from ordinal 5 on, stopping 1 running pod", "1/1 1>0")},
		"partition above who waits": {nodes: room(3), make: setAs(3, func(s *appsv1.StatefulSet) {
			s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
			partition(s, 3)
		}), runs: 2, waits: 1, byHand: true,
			apply: tolerate(0, diagnosis.MediumRisk, "", "1/1 1>0")},
		"OnDelete": {nodes: room(1), make: setAs(3, func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}), runs: 2, waits: 1, byHand: true,
			apply: tolerate(0, diagnosis.MediumRisk, "", "1/1 1>0")},
		"ReplicaSet": {nodes: room(1), make: replicasOf(3, asksGPUs(1)), runs: 2, waits: 1, byHand: true,
			apply: tolerate(0, diagnosis.MediumRisk, "", "1/1 1>0")},
		"paused": {nodes: room(4), make: deploymentOf(3, asksGPUs(1)), runs: 2, waits: 1, byHand: true,
			then: func(t *testing.T, c *controlplane.ControlPlane, ns string) {
				_, err := c.Client().AppsV1().Deployments(ns).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{})
				must(t, err)
			},
			apply: tolerate(2, diagnosis.MediumRisk, "rolls deployment/web, stopping 2 running pods", "1/1 1>0")},
		"Kueue's": {nodes: []*corev1.Node{inPoolOf("a", gpuNode("gpu-1", 1)), inPoolOf("b", gpuNode("gpu-2", 2))}, make: jobOf(2, inPool(asksGPUs(1), "a")), runs: 1, waits: 1, byHand: true,
			then: func(t *testing.T, c *controlplane.ControlPlane, ns string) {
				_, err := c.Client().BatchV1().Jobs(ns).Patch(t.Context(), "train", types.MergePatchType, []byte(`{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"team"}}}`), metav1.PatchOptions{})
				must(t, err)
			},
			again: jobOf(2, asksGPUs(1)),
			apply: wantFix{Kinds: []diagnosis.FixKind{diagnosis.FixSelector}, Verdict: diagnosis.Schedules, Risk: diagnosis.HighRisk, Restarts: new(1), Effect: "1/1 1>0"}},
	} {
		t.Run(name, func(t *testing.T) { w.play(t, c) })
	}
	t.Run("a Job made again", func(t *testing.T) { isMadeAgain(t, c) })
}

// isMadeAgain does with a Job what the printed command says: what the API server itself wrote into
// it would be refused of the next one, once this one is gone.
func isMadeAgain(t *testing.T, c *controlplane.ControlPlane) {
	ns := c.Namespace(t)
	c.AddNodeObject(t, inPoolOf("b", gpuNode("gpu-1", 2)))
	jobOf(1, inPool(asksGPUs(1), "c"))(t, c, ns)
	var command string
	controlplane.Eventually(t, 30*time.Second, "it waits, and is to be made again", func() (bool, string) {
		d := why(t, "-n", ns, "--kubeconfig", c.Kubeconfig())
		for _, f := range d.Fixes {
			for _, command = range f.Commands {
				if strings.Contains(command, "replace --force -f job.json") {
					return true, ""
				}
			}
		}
		return false, fmt.Sprintf("%+v", d.Fixes)
	})
	jobs := c.Client().BatchV1().Jobs(ns)
	job, err := jobs.Get(t.Context(), "train", metav1.GetOptions{})
	must(t, err)
	job.ResourceVersion, job.UID = "", "" // as kubectl does
	kubectl(t, c, ns, "kubectl -n "+ns+" delete job/train")
	if _, err := jobs.Create(t.Context(), job, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Fatalf("as it was it is taken: %v", err)
	}
	const strips = `jq 'del(.spec.selector, .spec.template.metadata.labels["controller-uid", "batch.kubernetes.io/controller-uid"])'`
	if !strings.Contains(command, strips) {
		t.Errorf("%s does not have %s", command, strips)
	}
	job.Spec.Selector = nil
	delete(job.Spec.Template.Labels, "controller-uid")
	delete(job.Spec.Template.Labels, "batch.kubernetes.io/controller-uid")
	_, err = jobs.Create(t.Context(), job, metav1.CreateOptions{})
	must(t, err)
}

func partition(s *appsv1.StatefulSet, n int32) {
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: &n}}
}

// isLeftToPeople wants an approval of the fix to be refused, and does what its commands say.
func isLeftToPeople(t *testing.T, c *controlplane.ControlPlane, incident string, f diagnosis.Fix, ns string) {
	t.Helper()
	if code, out, errs := call(t, "approve", fmt.Sprintf("%s#%d", incident, f.ID), "--yes", "--kubeconfig", c.Kubeconfig(), "-n", ns); code != exitRefused || f.Automatic {
		t.Fatalf("approved: exit %d: %s%s", code, out, errs)
	}
	for _, command := range f.Commands {
		if !strings.HasPrefix(command, "# ") {
			kubectl(t, c, ns, command)
		}
	}
}

// kubectl does what a person would with a printed command: a patch, a deletion, a rollout that
// goes on.
func kubectl(t *testing.T, c *controlplane.ControlPlane, ns, command string) {
	t.Helper()
	command, ok := strings.CutPrefix(strings.Split(command, "  # ")[0], "kubectl -n "+ns+" ")
	patch, err := "", error(nil)
	if at := strings.Index(command, " --type=strategic -p '"); at >= 0 {
		command, patch = command[:at], strings.TrimSuffix(command[at+len(" --type=strategic -p '"):], "'")
	}
	words := strings.Fields(command)
	if !ok || len(words) < 2 {
		t.Fatalf("nobody here knows how to do %q", command)
	}
	kind, name, _ := strings.Cut(words[len(words)-1], "/")
	as, apps := []byte(patch), c.Client().AppsV1()
	switch words[0] + " " + kind {
	case "patch statefulset":
		_, err = apps.StatefulSets(ns).Patch(t.Context(), name, types.StrategicMergePatchType, as, metav1.PatchOptions{})
	case "patch replicaset":
		_, err = apps.ReplicaSets(ns).Patch(t.Context(), name, types.StrategicMergePatchType, as, metav1.PatchOptions{})
	case "patch deployment":
		_, err = apps.Deployments(ns).Patch(t.Context(), name, types.StrategicMergePatchType, as, metav1.PatchOptions{})
	case "rollout deployment":
		_, err = apps.Deployments(ns).Patch(t.Context(), name, types.MergePatchType, []byte(`{"spec":{"paused":false}}`), metav1.PatchOptions{})
	case "delete job":
		background := metav1.DeletePropagationBackground
		must(t, c.Client().BatchV1().Jobs(ns).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
		controlplane.Eventually(t, 30*time.Second, "the Job is gone", func() (bool, string) {
			_, err := c.Client().BatchV1().Jobs(ns).Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	default:
		if words[0] != "delete" || words[1] != "pod" {
			t.Fatalf("nobody here knows how to do %q", command)
		}
		haveSeen(t, c, ns)
		for _, pod := range words[2:] {
			must(t, c.Client().CoreV1().Pods(ns).Delete(t.Context(), pod, metav1.DeleteOptions{}))
		}
	}
	must(t, err)
}

// haveSeen waits until the controllers have seen their workloads as they are: a person is
// slower than they are.
func haveSeen(t *testing.T, c *controlplane.ControlPlane, ns string) {
	t.Helper()
	controlplane.Eventually(t, 30*time.Second, "the controllers have seen the patch", func() (bool, string) {
		sets, err := c.Client().AppsV1().StatefulSets(ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		replicas, err := c.Client().AppsV1().ReplicaSets(ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		sets.Items = slices.DeleteFunc(sets.Items, func(s appsv1.StatefulSet) bool { return s.Status.ObservedGeneration >= s.Generation })
		replicas.Items = slices.DeleteFunc(replicas.Items, func(s appsv1.ReplicaSet) bool { return s.Status.ObservedGeneration >= s.Generation })
		return len(sets.Items)+len(replicas.Items) == 0, fmt.Sprint(len(sets.Items), " sets and ", len(replicas.Items), " ReplicaSets have not")
	})
}

func replicasOf(n int32, template corev1.PodTemplateSpec) maker {
	return func(t *testing.T, c *controlplane.ControlPlane, ns string) {
		_, err := c.Client().AppsV1().ReplicaSets(ns).Create(t.Context(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "bare"},
			Spec: appsv1.ReplicaSetSpec{Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}, metav1.CreateOptions{})
		must(t, err)
		after(t, func(ctx context.Context) error {
			return c.Client().AppsV1().ReplicaSets(ns).Delete(ctx, "bare", metav1.DeleteOptions{})
		})
	}
}
