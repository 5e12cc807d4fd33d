package acceptance

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// dumped is what a dump holds, as it stands there.
type dumped struct {
	objects []*unstructured.Unstructured
	held    map[schema.GroupKind]string // kinds and their versions, those of which there is none included
}

// readDump reads every object of a scenario, with its times moved. What does not say since when
// it is there came to be when something is told of it first, or as long ago as gives anybody the
// time to speak of it.
func readDump(t *testing.T, scenario string, now time.Time, shift time.Duration) *dumped {
	t.Helper()
	d := &dumped{held: map[schema.GroupKind]string{}}
	files, err := filepath.Glob(filepath.Join(scenarios, scenario, "*.yaml"))
	must(t, err)
	for _, file := range files {
		if filepath.Base(file) != "want.yaml" {
			data, err := os.ReadFile(file)
			must(t, err)
			d.read(t, moved(string(data), shift))
		}
	}
	for _, o := range d.objects {
		if made := o.GetCreationTimestamp(); made.IsZero() {
			o.SetCreationTimestamp(metav1.NewTime(d.first(t, o, now.Add(shift-10*time.Minute))))
		}
	}
	return d
}

func (d *dumped) read(t *testing.T, text string) {
	t.Helper()
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		object, err := sigsyaml.YAMLToJSON(document)
		must(t, err)
		if string(object) != "null" {
			d.take(t, object)
		}
	}
}

// take takes in an object, or those of a list: of each kind's list where the dump is one of
// lists.
func (d *dumped) take(t *testing.T, text []byte) {
	t.Helper()
	var list struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	must(t, json.Unmarshal(text, &list))
	of, isList := strings.CutSuffix(list.Kind, "List")
	if of != "" {
		d.held[schema.FromAPIVersionAndKind(list.APIVersion, of).GroupKind()] = list.APIVersion
	}
	if !isList {
		o := &unstructured.Unstructured{}
		must(t, o.UnmarshalJSON(text))
		if spec, has := o.Object["spec"].(map[string]any); has && o.GetKind() == "Pod" && spec["restartPolicy"] == nil {
			spec["restartPolicy"] = "Always" // the API server writes it where a dump by hand says nothing
		}
		d.objects = append(d.objects, o)
	}
	for _, item := range list.Items {
		var head struct{ Kind string }
		must(t, json.Unmarshal(item, &head))
		if head.Kind == "" { // the list has said it
			item = slices.Concat([]byte(`{"apiVersion":"`+list.APIVersion+`","kind":"`+of+`",`), bytes.TrimPrefix(bytes.TrimSpace(item), []byte("{")))
		}
		d.take(t, item)
	}
}

// namespaces are those that its objects are in.
func (d *dumped) namespaces() []string {
	in := map[string]bool{}
	for _, o := range d.objects {
		in[o.GetNamespace()] = true
	}
	delete(in, "")
	return slices.Sorted(maps.Keys(in))
}

// owning are the kinds of objects that own others there, or would if their pods were taken.
func (d *dumped) owning() map[schema.GroupKind]bool {
	out := map[schema.GroupKind]bool{}
	for _, o := range d.objects {
		if reason, _, _ := unstructured.NestedString(o.Object, "reason"); o.GetKind() == "Event" && strings.HasPrefix(reason, "FailedCreate") {
			of, _, _ := unstructured.NestedStringMap(o.Object, "involvedObject")
			out[schema.FromAPIVersionAndKind(of["apiVersion"], of["kind"]).GroupKind()] = true
		}
		for _, owner := range o.GetOwnerReferences() {
			out[schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()] = true
		}
	}
	return out
}

// first is the first moment that the dump tells of about an object.
func (d *dumped) first(t *testing.T, about *unstructured.Unstructured, first time.Time) time.Time {
	t.Helper()
	tell := []any{about.Object["status"]}
	for _, o := range d.objects {
		of, _, err := unstructured.NestedStringMap(o.Object, "involvedObject")
		if must(t, err); o.GetKind() == "Event" && of["kind"] == about.GetKind() && of["namespace"] == about.GetNamespace() && of["name"] == about.GetName() {
			tell = append(tell, o.Object)
		}
	}
	text, err := json.Marshal(tell)
	must(t, err)
	for _, moment := range times.FindAllString(string(text), -1) {
		if at, err := time.Parse(time.RFC3339, moment); err == nil && at.Before(first) {
			first = at
		}
	}
	return first
}

// times are how the API, and what programs write into its texts, tell a moment, and toTheMinute
// is how unpend tells one.
var (
	times       = regexp.MustCompile(`\b\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)`)
	toTheMinute = regexp.MustCompile(`\b(\d{4}-\d\d-\d\d )?\d\d:\d\d UTC`)
)

// moved is a text with every moment in it moved.
func moved(text string, by time.Duration) string {
	text = times.ReplaceAllStringFunc(text, func(moment string) string {
		parts := times.FindStringSubmatch(moment)
		layout := "2006-01-02" + parts[1] + "15:04:05"
		if parts[2] != "" {
			layout += "." + strings.Repeat("0", len(parts[2])-1)
		}
		return later(moment, layout, parts[3], by)
	})
	return toTheMinute.ReplaceAllStringFunc(text, func(moment string) string {
		layout := "15:04"
		if toTheMinute.FindStringSubmatch(moment)[1] != "" {
			layout = "2006-01-02 15:04"
		}
		return later(moment, layout, " UTC", by)
	})
}

func later(moment, layout, zone string, by time.Duration) string {
	at, err := time.Parse(layout, strings.TrimSuffix(moment, zone))
	if err != nil {
		return moment
	}
	return at.Add(by).Format(layout) + zone
}

// with is the dump as it was some time later, with what the dump of a cluster without anything
// has of the kinds that this one does not hold: of most, that there are none.
func (d *dumped) with(t *testing.T, bare []byte, at time.Time) (file string) {
	t.Helper()
	var list map[string]any
	must(t, json.Unmarshal(bare, &list))
	list["metadata"] = map[string]any{"annotations": map[string]any{"unpend.dev/taken": at.UTC().Format(time.RFC3339)}}
	items := slices.DeleteFunc(list["items"].([]any), func(item any) bool {
		o := unstructured.Unstructured{Object: item.(map[string]any)}
		kind := o.GroupVersionKind().GroupKind()
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
		return d.held[kind] != ""
	})
	for kind, version := range d.held {
		items = append(items, map[string]any{"apiVersion": version, "kind": kind.Kind + "List", "items": []any{}})
	}
	for _, o := range d.objects {
		items = append(items, o.Object)
	}
	list["items"] = items
	text, err := json.Marshal(list)
	must(t, err)
	file = filepath.Join(t.TempDir(), "dump.json")
	must(t, os.WriteFile(file, text, 0o600))
	return file
}
