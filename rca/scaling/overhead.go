package scaling

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// overhead is how Karpenter words what DaemonSets would take of a node that it makes
// (pkg/controllers/provisioning/scheduling/scheduler.go).
var overhead = regexp.MustCompile(`daemonset overhead=(\{[^}]*\})`)

// Overhead is what DaemonSets would take of each new node, as Karpenter's words have it, their
// pods among it; nil where those do not say.
func (r Reason) Overhead() corev1.ResourceList {
	m := overhead.FindStringSubmatch(r.Text)
	if m == nil {
		return nil
	}
	amounts := map[string]string{}
	if json.Unmarshal([]byte(m[1]), &amounts) != nil {
		return nil // cut short
	}
	out := corev1.ResourceList{}
	for name, amount := range amounts {
		q, err := resource.ParseQuantity(amount)
		if err != nil {
			return nil
		}
		out[corev1.ResourceName(name)] = q
	}
	return out
}

// otherGPUs begin the names of machines whose GPUs or accelerators are not NVIDIA's, though
// their names are near: EC2's g4ad is AMD's, dl is Habana's, trn and inf are AWS's own.
var otherGPUs = []string{"g4ad", "dl1", "dl2", "trn", "inf"}

// partGPUs begin the names of machines with a part of a GPU, of which EC2 tells the number as 0 (LogicalGpuCount apart).
var partGPUs = []string{"g6f", "gr6f"}

// OtherGPUs is the requirement by which a pool takes machines with GPUs of another maker
// alone: its key, and its values; empty where none is known to do so.
func (p *Pool) OtherGPUs() (key string, values []string) {
	return p.only(func(key, v string) bool {
		if key == "instance-gpu-manufacturer" || key == "sku-gpu-manufacturer" {
			return v != "nvidia"
		}
		return beginsAs(otherGPUs, key, v)
	})
}

// PartGPUs is likewise the requirement by which it takes machines with parts of GPUs alone.
func (p *Pool) PartGPUs() (key string, values []string) {
	return p.only(func(key, v string) bool { return beginsAs(partGPUs, key, v) })
}

// beginsAs says whether a family or type of machines is one of those.
func beginsAs(families []string, key, v string) bool {
	return (key == "instance-family" || key == "instance-type") && slices.ContainsFunc(families, func(o string) bool { return strings.HasPrefix(strings.ToLower(v), o) })
}

// only is the requirement all of whose values are such, by its key without the domain.
func (p *Pool) only(such func(key, value string) bool) (key string, values []string) {
	for _, r := range p.Requirements {
		_, name, _ := strings.Cut(r.Key, "/")
		if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) > 0 && !slices.ContainsFunc(r.Values, func(v string) bool { return !such(name, v) }) {
			return r.Key, r.Values
		}
	}
	return "", nil
}
