package edit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
)

// written is a change of a pod spec as the workload's own kind has its fields: driver and executor of a SparkApplication have no
// containers, but cores, memory and gpu of their own (spark-operator api/v1beta2, SparkPodSpec).
func (c *Workload) written(spec map[string]any) string {
	if t := spec["tolerations"]; t != nil && len(spec) == 1 && c.Incident.Workload.Kind == "ClusterPolicy.nvidia.com" {
		return "spec.daemonsets.tolerations to " + string(diagnosis.MustJSON(t))
	}
	if kind := c.Incident.Workload.Kind; !strings.HasSuffix(kind, "SparkApplication.sparkoperator.k8s.io") || spec["containers"] == nil {
		return string(diagnosis.MustJSON(spec))
	}
	var of struct {
		Containers []struct {
			Resources struct {
				Requests, Limits map[string]*resource.Quantity
			}
		}
	}
	if err := json.Unmarshal(diagnosis.MustJSON(spec), &of); err != nil {
		return string(diagnosis.MustJSON(spec))
	}
	var fields []string
	for _, k := range of.Containers {
		fields = append(fields, sparkFields(k.Resources.Requests, k.Resources.Limits)...)
	}
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if key != "containers" {
			fields = append(fields, key+": "+string(diagnosis.MustJSON(spec[key])))
		}
	}
	return strings.Join(fields, ", ")
}

// sparkFields are the fields of what a container asks. Spark adds its own overhead to memory.
func sparkFields(requests, limits map[string]*resource.Quantity) []string {
	var out []string
	if q := requests["cpu"]; q != nil {
		out = append(out, fmt.Sprintf("coreRequest: %q", q.String()))
	}
	if q := limits["cpu"]; q != nil {
		out = append(out, fmt.Sprintf("coreLimit: %q", q.String()))
	}
	if q := requests["memory"]; q != nil {
		out = append(out, fmt.Sprintf("memory and memoryOverhead: together %s", q.String()))
	}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if q := limits[name]; q != nil && strings.Contains(name, "/") {
			out = append(out, fmt.Sprintf("gpu: {name: %s, quantity: %s}", name, q.String()))
		}
	}
	return out
}
