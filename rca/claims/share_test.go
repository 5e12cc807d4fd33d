package claims

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/edit/edittest"
)

// A channel is for all pods of a workload on its node: they share a claim where each has one of its own by one template, and
// none of them runs elsewhere. Of other devices each has its own.
func TestAChannelIsShared(t *testing.T) {
	const want = "by hand, medium risk: have the pods of deployment/w use one ResourceClaim together, in place of one each by template link: a channel of a ComputeDomain is for all of its pods on a node"
	for name, tc := range map[string]struct {
		driver, template, claim string // template and claim of the pod that runs
		elsewhere               bool
		want                    bool
	}{
		"each by one template":     {channels, "link", "v-channel", false, true},
		"one runs elsewhere":       {channels, "link", "v-channel", true, false},
		"by another template":      {channels, "other", "v-channel", false, false},
		"it has another claim":     {channels, "link", "v-other", false, false},
		"of a device for one each": {"gpu.example", "link", "v-channel", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := edittest.New()
			link, entry := "link", "channel"
			w.Wait.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}, {Name: entry, ResourceClaimTemplateName: &link}}
			w.Wait.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: entry, ResourceClaimName: &link}, {Name: "gpu"}}
			w.Deployed()
			w.AddNode(sim.Node{Name: "n"})
			w.AddNode(sim.Node{Name: "m"})
			sibling := func(name, on string) {
				p := w.AddHolder(name, on, "cpu")
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "w", UID: "d", Controller: new(true)}}
				p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: entry, ResourceClaimTemplateName: &tc.template}}
				p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: entry, ResourceClaimName: &tc.claim}}
			}
			if sibling("v", "n"); tc.elsewhere {
				sibling("u", "m")
			}
			c := edit.New(w.Case(t, "Deployment"))
			inv := devices.TakeInventory(w.State)
			d, free := &devices.Device{ID: devices.ID{Driver: tc.driver, Name: "channel-0"}}, &devices.Device{ID: devices.ID{Driver: tc.driver, Name: "free"}}
			inv.ByNode["n"] = []*devices.Device{free, d}
			inv.Holders[d.ID] = &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "v-channel"}}
			c.Claims = &devices.Claims{Inventory: inv}
			ch, ok := share(c, c.Node("n"))
			if ok != tc.want || ok && edittest.ToldAll([]edit.Change{ch}) != want {
				t.Fatalf("%v %s", ok, edittest.ToldAll([]edit.Change{ch}))
			}
			if !ok {
				return
			}
			p := w.Wait.DeepCopy()
			ch.Pod(p)
			if k := p.Spec.ResourceClaims; k[0].Name != "gpu" || *k[1].ResourceClaimName != "v-channel" || k[1].ResourceClaimTemplateName != nil || len(p.Status.ResourceClaimStatuses) != 1 {
				t.Errorf("as it would be: %+v, %+v", k, p.Status.ResourceClaimStatuses)
			}
			if !slices.ContainsFunc(ch.Drained, func(p *corev1.Pod) bool { return p.Name == "v" }) {
				t.Errorf("stopped: %v", ch.Drained)
			}
		})
	}
}
