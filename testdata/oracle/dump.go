// Package oracle holds what a diagnosis says against the objects of its dump, as a person
// would who has kubectl and no other program: it reads YAML, and knows nothing of how the
// diagnosis was made.
package oracle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// object is one object of the API as its YAML has it.
type object map[string]any

// Dump is what the files of a folder hold.
type Dump struct{ objects []object }

// Read reads every YAML and JSON file of a folder but want.yaml.
func Read(folder string) (*Dump, error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	d := &Dump{}
	for _, f := range files {
		if ext := filepath.Ext(f.Name()); f.Name() == "want.yaml" || ext != ".yaml" && ext != ".json" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return nil, err
		}
		dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			var o object
			if err := dec.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name(), err)
			}
			d.take(o)
		}
	}
	return d, nil
}

func (d *Dump) take(o object) {
	items, list := o["items"].([]any)
	if !list {
		d.objects = append(d.objects, o)
		return
	}
	for _, i := range items {
		if item, ok := i.(map[string]any); ok {
			if _, typed := item["kind"]; !typed {
				kind := o.text("kind")
				item["kind"] = kind[:max(0, len(kind)-len("List"))]
			}
			d.objects = append(d.objects, object(item))
		}
	}
}

// of are the objects of a kind; of one API alone where its group stands behind the name.
func (d *Dump) of(kind string) []object {
	var out []object
	name, group, grouped := strings.Cut(kind, ".")
	for _, o := range d.objects {
		if o.text("kind") == name && (!grouped || strings.HasPrefix(o.text("apiVersion"), group+"/")) {
			out = append(out, o)
		}
	}
	return out
}

func (d *Dump) node(name string) object {
	for _, o := range d.of("Node") {
		if o.text("metadata", "name") == name {
			return o
		}
	}
	return nil
}

// at is what stands behind a path; nil when nothing does.
func (o object) at(path ...string) any {
	var now any = map[string]any(o)
	for _, key := range path {
		m, ok := now.(map[string]any)
		if !ok {
			return nil
		}
		now = m[key]
	}
	return now
}

func (o object) text(path ...string) string {
	s, _ := o.at(path...).(string)
	return s
}

func (o object) list(path ...string) []object {
	items, _ := o.at(path...).([]any)
	var out []object
	for _, i := range items {
		if m, ok := i.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func (o object) texts(path ...string) map[string]string {
	out := map[string]string{}
	m, _ := o.at(path...).(map[string]any)
	for k, v := range m {
		out[k] = fmt.Sprint(v)
	}
	return out
}

// amount is a quantity, 0 where none stands.
func (o object) amount(path ...string) float64 { return amount(o.at(path...)) }

func amount(v any) float64 {
	if v == nil {
		return 0
	}
	q, err := resource.ParseQuantity(fmt.Sprint(v))
	if err != nil {
		return 0
	}
	is := q.AsApproximateFloat64()
	if near := thousandths(is); math.Abs(near-is) < 1e-9 {
		return near // 7990m is 7.99, as a sum of parts is
	}
	return is
}

// thousandths takes from a sum what its parts, which are quantities, cannot have.
func thousandths(sum float64) float64 { return math.Round(sum*1000) / 1000 }

// asks is what a pod requests of a resource; limits stand for requests that are not stated.
// Init containers that end count where one alone asks more, and what a RuntimeClass adds in any case. What is asked for the pod
// as a whole goes before what its containers ask (Kubernetes 1.34).
func (o object) asks(name string) float64 {
	of := func(c object) float64 {
		if v := c.at("resources", "requests", name); v != nil {
			return amount(v)
		}
		return c.amount("resources", "limits", name)
	}
	sum, most := 0.0, 0.0
	for _, c := range o.list("spec", "initContainers") {
		if c.text("restartPolicy") == "Always" {
			sum += of(c)
			most = max(most, sum)
		} else {
			most = max(most, sum+of(c))
		}
	}
	for _, c := range o.list("spec", "containers") {
		sum += of(c)
	}
	all := max(sum, most)
	if v := o.at("spec", "resources", "requests", name); v != nil { // of the pod as a whole, in place of its containers'
		all = amount(v)
	}
	return all + o.amount("spec", "overhead", name)
}

// used is what the pods of a node request of a resource that have not ended.
func (d *Dump) used(node, name string) float64 {
	sum := 0.0
	for _, p := range d.of("Pod") {
		if phase := p.text("status", "phase"); p.text("spec", "nodeName") == node && !slices.Contains([]string{"Succeeded", "Failed"}, phase) {
			sum += p.asks(name)
		}
	}
	return sum
}
