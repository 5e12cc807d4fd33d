package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Said is as much of a diagnosis as is held against its dump.
type Said struct {
	Headline string `json:"headline"`
	Workload struct {
		Namespace string `json:"namespace"`
	} `json:"workload"`
	Pods struct {
		Names []string `json:"names"`
	} `json:"pods"`
	Requests map[string]string `json:"requests"`
	Causes   []Cause           `json:"causes"`
	Nodes    []struct {
		Name     string `json:"name"`
		Blockers []struct {
			Cause string `json:"cause"`
		} `json:"blockers"`
	} `json:"nodes"`
}

// Cause is one of its causes.
type Cause struct {
	ID       string   `json:"id"`
	Says     string   `json:"says"`
	Nodes    []string `json:"nodes"`
	Evidence []Fact   `json:"evidence"`
}

// Fact is a sentence about one object, and what it is made from.
type Fact struct {
	Ref    string  `json:"ref"`
	Fact   string  `json:"fact"`
	Claims []Claim `json:"claims"`
}

// asked is one question about one node: false means that the cause is not so there.
type asked struct {
	d    *Dump
	node object
	pod  object
	pods []object // all that are named of those that wait
	says string
	want map[string]string // what the pod requests, by resource
}

// Held says what of a diagnosis its dump contradicts, a sentence each, and how many
// statements it held against it.
func (d *Dump) Held(s Said) (against []string, statements int) {
	say := func(format string, args ...any) { against = append(against, fmt.Sprintf(format, args...)) }
	var pod object
	pods := d.podsNamed(s)
	if len(pods) > 0 {
		pod = pods[0]
	}
	for _, c := range s.Causes {
		is := rules[c.ID]
		for _, name := range c.Nodes {
			node := d.node(name)
			statements++
			switch {
			case node == nil:
				say("%s names node %s, which the dump lacks", c.ID, name)
			case is != nil && !is(asked{d, node, pod, pods, c.Says, s.Requests}):
				say("%s is not so on node %s: %q", c.ID, name, c.Says)
			}
		}
		for _, e := range c.Evidence {
			statements++
			if why := d.untrue(e.Ref, e.Fact); why != "" {
				say("%s: %s %q: %s", c.ID, e.Ref, e.Fact, why)
			}
			for _, claim := range e.Claims {
				statements++
				if why := d.Denies(claim); why != "" {
					say("%s: %s %q claims %s: %s", c.ID, e.Ref, e.Fact, claim, why)
				}
			}
		}
	}
	statements++
	if n := len(d.of("Node")); n != len(s.Nodes) {
		say("%d nodes are told, the dump has %d", len(s.Nodes), n)
	}
	if slices.ContainsFunc(s.Causes, func(c Cause) bool { return strings.Contains(c.Says, anyGPU) }) || strings.Contains(s.Headline, anyGPU) {
		for _, n := range d.of("Node") {
			statements++
			if sign := d.gpuSign(n); sign != "" {
				say("no %s, it says, and node %s has %s", anyGPU, n.text("metadata", "name"), sign)
			}
		}
	}
	return against, statements
}

// podsNamed are the pods that the incident names; none where it has none yet.
func (d *Dump) podsNamed(s Said) []object {
	return slices.DeleteFunc(d.of("Pod"), func(p object) bool {
		return p.text("metadata", "namespace") != s.Workload.Namespace || !slices.Contains(s.Pods.Names, p.text("metadata", "name"))
	})
}

// gpuSign is what says of a node that it has a GPU of NVIDIA's.
func (d *Dump) gpuSign(n object) string {
	for k, v := range n.texts("status", "capacity") {
		if strings.HasPrefix(k, "nvidia.com/") && v != "0" {
			return k + "=" + v
		}
	}
	for k, v := range n.texts("metadata", "labels") {
		switch {
		case strings.HasSuffix(k, "_10de.present") && v == "true", k == "feature.node.kubernetes.io/pci-10de.present" && v == "true",
			k == "cloud.google.com/gke-accelerator" && !strings.HasPrefix(v, "tpu"), k == "kubernetes.azure.com/accelerator" && v == "nvidia",
			strings.HasSuffix(k, "/instance-gpu-manufacturer") && v == "nvidia", k == "nvidia.com/gpu.count" && v != "0":
			return k + "=" + v
		}
	}
	return ""
}

// untrue says why a fact is not what the object of its reference has; empty: it is, or it is
// of a form that is not held against anything.
func (d *Dump) untrue(ref, fact string) string {
	node, ok := strings.CutPrefix(ref, "Node/")
	n := d.node(node)
	if !ok || n == nil {
		return ""
	}
	if sign := d.gpuSign(n); strings.Contains(fact, "speaks of a GPU") && sign != "" {
		return "it has " + sign
	}
	if m := allocatable.FindStringSubmatch(fact); m != nil {
		if is := n.amount("status", "allocatable", m[1]); strconv.FormatFloat(is, 'f', -1, 64) != m[2] {
			return fmt.Sprintf("allocatable is %v", is)
		}
		if is := d.used(node, m[1]); strconv.FormatFloat(is, 'f', -1, 64) != m[3] {
			return fmt.Sprintf("%v are requested", is)
		}
	}
	for _, m := range label.FindAllStringSubmatch(fact, -1) {
		if is, ok := n.texts("metadata", "labels")[m[1]]; !ok || is != strings.TrimRight(m[2], ",;") {
			return fmt.Sprintf("the label is %q, there %v", is, ok)
		}
	}
	return ""
}

// anyGPU is denied of a whole cluster: "no node …", or "nothing says that any node …".
const anyGPU = "node of the cluster has a GPU"

var (
	allocatable = regexp.MustCompile(`^allocatable (\S+)=(\d+), requested (\d+)$`)
	label       = regexp.MustCompile(`\blabel ([a-zA-Z0-9./_-]+)=(\S+)`)
)
