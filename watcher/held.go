package watcher

import (
	"context"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/unpend/unpend/watcher/incident"
	"github.com/unpend/unpend/watcher/owners"
)

// heldKinds are the kinds by which queues hold who has no pods yet, and those that make pods of
// several templates.
var heldKinds = append([]schema.GroupKind{incident.KueueWorkload, incident.VolcanoGroup}, incident.Operated...)

// queues makes the informers of those that the API server serves: where it serves none nothing is
// asked for, and nothing kept. What is installed later is followed from the next start on.
func (w *Watcher) queues(ctx context.Context) dynamicinformer.DynamicSharedInformerFactory {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(w.opts.Dynamic, 0)
	if w.opts.Dynamic == nil {
		return factory
	}
	var names []schema.GroupResource
	for _, k := range heldKinds {
		plural, _ := apimeta.UnsafeGuessKindToResource(k.WithVersion(""))
		names = append(names, plural.GroupResource())
	}
	found := owners.Reader{Names: names}.Served(ctx, w.opts.Client.Discovery())
	for _, k := range found.Kinds {
		w.held[k.Name()] = factory.ForResource(k.Resource).Informer()
	}
	for name, err := range found.Untold {
		w.opts.Logger.WarnContext(ctx, "who waits without a pod is not seen by this kind", "kind", name, "error", err)
	}
	return factory
}
