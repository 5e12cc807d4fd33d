package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Write prints everything a state holds as one v1 List, in "yaml" or "json": what
// FromFiles reads back to the same state. Env values, the fields of
// managedFields and kubectl's copies were left out when it was read.
func Write(w io.Writer, s *State, format string) error {
	items := []map[string]any{}
	for i := range kinds {
		k := &kinds[i]
		if len(k.objects(s)) == 0 && s.Unread[k.name] == "" {
			items = append(items, emptyList(k.resource.GroupVersion().WithKind(k.api())))
		}
		for _, o := range k.objects(s) {
			item, err := plain(o)
			if err != nil {
				return fmt.Errorf("write %s %s: %w", k.name, o.GetName(), err)
			}
			item["apiVersion"], item["kind"] = k.resource.GroupVersion().String(), k.api()
			items = append(items, item)
		}
	}
	for _, k := range s.OwnerKinds {
		if s.Unread[k.Resource.GroupResource().String()] == "" && !slices.ContainsFunc(s.Owners, func(o *metav1.PartialObjectMetadata) bool { return ownerKind(o) == k.Name() }) {
			items = append(items, emptyList(k.API))
		}
	}
	for _, o := range s.Owners {
		item, err := plain(o)
		if err != nil {
			return fmt.Errorf("write %s %s: %w", o.Kind, o.Name, err)
		}
		items = append(items, item)
	}
	meta := map[string]any{}
	if s.Clocked() {
		meta["annotations"] = map[string]string{takenAt: s.Now.UTC().Format(time.RFC3339)}
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "metadata": meta, "items": items}
	data, err := json.MarshalIndent(list, "", "  ")
	if err == nil && format == "yaml" {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return fmt.Errorf("write dump: %w", err)
	}
	if _, err := fmt.Fprintln(w, string(data)); err != nil {
		return fmt.Errorf("write dump: %w", err)
	}
	return nil
}

// emptyList says that there is none of a kind; its absence, that nobody looked.
func emptyList(k schema.GroupVersionKind) map[string]any {
	return map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind + "List", "items": []any{}}
}

func plain(o Object) (map[string]any, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(data, &out)
}

// In is the state without the waiting pods of other namespaces: what a dump of
// one namespace has to hold. Everything else stays, or the diagnosis would differ.
func (s *State) In(namespace string) *State {
	if namespace == "" {
		return s
	}
	out := &State{Now: s.Now, Live: s.Live, Taken: s.Taken, Unread: s.Unread, Owners: slices.Clone(s.Owners), OwnerKinds: s.OwnerKinds, OwnersAbsent: s.OwnersAbsent}
	for i := range kinds {
		k := &kinds[i]
		for _, o := range k.objects(s) {
			p, isPod := any(o).(*corev1.Pod)
			if isPod && p.Namespace != namespace && p.Spec.NodeName == "" {
				continue
			}
			k.add(out, o)
		}
	}
	out.finish()
	return out
}
