package program

import (
	"bytes"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
)

// Who has its GPUs and does not run there waits for no GPU, and yet is told of, with the words that say most; not who has just come,
// who runs, who asks for none, and nobody of another namespace.
func TestWhoHasItsGPUsAndDoesNotRunIsToldOf(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	always := corev1.ContainerRestartPolicyAlways
	pull := corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image x"}}}}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-2 * time.Hour))}}
	begun := corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{{Name: "proxy", State: running}, {Name: "check", State: running}}}
	for name, c := range map[string]struct {
		edit func(*corev1.Pod)
		want string
	}{
		"its image does not come": {func(p *corev1.Pod) { p.Status = pull }, "pod ml/w has its node and its GPUs, and is, 1 h old, Pending on n: c: ImagePullBackOff: Back-off pulling image x; Failed: no such image."},
		"it is initialized": {func(p *corev1.Pod) {
			p.Status, p.UID = begun, "u2"
			p.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: &always}, {Name: "check"}}
		}, "pod ml/w has its node and its GPUs, and is, 1 h old, Pending on n: init container check has not ended, begun at 2026-11-20T10:00:00Z."},
		"it has just come":  {func(p *corev1.Pod) { p.Status, p.CreationTimestamp = pull, metav1.NewTime(now.Add(-time.Minute)) }, ""},
		"it runs":           {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, ""},
		"it asks for none":  {func(p *corev1.Pod) { p.Status, p.Spec.Containers[0].Resources = pull, corev1.ResourceRequirements{} }, ""},
		"it is on its way":  {func(p *corev1.Pod) { p.Status, p.DeletionTimestamp = pull, new(metav1.NewTime(now)) }, ""},
		"of another's room": {func(p *corev1.Pod) { p.Status, p.Namespace = pull, "other" }, ""},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "w", UID: "u", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
			Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}}
		c.edit(p)
		event := func(words string, after time.Duration) *corev1.Event {
			return &corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ml", Name: "w", UID: "u"}, Type: corev1.EventTypeWarning, Reason: "Failed", Message: words, LastTimestamp: metav1.NewTime(now.Add(after))}
		}
		st := &cluster.State{Now: now, Pods: []*corev1.Pod{p}, Namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "ml"}}, {ObjectMeta: metav1.ObjectMeta{Name: "other"}}},
			Events: []*corev1.Event{event("an older word", -2*time.Minute), event("no such image", -time.Minute), event("Error: ErrImagePull", -time.Minute), event("Error: ImagePullBackOff", 0)}}
		var out bytes.Buffer
		if err := (target{namespace: "ml"}).explainNothing(st, &out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		first, rest, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
		if !strings.HasPrefix(first, "Nothing waits in namespace ml") || rest != c.want {
			t.Errorf("%s: %q, then\n%s\nwant %s", name, first, rest, c.want)
		}
		if c.want == "" || p.Namespace != "ml" {
			continue
		}
		out.Reset()
		if err := (target{namespace: "ml", name: "w"}).explainNothing(st, &out); err != nil || !strings.HasPrefix(out.String(), "w waits for no GPU, it has its own: pod ml/w is Pending on n: ") {
			t.Errorf("%s: %s (%v)", name, out.String(), err)
		}
	}
}
