package admit

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/view"
)

// What a LimitRange gives containers of CPU or memory is cut to what a node has left for each, where it is too much and
// something is left.
func TestAShareOfWhatANodeHasLeft(t *testing.T) {
	const cpu, memory, whole = "%s cpu for each of a, b", "%s memory for each of a, b", "ask for %s, which state none, or lower the defaults of LimitRange r to that"
	for name, tc := range map[string]struct {
		gives, own, free corev1.ResourceList // to a and b each, what main states, and what the node has
		want             string
		added            bool // b is in no template
	}{
		"CPU":                    {list("cpu", "8"), list("cpu", "1"), list("cpu", "4270m", "memory", "64Gi"), fmt.Sprintf(cpu, "1630m"), false},
		"in part of a webhook's": {list("cpu", "8"), list("cpu", "1"), list("cpu", "4270m", "memory", "64Gi"), fmt.Sprintf(cpu, "1630m"), true},
		"memory":                 {list("memory", "8Gi"), list("cpu", "1"), list("cpu", "9", "memory", "3073Mi"), fmt.Sprintf(memory, "1536Mi"), false},
		"both":                   {list("cpu", "8", "memory", "8Gi"), list("cpu", "1"), list("cpu", "3", "memory", "1Gi"), fmt.Sprintf(cpu, "1") + " and " + fmt.Sprintf(memory, "512Mi"), false},
		"it fits":                {list("cpu", "2"), list("cpu", "1"), list("cpu", "5", "memory", "64Gi"), "", false},
		"nothing is left":        {list("cpu", "8"), list("cpu", "4"), list("cpu", "4", "memory", "64Gi"), "", false},
		"it asks too much":       {list("cpu", "8"), list("cpu", "5"), list("cpu", "4", "memory", "64Gi"), "", false},
		"of one nothing left":    {list("cpu", "8", "memory", "8Gi"), list("memory", "1Gi"), list("cpu", "3", "memory", "1Gi"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n"}, func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
				n.Status.Allocatable = tc.free.DeepCopy()
				n.Status.Allocatable["pods"] = resource.MustParse("9")
			})
			w.Wait.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: tc.own}}}
			for _, name := range []string{"a", "b"} {
				w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: tc.gives.DeepCopy(), Limits: tc.gives.DeepCopy()}})
			}
			w.Wait.Annotations = map[string]string{"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container a; cpu, memory request for container b"}
			w.LimitRanges = []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: w.Wait.Namespace, Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: tc.gives}}}}}
			w.Deployed()
			if tc.added {
				w.Deployments[0].Spec.Template.Spec.Containers = w.Deployments[0].Spec.Template.Spec.Containers[:2]
			}
			c := w.bench(t, "Deployment")
			all := StateShare(c, c.Node("n"))
			if tc.want == "" || len(all) != 1 {
				if len(all) != 0 || tc.want != "" {
					t.Errorf("%+v", all)
				}
				return
			}
			if all[0].Title != fmt.Sprintf(whole, tc.want) || all[0].Manual != tc.added || (len(all[0].Actions) == 0) != tc.added {
				t.Errorf("by hand %v: %q, want %q in it", all[0].Manual, all[0].Title, tc.want)
			}
			tried := w.Wait.DeepCopy()
			all[0].Pod(tried)
			for name, q := range view.PodRequests(tried) {
				if free := tc.free[name]; q.Cmp(free) > 0 {
					t.Errorf("%s %s is asked then, %s there", q.String(), name, free.String())
				}
			}
		})
	}
}

// What a LimitRange gave a container is taken out of the range, and the pod is tried without it; what the pod
// asks for itself is left to it.
func TestWhatALimitRangeGaveIsTakenBack(t *testing.T) {
	for name, tc := range map[string]struct {
		note string
		bare bool
		want string
		then string // by what the pod is made again
	}{
		"given": {"LimitRanger plugin set: nvidia.com/gpu limit for container main", false, "take nvidia.com/gpu out of the defaults of LimitRange r, which gives it to main",
			"kubectl -n NS delete pod POD  # its owner makes another, which is given none"},
		"given to a pod of nobody's": {"LimitRanger plugin set: nvidia.com/gpu limit for container main", true, "take nvidia.com/gpu out of the defaults of LimitRange r, which gives it to main",
			"kubectl -n NS get pod POD -o yaml > POD.yaml  # take nvidia.com/gpu out of its resources there, too: nobody else makes it again\nkubectl replace --force -f POD.yaml"},
		"given by its max": {"LimitRanger plugin set: nvidia.com/gpu limit for container main", false, "take nvidia.com/gpu out of the defaults, max, min of LimitRange r, which gives it to main",
			"kubectl -n NS delete pod POD  # its owner makes another, which is given none"},
		"asked for itself": {"LimitRanger plugin set: cpu request for container main", false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.AddNode(sim.Node{Name: "n", GPUs: 1, MIGOff: []int{0}})
			w.Asking(list("nvidia.com/gpu", "1"))
			w.Wait.Annotations = map[string]string{"kubernetes.io/limit-ranger": tc.note}
			w.Wait.Spec.Containers[0].Name = "main"
			w.LimitRanges = []*corev1.LimitRange{{ObjectMeta: metav1.ObjectMeta{Namespace: w.Wait.Namespace, Name: "r"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
				Default: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}}}}}
			if strings.Contains(tc.want, "max") {
				w.LimitRanges[0].Spec.Limits[0].Max, w.LimitRanges[0].Spec.Limits[0].Min = list("nvidia.com/gpu", "8"), list("nvidia.com/gpu", "1")
			}
			c := w.bench(t, "Deployment")
			if c.Pod.OwnerReferences = nil; !tc.bare {
				c.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)}}
			}
			ch, ok := Undefault(c, "nvidia.com/gpu")
			if ok != (tc.want != "") || ch.Title != tc.want {
				t.Fatalf("%q, %v; want %q", ch.Title, ok, tc.want)
			}
			if !ok {
				return
			}
			tried := w.Wait.DeepCopy()
			ch.Pod(tried)
			if got := tried.Spec.Containers[0].Resources; len(got.Limits)+len(got.Requests) != 0 {
				t.Errorf("tried with %v", got)
			}
			if got, want := strings.Join(ch.Commands[1:], "\n"), strings.NewReplacer("NS", w.Wait.Namespace, "POD", w.Wait.Name).Replace(tc.then); got != want {
				t.Errorf("made again by\n%s\nwant\n%s", got, want)
			}
		})
	}
}
