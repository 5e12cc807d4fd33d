package queues

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"
)

func controllers(image string, replicas, ready int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "volcano-system", Name: "volcano-controllers"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}, Status: appsv1.DeploymentStatus{ReadyReplicas: ready}}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
	return d
}

// Why a Job of Volcano has no PodGroup is told by what its controllers say of it, else by whether they
// are seen to be down; never that there is none where PodGroups were not read.
func TestWhyAJobHasNoGroup(t *testing.T) {
	const made, rest = "Volcano's controllers have made no PodGroup for it, and no pod before that", "\nJob.batch.volcano.sh/a/train: has no status and no pod\nJob.batch.volcano.sh/a/train: none of the PodGroups that were read is its own"
	const down = made + "; volcano-system/volcano-controllers, which would, "
	const image = "docker.io/volcanosh/vc-controller-manager:v1.12.1"
	warning := func(group, message string, ago time.Duration) *corev1.Event {
		return &corev1.Event{InvolvedObject: corev1.ObjectReference{APIVersion: group + "/v1", Kind: "Job", Namespace: "a", Name: "train"}, Type: corev1.EventTypeWarning, Reason: "PluginError", Message: message, LastTimestamp: metav1.Time{Time: rcatest.Noon.Add(-ago)}}
	}
	for name, tc := range map[string]struct {
		fill  func(*rcatest.World)
		young bool
		want  string
	}{
		"nothing is known of them": {nil, false, "likely: " + made + rest},
		"they are down":            {func(w *rcatest.World) { w.Deployments = []*appsv1.Deployment{controllers(image, 2, 0)} }, false, "proven: " + down + "has 0 of 2 pods ready" + rest + "\nDeployment/volcano-system/volcano-controllers: has 0 of 2 pods ready"},
		"they are scaled away":     {func(w *rcatest.World) { w.Deployments = []*appsv1.Deployment{controllers(image+"@sha256:1", 0, 0)} }, false, "proven: " + down + "is scaled to 0" + rest + "\nDeployment/volcano-system/volcano-controllers: is scaled to 0"},
		"they run":                 {func(w *rcatest.World) { w.Deployments = []*appsv1.Deployment{controllers(image, 1, 1)} }, false, "likely: " + made + rest},
		"others are down":          {func(w *rcatest.World) { w.Deployments = []*appsv1.Deployment{controllers("x/vc-scheduler", 1, 0)} }, false, "likely: " + made + rest},
		"they have said why": {func(w *rcatest.World) {
			w.Deployments = []*appsv1.Deployment{controllers(image, 2, 0)}
			w.Events = []*corev1.Event{warning("batch.volcano.sh", "older", time.Hour), warning("batch.volcano.sh", "failed to get plugin x", time.Minute), warning("batch.volcano.sh", "a word of that minute", time.Minute), warning("batch", "of another Job", 0)}
		}, false, "likely: " + made + "; they say: failed to get plugin x" + rest + "\nJob.batch.volcano.sh/a/train: PluginError: failed to get plugin x"},
		"it is new":              {nil, true, "likely: Volcano's controllers are about to make its PodGroup, and its pods after that" + rest},
		"PodGroups are not read": {func(w *rcatest.World) { w.Unread["PodGroup.scheduling.volcano.sh"] = "x" }, false, "possible: it has no pod, and whether Volcano has made a PodGroup for it was not read\nJob.batch.volcano.sh/a/train: has no status and no pod"},
		"they have begun with it": {func(w *rcatest.World) {
			w.VolcanoJobs = []*unstructured.Unstructured{object("a", "train", map[string]any{"status": map[string]any{"state": map[string]any{"phase": "Pending"}}})}
		}, false, "likely: " + made + strings.Replace(rest, "has no status and", "is Pending and has", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				if tc.fill != nil {
					tc.fill(w)
				}
			})
			c.Held, c.Incident.Since = &incident.Refusal{Owner: incident.Ref{Kind: "Job.batch.volcano.sh", Namespace: "a", Name: "train"}, Queue: "default", Ungrouped: true}, rcatest.Noon.Add(-time.Hour)
			if tc.young {
				c.Incident.Since = rcatest.Noon.Add(time.Second - time.Minute)
			}
			if got := told(c.NotAdmitted()); got != tc.want {
				t.Errorf("%s\nwant\n%s", got, tc.want)
			}
		})
	}
	if c := open(t, gated); c.WhyUngrouped() != nil {
		t.Error("of a pod that is there")
	}
}
