package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A pod is kept small whatever its owner writes on it, and says all that is read of it.
func TestAPodIsKeptSmall(t *testing.T) {
	long := strings.Repeat("x", 250_000)
	gpu := corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}
	want := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", Labels: map[string]string{"app": "x"},
		Annotations: map[string]string{"scheduling.k8s.io/group-name": "train", corev1.MirrorPodAnnotationKey: "m", "unpend.dev/why": "1"}},
		Spec: corev1.PodSpec{NodeSelector: map[string]string{"a": "b"}, InitContainers: []corev1.Container{{Name: "i", Image: "x", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}},
			Containers: []corev1.Container{{Name: "c", Image: "x", Resources: gpu, Ports: []corev1.ContainerPort{{HostPort: 80}}}}}}
	p := want.DeepCopy()
	p.Annotations["example.com/notes"], p.Annotations["unpend.dev/long"], p.Annotations[lastApplied] = long, long, long
	for _, c := range []*corev1.Container{&p.Spec.InitContainers[0], &p.Spec.Containers[0]} {
		c.Args, c.Command, c.WorkingDir, c.TerminationMessagePath = []string{long}, []string{long}, long, long
		c.Env, c.EnvFrom = []corev1.EnvVar{{Name: long, Value: long}}, []corev1.EnvFromSource{{Prefix: long}}
		c.VolumeMounts, c.LivenessProbe = []corev1.VolumeMount{{Name: long}}, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{long}}}}
	}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{TargetContainerName: long}}
	Trim(p)
	if diff := cmp.Diff(want, p); diff != "" || p.Size() > 1<<10 {
		t.Error(p.Size(), diff)
	}
}

// What a LimitRange has written into a pod is a line for each of its containers, and longer than other notes; it is
// bounded, too.
func TestTheNoteOfALimitRangeIsLong(t *testing.T) {
	for _, tc := range []struct {
		key    string
		length int
		kept   bool
	}{{noteOfRange, 4096, true}, {noteOfRange, 4097, false}, {"pod-group-name", 512, true}, {"pod-group-name", 513, false}} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{tc.key: strings.Repeat("x", tc.length)}}}
		if Trim(p); (len(p.Annotations) == 1) != tc.kept {
			t.Errorf("%s of %d bytes is kept: %v", tc.key, tc.length, !tc.kept)
		}
	}
}

func TestWhatOthersWriteOnANodeStays(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"unpend.dev/operation": "{}", "example.com/a": "b", lastApplied: "x"}}}
	Trim(n)
	if diff := cmp.Diff(map[string]string{"unpend.dev/operation": "{}", "example.com/a": "b"}, n.Annotations); diff != "" {
		t.Error(diff)
	}
	none := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}}
	if Trim(none); none.Annotations != nil {
		t.Error(fmt.Sprint(none.Annotations))
	}
}
