package edit

import (
	"maps"
	"slices"
)

// OneEdit makes all that is changed in the workload's pod spec one change, in the place
// of the last: each would have the spec as it was before the others, and pods that are
// changed in place are gone once the workload is recreated.
func (c *Workload) OneEdit(changes []Change) []Change {
	edits, last := 0, 0
	merged, live := map[string]any{}, true
	for i, ch := range changes {
		if ch.template != nil {
			edits++
			last, live = i, live && ch.live
			merged = mergeSpecs(merged, ch.template)
		}
	}
	if edits < 2 {
		return changes
	}
	out := slices.Clone(changes)
	for i := range out {
		if out[i].template == nil {
			continue
		}
		out[i].Steps, out[i].Commands, out[i].Actions = nil, nil, nil
		if i == last {
			c.EditTemplate(&out[i], merged, live)
		}
	}
	return out
}

// mergeSpecs puts two patches of one pod spec together: containers by name, as a
// strategic merge does.
func mergeSpecs(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	for key, value := range b {
		switch v := value.(type) {
		case map[string]any:
			if had, ok := out[key].(map[string]any); ok {
				value = mergeSpecs(had, v)
			}
		case []map[string]any:
			if had, ok := out[key].([]map[string]any); ok {
				value = mergeNamed(had, v)
			}
		}
		out[key] = value
	}
	return out
}

func mergeNamed(a, b []map[string]any) []map[string]any {
	out := slices.Clone(a)
	for _, item := range b {
		if i := slices.IndexFunc(out, func(had map[string]any) bool { return had["name"] == item["name"] }); i >= 0 {
			out[i] = mergeSpecs(out[i], item)
		} else {
			out = append(out, item)
		}
	}
	return out
}
