package admission

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/core"                     //nolint:depguard // the judge of our arithmetic
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1" //nolint:depguard // the judge of our arithmetic
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"  //nolint:depguard // the judge of our arithmetic
	"pgregory.net/rapid"

	"github.com/unpend/unpend/watcher/incident"
)

// What is told of a LimitRange is what the API server's own admission says, of the
// pod with the defaults that it fills in itself.
func TestLimitsAreThoseOfTheAPIServer(t *testing.T) {
	refused, taken := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		lists := func(label string, of ...int) corev1.ResourceList { // -1: not set
			out := corev1.ResourceList{}
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "nvidia.com/gpu"} {
				if n := rapid.SampledFrom(of).Draw(r, label+string(name)); n >= 0 {
					out[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
				}
			}
			return out
		}
		loose := rapid.Bool().Draw(r, "loose")
		lr := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "limits"}}
		for _, kind := range []corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypePod} {
			item := corev1.LimitRangeItem{Type: kind}
			if loose { // or nearly every pod would be refused
				item.Max = lists("max", -1, -1, 8)
				lr.Spec.Limits = append(lr.Spec.Limits, item)
				continue
			}
			item.Min, item.Max, item.MaxLimitRequestRatio = lists("min", -1, -1, -1, -1, 1, 2), lists("max", -1, -1, -1, -1, 2, 6), lists("ratio", -1, -1, -1, -1, -1, -1, 1, 3)
			if kind == corev1.LimitTypeContainer && rapid.Bool().Draw(r, "defaults") {
				item.Default, item.DefaultRequest = lists("default", -1, -1, 0, 1, 2, 4), lists("defaultRequest", -1, -1, 0, 1, 2, 4)
			}
			lr.Spec.Limits = append(lr.Spec.Limits, item)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p"}}
		for i := range rapid.IntRange(1, 2).Draw(r, "containers") {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprint(i), Resources: corev1.ResourceRequirements{Requests: lists("request", -1, -1, 0, 1, 2, 4), Limits: lists("limit", -1, -1, 0, 1, 2, 4)}})
		}
		if rapid.Bool().Draw(r, "init") {
			pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{Requests: lists("init request", -1, -1, 0, 1, 2, 4), Limits: lists("init limit", -1, -1, 0, 1, 2, 4)}}}
		}
		want := admit(r, lr.DeepCopy(), pod)
		ours := pod.DeepCopy()
		incident.WithLimitDefaults(ours, []*corev1.LimitRange{lr})
		got := violationsOf(lr, ours)
		if (len(got) > 0) != (want != nil) {
			r.Fatalf("told %+v, the API server says %v", got, want)
		}
		if want != nil {
			refused++
		} else {
			taken++
		}
	})
	if refused == 0 || taken == 0 {
		t.Errorf("%d refused, %d taken: one is missing", refused, taken)
	}
	t.Logf("%d refused, %d taken", refused, taken)
}

// admit is what the API server does: its defaults, then limitranger's two passes.
func admit(r *rapid.T, lr *corev1.LimitRange, pod *corev1.Pod) error {
	for i := range lr.Spec.Limits {
		corev1conversion.SetDefaults_LimitRangeItem(&lr.Spec.Limits[i])
	}
	pod = pod.DeepCopy()
	corev1conversion.SetDefaults_Pod(pod)
	var internal core.Pod
	if err := corev1conversion.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		r.Fatal(err)
	}
	if err := limitranger.PodMutateLimitFunc(lr, &internal); err != nil {
		r.Fatal(err)
	}
	return limitranger.PodValidateLimitFunc(lr, &internal)
}
