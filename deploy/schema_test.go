package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// recorded are the kinds as they were when plans and journals were first numbered.
const recorded = "testdata/schema-1"

// After a downgrade an older program reads what today's has written, and writes it under
// today's kinds, which stay: whatever has this schema it reads in full, and whatever it writes
// is taken. What cannot be so raises v1alpha1.Schema, and then the older one leaves it alone.
func TestOlderProgramsReadAndWriteTheKinds(t *testing.T) {
	if v1alpha1.Schema != 1 {
		t.Fatalf("schema %d: record its kinds beside those of 1, and compare with them", v1alpha1.Schema)
	}
	files, err := filepath.Glob(recorded + "/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		for _, says := range breaks(kindIn(t, f), kindIn(t, "charts/unpend/crds/"+name), "") {
			t.Errorf("%s: %s", name, says)
		}
	}
}

// Each change that an older program would not survive is told, by the path of its field.
func TestBreaksAreTold(t *testing.T) {
	const file = recorded + "/unpend.dev_remediations.yaml"
	for name, tc := range map[string]struct {
		at   []string
		edit func(at map[string]any)
		want string // empty: that is no matter
	}{
		"nothing":       {nil, func(map[string]any) {}, ""},
		"a word":        {[]string{"spec"}, func(at map[string]any) { at["description"] = "other" }, ""},
		"a new field":   {[]string{"status"}, func(at map[string]any) { within(at, "properties")["later"] = map[string]any{"type": "string"} }, ""},
		"a field less":  {[]string{"status"}, func(at map[string]any) { delete(within(at, "properties"), "progress") }, ".status.progress is gone"},
		"another type":  {[]string{"status", "evicted"}, func(at map[string]any) { at["type"] = "string" }, ".status.evicted: type is string, it was integer"},
		"a new phase":   {[]string{"status", "phase"}, func(at map[string]any) { at["enum"] = append(at["enum"].([]any), "Paused") }, ".status.phase: enum is [Pending Queued Running Undoing Succeeded Failed Stopped Parked Stale Expired Refused Rejected Superseded Paused], it was [Pending Queued Running Undoing Succeeded Failed Stopped Parked Stale Expired Refused Rejected Superseded]"},
		"wanted now":    {[]string{"status"}, func(at map[string]any) { at["required"] = []any{"later"} }, ".status: required is [later], it was <nil>"},
		"a lower bound": {[]string{"spec", "title"}, func(at map[string]any) { at["maxLength"] = 40. }, ".spec.title: maxLength is 40, it was 400"},
		"a new rule":    {[]string{"status"}, func(at map[string]any) { at["x-kubernetes-validations"] = []any{"no"} }, ".status: x-kubernetes-validations is [no], it was <nil>"},
		"an action's":   {[]string{"spec", "actions"}, func(at map[string]any) { within(at, "items", "properties")["later"] = map[string]any{"type": "string"} }, ".spec.actions[].later is new, and part of the plan's name"},
	} {
		t.Run(name, func(t *testing.T) {
			now := kindIn(t, file)
			at := now
			for _, field := range tc.at {
				at = within(at, "properties", field)
			}
			tc.edit(at)
			var want []string
			if tc.want != "" {
				want = []string{tc.want}
			}
			if got := breaks(kindIn(t, file), now, ""); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// kindIn is the schema of the one version of a kind that a file defines.
func kindIn(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema map[string]map[string]any
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil || len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Name != "v1alpha1" {
		t.Fatalf("%s: %+v, %v", file, crd.Spec.Versions, err)
	}
	return crd.Spec.Versions[0].Schema["openAPIV3Schema"]
}

func within(at map[string]any, names ...string) map[string]any {
	for _, name := range names {
		at, _ = at[name].(map[string]any)
	}
	return at
}

// breaks are the differences at a path, and below it, that an older program does not survive.
// A new field it may pass over, and keeps, but for one of an action: those make the plan's name.
func breaks(was, now map[string]any, path string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(union(was, now))) {
		switch key {
		case "description":
		case "items", "additionalProperties":
			out = append(out, breaks(within(was, key), within(now, key), path+"[]")...)
		case "properties":
			out = append(out, breaksOf(within(was, key), within(now, key), path)...)
		default:
			if !reflect.DeepEqual(was[key], now[key]) {
				out = append(out, fmt.Sprintf("%s: %s is %v, it was %v", path, key, now[key], was[key]))
			}
		}
	}
	return out
}

func breaksOf(was, now map[string]any, path string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(union(was, now))) {
		field := path + "." + name
		switch {
		case now[name] == nil:
			out = append(out, field+" is gone")
		case was[name] != nil:
			out = append(out, breaks(within(was, name), within(now, name), field)...)
		case strings.HasPrefix(path, actions):
			out = append(out, field+" is new, and part of the plan's name")
		}
	}
	return out
}

const actions = ".spec.actions[]"

func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}
