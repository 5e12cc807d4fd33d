package oracle

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// rules hold a cause against one node. What is not here can be told from no field of the
// node alone.
var rules = map[string]func(asked) bool{
	"NodeCordoned":     func(a asked) bool { return a.node.at("spec", "unschedulable") == true },
	"NodeNotReady":     asked.shut,
	"UntoleratedTaint": asked.untolerated,
	"NodeSelectorMismatch": func(a asked) bool {
		return !slices.ContainsFunc(a.pods, func(p object) bool { a.pod = p; return a.selected() })
	},
	"DevicePluginDown":     func(a asked) bool { return a.offers() == 0 },
	"GPUStackMissing":      func(a asked) bool { return a.offers() == 0 },
	"GPUStackNotOnNode":    func(a asked) bool { return a.offers() == 0 },
	"RuntimeNotConfigured": func(a asked) bool { return a.offers() == 0 },
	"DriverNotReady":       func(a asked) bool { return a.offers() == 0 || a.upgrades() },
	"GPUsInUse":            asked.held,
	"MIGInstancesInUse":    asked.held,
	"GPURequestTooLarge":   asked.tooMany,
	"MIGConfigFailed":      func(a asked) bool { return a.state() == "failed" },
	"MIGConfigInProgress":  func(a asked) bool { return a.state() == "pending" || a.state() == "rebooting" },
	"MIGConfigStuck":       func(a asked) bool { return a.state() == "pending" },
	"HostResourcesShort":   asked.short,
	"SharedResourceRenamed": func(a asked) bool {
		m := renamed.FindStringSubmatch(a.says)
		return m != nil && a.node.amount("status", "allocatable", m[1]) > 0 && a.node.amount("status", "allocatable", m[2]) == 0
	},
}

// renamed is how it is said which name a node offers, and which not.
var renamed = regexp.MustCompile(`offers (\S+), not ([^\s;]+)`)

// upgrades says that the node's driver is being replaced, or could not be.
func (a asked) upgrades() bool {
	state := a.node.texts("metadata", "labels")["nvidia.com/gpu-driver-upgrade-state"]
	return state != "" && state != "upgrade-done" && state != "upgrade-required"
}

func (a asked) state() string {
	return a.node.texts("metadata", "labels")["nvidia.com/mig.config.state"]
}

// shut says that the node has what the sentence names: a startup taint, the taint of what it
// is short of, or else that it is not ready.
func (a asked) shut() bool {
	_, key, startup := strings.Cut(a.says, "startup taint ")
	key, _, _ = strings.Cut(key, " ")
	if short, pressed := strings.CutSuffix(a.says, " pressure"); pressed {
		key = "node.kubernetes.io/" + strings.TrimPrefix(short, "under ") + "-pressure"
	} else if !startup {
		return !a.ready()
	}
	return slices.ContainsFunc(a.node.list("spec", "taints"), func(t object) bool { return t.text("key") == key })
}

func (a asked) ready() bool {
	for _, c := range a.node.list("status", "conditions") {
		if c.text("type") == "Ready" && c.text("status") != "True" {
			return false
		}
	}
	return !slices.ContainsFunc(a.node.list("spec", "taints"), func(t object) bool {
		return strings.HasPrefix(t.text("key"), "node.kubernetes.io/") && t.text("key") != "node.kubernetes.io/unschedulable" ||
			t.text("key") == "karpenter.sh/unregistered" || strings.HasPrefix(t.text("key"), "node.cloudprovider.kubernetes.io/")
	})
}

// offers is how many of the devices that the pod asks for the node offers.
func (a asked) offers() float64 {
	sum := 0.0
	for r := range a.want {
		if strings.Contains(r, "/") && !strings.HasPrefix(r, "devices.kubevirt.io/") { // of every machine, for virtual ones
			sum += a.node.amount("status", "allocatable", r)
		}
	}
	return sum
}

// scarce says whether of some requested device the test holds.
func (a asked) scarce(is func(name string, ask, allocatable, used float64) bool) bool {
	name := a.node.text("metadata", "name")
	for r, n := range a.want {
		if strings.Contains(r, "/") && is(r, amount(n), a.node.amount("status", "allocatable", r), a.d.used(name, r)) {
			return true
		}
	}
	return false
}

func (a asked) held() bool {
	return a.scarce(func(_ string, ask, has, used float64) bool { return has >= ask && used > has-ask })
}

func (a asked) tooMany() bool {
	return a.scarce(func(_ string, ask, has, _ float64) bool { return ask > has })
}

// short says that of what every node has the node has too little left.
func (a asked) short() bool {
	name := a.node.text("metadata", "name")
	names := []string{"cpu", "memory", "ephemeral-storage"}
	for r := range a.want {
		if strings.HasPrefix(r, "hugepages-") {
			names = append(names, r)
		}
	}
	for _, r := range names {
		if a.d.used(name, r)+amount(a.want[r]) > a.node.amount("status", "allocatable", r) && amount(a.want[r]) > 0 {
			return true
		}
	}
	pods := 0.0
	for _, p := range a.d.of("Pod") {
		if p.text("spec", "nodeName") == name && !slices.Contains([]string{"Succeeded", "Failed"}, p.text("status", "phase")) {
			pods++
		}
	}
	return pods+1 > a.node.amount("status", "allocatable", "pods")
}

// untolerated says that the node has a taint that the pod does not tolerate, and that the
// sentence names one, where it names any.
func (a asked) untolerated() bool {
	if a.pod == nil {
		return len(a.node.list("spec", "taints")) > 0
	}
	for _, t := range a.node.list("spec", "taints") {
		written := "taint " + t.text("key")
		if t.text("effect") != "PreferNoSchedule" && !tolerated(a.pod, t) && (strings.Contains(a.says, written) || !strings.Contains(a.says, "taint ")) {
			return true
		}
	}
	return false
}

func tolerated(pod, taint object) bool {
	return slices.ContainsFunc(pod.list("spec", "tolerations"), func(t object) bool {
		if e := t.text("effect"); e != "" && e != taint.text("effect") {
			return false
		}
		if t.text("operator") == "Exists" {
			return t.text("key") == "" || t.text("key") == taint.text("key")
		}
		return t.text("key") == taint.text("key") && t.text("value") == taint.text("value")
	})
}

// selected says whether the node has what the pod's selector and required affinity want.
func (a asked) selected() bool {
	labels := a.node.texts("metadata", "labels")
	for k, v := range a.pod.texts("spec", "nodeSelector") {
		if labels[k] != v {
			return false
		}
	}
	terms := a.pod.list("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t object) bool {
		fields := map[string]string{"metadata.name": a.node.text("metadata", "name")}
		return len(t.list("matchExpressions"))+len(t.list("matchFields")) > 0 && allMatch(t.list("matchExpressions"), labels) && allMatch(t.list("matchFields"), fields)
	})
}

func allMatch(terms []object, of map[string]string) bool {
	return !slices.ContainsFunc(terms, func(e object) bool { return !matches(e, of) })
}

func matches(e object, of map[string]string) bool {
	is, there := of[e.text("key")]
	var values []string
	listed, _ := e.at("values").([]any)
	for _, v := range listed {
		if s, ok := v.(string); ok {
			values = append(values, s)
		}
	}
	switch e.text("operator") {
	case "In":
		return there && slices.Contains(values, is)
	case "NotIn":
		return !there || !slices.Contains(values, is)
	case "Exists":
		return there
	case "DoesNotExist":
		return !there
	}
	n, err := strconv.Atoi(is)
	bound, bad := strconv.Atoi(strings.Join(values, ""))
	return there && err == nil && bad == nil && (e.text("operator") == "Gt" && n > bound || e.text("operator") == "Lt" && n < bound)
}
