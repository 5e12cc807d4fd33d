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

// OtherGPUs is the requirement by which a pool takes machines with GPUs of another maker
// alone: its key, and its values; empty where none is known to do so.
func (p *Pool) OtherGPUs() (key string, values []string) {
	for _, r := range p.Requirements {
		_, name, _ := strings.Cut(r.Key, "/")
		other := func(v string) bool {
			return slices.ContainsFunc(otherGPUs, func(o string) bool { return strings.HasPrefix(strings.ToLower(v), o) })
		}
		switch name {
		case "instance-gpu-manufacturer", "sku-gpu-manufacturer":
			other = func(v string) bool { return v != "nvidia" }
		case "instance-family", "instance-type":
		default:
			continue
		}
		if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) > 0 && !slices.ContainsFunc(r.Values, func(v string) bool { return !other(v) }) {
			return r.Key, r.Values
		}
	}
	return "", nil
}
