package rca

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unpend/unpend/rca/whatif"
)

// stuckAfter is when a pending layout is no longer in progress: MIG manager
// itself waits at most five minutes for each component (mig-parted
// pkg/mig/reconfigure/reconfigure.go).
const stuckAfter = 6 * time.Minute

// migConfigInProgress holds while MIG manager is within its deadline.
var migConfigInProgress = Rule{ID: MIGConfigInProgress, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	state := n.Labels[labelMIGState]
	if !c.gpuReason(n, b) || state != "pending" && state != "rebooting" {
		return nil
	}
	since, known := n.labelSetAt(labelMIGState)
	evidence := []Evidence{{n.ref(), fmt.Sprintf("label %s=%s, %s=%s", labelMIGConfig, n.Labels[labelMIGConfig], labelMIGState, state)}}
	if !known {
		return &finding{Possible, "its MIG layout is being changed", evidence}
	}
	if c.world.state.Now.Sub(since) > stuckAfter {
		return nil
	}
	return &finding{Proven, "its MIG layout is being changed now", evidence}
}}

// gpuReason says whether the blocker is about a GPU resource of a GPU node.
func (c *Case) gpuReason(n *nodeView, b whatif.Blocker) bool {
	_, mig := c.migShort(n, b)
	_, gpu := c.gpuShort(n, b)
	return mig || gpu
}

// labelSetAt reads from managedFields when the label was last written.
func (n *nodeView) labelSetAt(label string) (time.Time, bool) {
	key := fmt.Sprintf("%q", "f:"+label)
	var newest time.Time
	for _, m := range n.ManagedFields {
		if m.Time == nil || m.FieldsV1 == nil && m.Manager != "nvidia-mig-manager" {
			continue
		}
		if (m.FieldsV1 == nil || strings.Contains(m.FieldsV1.GetRawString(), key)) && m.Time.After(newest) {
			newest = m.Time.Time
		}
	}
	return newest, !newest.IsZero()
}

// migConfigFailed names the pods that still run on the node: mig-parted fails
// when a GPU is in use.
var migConfigFailed = Rule{ID: MIGConfigFailed, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	if !c.gpuReason(n, b) || n.Labels[labelMIGState] != "failed" {
		return nil
	}
	evidence := []Evidence{{n.ref(), fmt.Sprintf("label %s=failed for %s=%s", labelMIGState, labelMIGConfig, n.Labels[labelMIGConfig])}}
	for _, p := range n.pods {
		if len(asksOf(p)) > 0 {
			evidence = append(evidence, Evidence{"Pod/" + p.Namespace + "/" + p.Name, "still runs on a GPU of the node"})
		}
	}
	return &finding{Proven, fmt.Sprintf("MIG manager could not apply %q", n.Labels[labelMIGConfig]), evidence}
}}

// migConfigUnknown needs the ConfigMap: one that could not be read proves
// nothing.
var migConfigUnknown = Rule{ID: MIGConfigUnknown, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	name := n.Labels[labelMIGConfig]
	if !c.gpuReason(n, b) || name == "" {
		return nil
	}
	config := c.world.configOf(n)
	if config.source == nil {
		return nil
	}
	if _, ok := config.entries[name]; ok {
		return nil
	}
	ref := "ConfigMap/" + config.source.Namespace + "/" + config.source.Name
	return &finding{Proven, fmt.Sprintf("mig.config %q names no entry of its config", name),
		[]Evidence{{n.ref(), fmt.Sprintf("label %s=%s", labelMIGConfig, name)}, {ref, "has no such entry"}}}
}}

// gpuNotMIGCapable: MIG was asked of a model that has none.
var gpuNotMIGCapable = Rule{ID: GPUNotMIGCapable, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	if _, ok := c.migShort(n, b); !ok {
		return nil
	}
	if n.geometry != nil && len(n.geometry.Report.GPUs) > 0 {
		for _, g := range n.geometry.Report.GPUs {
			if g.MIG != nil {
				return nil
			}
		}
		return &finding{Proven, n.product() + " has no MIG", []Evidence{{"NodeGeometry/" + n.Name, "no GPU of the node reports a MIG mode"}}}
	}
	if n.Labels[labelMIGCapable] != "false" {
		return nil
	}
	return &finding{Likely, n.product() + " has no MIG", []Evidence{{n.ref(), "label " + labelMIGCapable + "=false"}}}
}}

// migStrategyMismatch: the name of the resource does not go with the strategy
// that names the node's devices.
var migStrategyMismatch = Rule{ID: MIGStrategyMismatch, Tell: func(c *Case, n *nodeView, b whatif.Blocker) *finding {
	strategy := n.Labels[labelMIGStrategy]
	fact := []Evidence{{n.ref(), fmt.Sprintf("label %s=%s, advertises %s", labelMIGStrategy, strategy, n.advertised())}}
	if a, ok := c.migShort(n, b); ok && strategy == "single" && n.allocatable(a.resource) == 0 {
		return &finding{Proven, "strategy single offers MIG devices as nvidia.com/gpu", fact}
	}
	a, ok := c.gpuShort(n, b)
	if !ok || n.allocatable(a.resource) > 0 {
		return nil
	}
	if strings.HasSuffix(n.Labels["nvidia.com/gpu.product"], "-MIG-INVALID") {
		return &finding{Proven, "strategy single meets mixed layouts, so nothing is offered", fact}
	}
	if strategy == "mixed" && len(n.gpus) > 0 && n.geometry != nil && len(n.gpus) == len(n.geometry.Report.GPUs) {
		return &finding{Proven, "every GPU is partitioned, strategy mixed offers nvidia.com/mig-*", fact}
	}
	return nil
}}

// advertised lists the NVIDIA resources of the node with their counts.
func (n *nodeView) advertised() string {
	var out []string
	for name, q := range n.Status.Allocatable {
		if strings.HasPrefix(string(name), "nvidia.com/") {
			out = append(out, fmt.Sprintf("%s=%d", name, q.Value()))
		}
	}
	if len(out) == 0 {
		return "no nvidia.com resource"
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}
