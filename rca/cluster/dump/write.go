package dump

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher/incident"
)

// Write prints everything a state holds as one v1 List, in "yaml" or "json": what
// Read reads back to the same state. Env values, the fields of
// managedFields and kubectl's copies were left out when it was read.
func Write(w io.Writer, s *cluster.State, format string) error {
	items := []map[string]any{}
	for _, k := range cluster.Kinds() {
		if len(k.Objects(s)) == 0 && s.Unread[k.Name] == "" {
			items = append(items, emptyList(k.Resource.GroupVersion().WithKind(k.API())))
		}
		for _, o := range k.Objects(s) {
			item, err := plain(o)
			if err != nil {
				return fmt.Errorf("write %s %s: %w", k.Name, o.GetName(), err)
			}
			item["apiVersion"], item["kind"] = k.Resource.GroupVersion().String(), k.API()
			items = append(items, item)
		}
	}
	for _, k := range s.OwnerKinds {
		if s.Unread[k.Resource.GroupResource().String()] == "" && !slices.ContainsFunc(s.Owners, func(o *metav1.PartialObjectMetadata) bool {
			return incident.KindOf(o.GroupVersionKind().GroupKind()) == k.Name()
		}) {
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

func plain(o cluster.Object) (map[string]any, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(data, &out)
}
