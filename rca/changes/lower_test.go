package changes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
)

// Of several containers that one asks for less which asks most; one that is put into the pods is told by the annotation
// that its maker reads, or looked for where nobody knows it.
func TestWhichContainerAsksForLess(t *testing.T) {
	for name, tc := range map[string]struct {
		asks    [2]corev1.ResourceList // of c, and of the second
		second  string
		putIn   bool
		want    string
		command string // a part of what a person runs; empty: the template is changed
	}{
		"the larger":           {[2]corev1.ResourceList{list("cpu", "20"), list("cpu", "90")}, "d", false, "ask for 76 instead of 90 cpu in container d (less than asked) in deployment/w", ""},
		"of each what it asks": {[2]corev1.ResourceList{list("cpu", "100"), list("memory", "2Ti")}, "d", false, "ask for 96 instead of 100 cpu in container c, 1Ti instead of 2Ti memory in container d (less than asked) in deployment/w", ""},
		"it would be nothing":  {[2]corev1.ResourceList{list("cpu", "97"), list("cpu", "98")}, "d", false, "", ""},
		"one that is put in": {[2]corev1.ResourceList{list("cpu", "20"), list("cpu", "90")}, "istio-proxy", true,
			"have container istio-proxy, which is put into the pods of deployment/w as they are made, ask for 76 cpu (less than asked)", `{"annotations":{"sidecar.istio.io/proxyCPU":"76"}}`},
		"by who is not known": {[2]corev1.ResourceList{list("cpu", "20"), list("cpu", "90")}, "d", true,
			"have container d, which is put into the pods of deployment/w as they are made, ask for 76 cpu (less than asked)", "kubectl get mutatingwebhookconfigurations"},
	} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", MIGOff: []int{0}})
		w.Asking(tc.asks[0])
		w.Deployed()
		second := corev1.Container{Name: tc.second, Resources: corev1.ResourceRequirements{Requests: tc.asks[1]}}
		w.Wait.Spec.Containers = append(w.Wait.Spec.Containers, second)
		if !tc.putIn {
			spec := &w.Deployments[0].Spec.Template.Spec
			spec.Containers = append(spec.Containers, second)
		}
		c := w.bench(t, "Deployment")
		lack, fits := c.Node("n").DeficitsOf(c.Wants)
		ch, ok := c.lowerRequest(c.Node("n"), lack, fits)
		if ch.Title != tc.want || ok != (tc.want != "") || !strings.Contains(strings.Join(ch.Commands, "\n"), tc.command) {
			t.Errorf("%s: %q, %q, want %q", name, ch.Title, ch.Commands, tc.want)
		}
	}
}

// Who holds GPUs does not land where only CPU is free.
func TestWhoHoldsDevicesLandsWhereTheyAre(t *testing.T) {
	for gpus, want := range map[int64]bool{0: true, 1: false} {
		w := newWorld()
		w.AddNode(sim.Node{Name: "n", GPUs: 1, MIGOff: []int{0}})
		w.AddNode(sim.Node{Name: "o"})
		h := w.AddHolder("h", "n", "cpu", 0, 0)
		if gpus > 0 {
			h.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = list("x", "1")["x"]
		}
		w.Asking(list("cpu", "96"))
		c := w.bench(t, "Deployment")
		lack, _ := c.Node("n").DeficitsOf(c.Wants)
		if got := c.mayLand(c.Node("n"), h, lack); got != want {
			t.Errorf("of %d GPUs: %v", gpus, got)
		}
	}
}
