package changes

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/unpend/unpend/rca/causes"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

func gpuContainer(name string, count int64) corev1.Container {
	q := *resource.NewQuantity(count, resource.DecimalSI)
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{view.WholeGPU: q}, Limits: corev1.ResourceList{view.WholeGPU: q}}}
}

// Who keeps how many of the GPUs that a node has.
func TestFewerAreShared(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := func(k corev1.Container) corev1.Container { k.RestartPolicy = &always; return k }
	for name, c := range map[string]struct {
		init, containers []corev1.Container
		most             int64
		want             string // empty: not at all
	}{
		"one":                             {nil, []corev1.Container{gpuContainer("a", 4)}, 2, "a 2/4"},
		"who asks most gives":             {nil, []corev1.Container{gpuContainer("a", 1), gpuContainer("b", 6)}, 4, "a 1/1 b 3/6"},
		"of equals the first gives":       {nil, []corev1.Container{gpuContainer("a", 4), gpuContainer("b", 4)}, 5, "a 2/4 b 3/4"},
		"nobody is left with none":        {nil, []corev1.Container{gpuContainer("a", 1), gpuContainer("b", 1)}, 1, ""},
		"init alone asks too many":        {[]corev1.Container{gpuContainer("i", 8)}, []corev1.Container{gpuContainer("a", 2)}, 4, "a 2/2 i 4/8"},
		"both do":                         {[]corev1.Container{gpuContainer("i", 8)}, []corev1.Container{gpuContainer("a", 6)}, 4, "a 4/6 i 4/8"},
		"a sidecar runs beside":           {[]corev1.Container{sidecar(gpuContainer("s", 1)), gpuContainer("i", 4)}, []corev1.Container{gpuContainer("a", 4)}, 4, "a 3/4 s 1/1 i 3/4"},
		"init before the sidecar has all": {[]corev1.Container{gpuContainer("i", 4), sidecar(gpuContainer("s", 1))}, []corev1.Container{gpuContainer("a", 4)}, 4, "a 3/4 i 4/4 s 1/1"},
		"a node with none":                {nil, []corev1.Container{gpuContainer("a", 1)}, 0, ""},
		"a node that owes":                {nil, []corev1.Container{gpuContainer("a", 1)}, -3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := New(&causes.Case{Pod: &corev1.Pod{Spec: corev1.PodSpec{InitContainers: c.init, Containers: c.containers}}}, nil)
			all, ok := k.share(view.WholeGPU, c.most)
			var got []string
			for _, a := range all {
				got = append(got, fmt.Sprintf("%s %d/%d", a.name, a.keeps, a.asks))
			}
			if text := strings.Join(got, " "); ok != (c.want != "") || ok && text != c.want {
				t.Errorf("%v, %q; want %q", ok, text, c.want)
			}
		})
	}
}

// What is shared out the scheduler counts as no more than there is, and without sidecars
// as all of it wherever more was asked.
func TestSharedIsWhatTheSchedulerCounts(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	rapid.Check(t, func(r *rapid.T) {
		pod, sidecars := &corev1.Pod{}, false
		for i := range rapid.IntRange(1, 3).Draw(r, "containers") {
			pod.Spec.Containers = append(pod.Spec.Containers, gpuContainer(fmt.Sprintf("c%d", i), rapid.Int64Range(0, 9).Draw(r, "asks")))
		}
		for i := range rapid.IntRange(0, 3).Draw(r, "init") {
			k := gpuContainer(fmt.Sprintf("i%d", i), rapid.Int64Range(0, 9).Draw(r, "asks"))
			if rapid.Bool().Draw(r, "sidecar") {
				k.RestartPolicy, sidecars = &always, true
			}
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, k)
		}
		most := rapid.Int64Range(1, 16).Draw(r, "most")
		was := view.PodRequests(pod)[view.WholeGPU]
		all, ok := New(&causes.Case{Pod: pod}, nil).share(view.WholeGPU, most)
		if !ok {
			return
		}
		sets := map[string]map[corev1.ResourceName]edit.Amounts{}
		for _, k := range all {
			q := *resource.NewQuantity(k.keeps, resource.DecimalSI)
			sets[k.name] = map[corev1.ResourceName]edit.Amounts{view.WholeGPU: {Request: q, Limit: q}}
			if k.keeps > k.asks {
				r.Errorf("%s asks %d and is given %d", k.name, k.asks, k.keeps)
			}
		}
		edit.SetResources(pod.Spec.Containers, sets)
		edit.SetResources(pod.Spec.InitContainers, sets)
		is := view.PodRequests(pod)[view.WholeGPU]
		if is.Value() > most || !sidecars && is.Value() != min(most, was.Value()) {
			r.Errorf("%d are counted, of %d asked and %d there", is.Value(), was.Value(), most)
		}
	})
}
