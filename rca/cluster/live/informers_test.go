package live

import (
	"testing"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/rca/cluster"
)

// Every kind is watched by the informer that client-go has for it, in each version that
// an API server may be asked for, and the table has no other.
func TestEveryKindHasItsInformer(t *testing.T) {
	f := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	known := 0
	for _, k := range cluster.Kinds() {
		if k.Custom || k.ByName || k.Name == "Event" { // whose informer is watcher/events'
			continue
		}
		versions := []string{k.Resource.Version}
		if k.OfDevices() {
			versions = cluster.DeviceVersions
		}
		for _, v := range versions {
			resource := k.Resource.GroupResource().WithVersion(v)
			generic, err := f.ForResource(resource)
			if err != nil {
				t.Fatal(err)
			}
			of := typedInformers[resource]
			if of == nil {
				t.Errorf("%s has no informer", resource)
				continue
			}
			if of(f).GetStore() != generic.Informer().GetStore() {
				t.Errorf("%s has the informer of another kind", resource)
			}
			known++
		}
	}
	if known != len(typedInformers) {
		t.Errorf("%d informers, %d are asked for", len(typedInformers), known)
	}
}
