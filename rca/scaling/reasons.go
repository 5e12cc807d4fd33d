package scaling

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Bar is what keeps an autoscaler from a node for a pod.
type Bar string

// The bars. Limit, Backoff and NotReady say nothing of whether the pool suits the pod:
// both autoscalers look at them first.
const (
	Limit    Bar = "limit"    // the pool may not grow
	Backoff  Bar = "backoff"  // the cloud, or a node, has failed it shortly before
	NotReady Bar = "notReady" // the pool is not healthy
	NoPool   Bar = "noPool"   // there is none
	Lacks    Bar = "lacks"    // a fresh node has too little of a resource, as far as the autoscaler knows
	Selector Bar = "selector" // labels
	Claims   Bar = "claims"   // its claims find no devices on a fresh node, as far as the autoscaler knows
	Taint    Bar = "taint"
	Types    Bar = "types"    // no machine of the pool meets its requirements and the pod's
	Offering Bar = "offering" // the right machines in a wrong zone, at a wrong price, or refused in the last minutes
	Volume   Bar = "volume"   // the pod's volume is not where the pool's machines are
	Devices  Bar = "devices"  // the pod's claims for devices are not supported
	Topology Bar = "topology" // what the pod asks of its neighbours: affinity, spread
	Internal Bar = "internal" // the autoscaler took the pool for one that would do, and left it out by rules of its own
	Priority Bar = "priority" // the pod is of those that the autoscaler leaves alone
	Other    Bar = "other"
)

// Reason is why one pool of machines, or several, does not grow for a pod.
type Reason struct {
	Count int    // of node groups; 0: of the whole cluster, or not said
	Pool  string // its name, where the text has it
	Text  string
	Bar   Bar
	Lacks string // the resource, where the text names it
}

var (
	notTriggered = regexp.MustCompile(`^pod didn't trigger scale-up[^:]*:?\s*(.*)$`)
	counted      = regexp.MustCompile(`(?:^|, )(\d+) `)
	poolQuoted   = regexp.MustCompile(`nodepool:? "([^"]+)"|NodePool=([a-z0-9][a-z0-9.-]*)|karpenter\.sh/nodepool In \[([a-z0-9][a-z0-9.-]*)\]`)
)

// groupBars are the cluster autoscaler's own words (core/scaleup/orchestrator/skippedreasons.go,
// utils/klogx; 1.28 to 1.36) and those of the scheduler's filters on a template node.
var groupBars = []struct {
	part string
	bar  Bar
}{
	{"max node group size reached", Limit},
	{"max total nodes in cluster reached", Limit},
	{"exceeded quota:", Limit},
	{"limit reached", Limit}, // max cluster cpu, memory limit reached: before the quota text
	{"atomic scale-up exceeds", Limit},
	{"all-or-nothing strategy", Limit},
	{"in backoff after failed scale-up", Backoff},
	{failedNow, Backoff},
	{"expansion options filtered out", Internal},
	{"not ready for scale-up", NotReady},
	{"Insufficient ", Lacks},
	{"untolerated taint", Taint},
	{"didn't tolerate", Taint},
	{"PersistentVolume's node affinity", Volume}, // the volume's, not the pod's
	{"volume node affinity", Volume},
	{"anti-affinity rules", Topology}, // of pods
	{"pod affinity", Topology},
	{"topology spread constraints", Topology},
	{"cannot allocate all claims", Claims},
	{"node affinity", Selector},
	{"node selector", Selector},
}

// failedNow is how it says that it asked for a machine, and did not get it.
const failedNow = "scale-up execution failed"

// Failed says whether the autoscaler asked for a machine just now, and did not get it.
func (r Reason) Failed() bool { return strings.Contains(r.Text, failedNow) }

// NotTriggered reads the cluster autoscaler's NotTriggerScaleUp: a count and a reason for
// each kind of group, in no order; commas occur inside reasons.
func NotTriggered(message string) []Reason {
	m := notTriggered.FindStringSubmatch(strings.Join(strings.Fields(message), " "))
	if m == nil || m[1] == "" {
		return nil
	}
	text := m[1]
	at := counted.FindAllStringSubmatchIndex(text, -1)
	if len(at) == 0 || at[0][0] != 0 {
		return []Reason{groupReason(0, text)}
	}
	var out []Reason
	for i, span := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		n, err := strconv.Atoi(text[span[2]:span[3]])
		if err != nil {
			n = 0
		}
		out = append(out, groupReason(n, text[span[1]:end]))
	}
	return out
}

func groupReason(count int, text string) Reason {
	r := Reason{Count: count, Text: text, Bar: Other}
	for _, b := range groupBars {
		if strings.Contains(text, b.part) {
			r.Bar = b.bar
			break
		}
	}
	if _, name, ok := strings.Cut(text, "Insufficient "); ok && r.Bar == Lacks {
		r.Lacks, _, _ = strings.Cut(name, " ")
	}
	return r
}

// passing begin the taints that a node is given in its life, by the cluster autoscaler itself, by
// who looks after nodes, or before it can be used; no machine is made with one.
var passing = []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler",
	"remediator.aks.microsoft.com/", "remediator.kubernetes.azure.com/", "aws-node-termination-handler/", "karpenter.sh/disrupt"}

// taintIn is how the filters name a taint that is not tolerated: {key: value}.
var taintIn = regexp.MustCompile(`taint \{([^ :{}]+): ?([^{}]*)\}`)

// Remembered is the key of the taint for which a group of nodes is refused, where no fresh machine
// has it: the cluster autoscaler takes the last node of a group that is at zero for what the group
// makes (Azure/AKS issues 2976 and 4016). Empty where it is not that.
func (r Reason) Remembered() string {
	key := r.TaintKey()
	if !slices.ContainsFunc(passing, func(begin string) bool { return strings.HasPrefix(key, begin) }) {
		return ""
	}
	return key
}

// untilReady is how taints are named that software takes off a fresh node once it is up, as
// node.cilium.io/agent-not-ready.
var untilReady = regexp.MustCompile(`(^|[/.-])(not-?ready|not-?initiali[sz]ed|uninitiali[sz]ed|startup)($|[/.-])`)

// AtStartup is the key of the taint for which a group of nodes is refused, where by its name a fresh node has it
// for a while: the cluster autoscaler leaves such taints out of account, once it is told of them (its FAQ,
// --startup-taint). Empty where it is not that.
func (r Reason) AtStartup() string {
	key := r.TaintKey()
	if r.Remembered() != "" || !untilReady.MatchString(strings.ToLower(key)) {
		return ""
	}
	return key
}

// TaintKey is the key of the taint for which a group of nodes is refused; empty where the text names
// none.
func (r Reason) TaintKey() string {
	if m := taintIn.FindStringSubmatch(r.Text); r.Bar == Taint && m != nil {
		return m[1]
	}
	return ""
}

// Tolerated is the toleration that such a taint wants, of whatever effect; empty where the text names none.
func (r Reason) Tolerated() string {
	m := taintIn.FindStringSubmatch(r.Text)
	switch {
	case r.Bar != Taint || m == nil:
		return ""
	case m[2] == "":
		return "{key: " + m[1] + ", operator: Exists}"
	}
	return fmt.Sprintf("{key: %s, operator: Equal, value: %q}", m[1], m[2])
}

// unknownLabel is how Karpenter names the label that no machine of a pool would have as asked.
var unknownLabel = regexp.MustCompile(`label "([^"]+)" does not have known values|incompatible requirements, key ([^ ,]+)`)

// LabelKey is the key of the label for which a pool is refused; empty where the text names none.
func (r Reason) LabelKey() string {
	if m := unknownLabel.FindStringSubmatch(r.Text); m != nil {
		return m[1] + m[2]
	}
	return ""
}

// Spread is what Karpenter calls a topologySpreadConstraint.
const Spread = "topology spread"

var overKey = regexp.MustCompile(`unsatisfiable topology constraint for ([a-z -]+), key=([^ ,]+)`)

// Topology is what the pod asks of its neighbours and no new node would meet: pod affinity, pod
// anti-affinity or topology spread, and the label it is counted by.
func (r Reason) Topology() (kind, key string) {
	if m := overKey.FindStringSubmatch(r.Text); m != nil {
		return m[1], m[2]
	}
	return "affinity or spread", "its topology key"
}

// domainCounts are how many pods Karpenter counts in each value of that label (topology.go, topologyError).
var domainCounts = regexp.MustCompile(`\(counts = (.*?), podDomains = `)

// Beside are the values of that label which Karpenter counts beside one without a name: that of machines which have no
// such value, as those of a region and of no zone of it (Azure/karpenter-provider-azure issue 1384). None where it counts
// no such value.
func (r Reason) Beside() []string {
	m := domainCounts.FindStringSubmatch(r.Text)
	if m == nil {
		return nil
	}
	var out []string
	nameless := false
	for part := range strings.SplitSeq(m[1], ", ") {
		name, _, ok := strings.Cut(part, ": ")
		switch name = strings.TrimSpace(name); {
		case !ok:
		case name == "":
			nameless = true
		default:
			out = append(out, name)
		}
	}
	if !nameless {
		return nil
	}
	slices.Sort(out)
	return out
}

// allocatingDevices begins what Karpenter says where it simulates claims for devices.
const allocatingDevices = "allocating dynamic resources"

// AllocatesDevices says whether Karpenter looked for the devices that the pod claims, and found none.
func (r Reason) AllocatesDevices() bool { return strings.Contains(r.Text, allocatingDevices) }

// poolBars are Karpenter's (pkg/controllers/provisioning/scheduling/nodeclaim.go and
// scheduler.go, 0.32 to 1.14).
var poolBars = []struct {
	part string
	bar  Bar
}{
	// Each volume wants its zone (pkg/controllers/provisioning/scheduling/volumetopology.go):
	// nothing is left where they want different ones.
	{"topology.kubernetes.io/zone DoesNotExist", Volume},
	{"exceed limits for nodepool", Limit},
	{"exceed limits for provisioner", Limit},
	{"limits have been exhausted", Limit},
	{"unsatisfiable topology constraint", Topology}, // topology.go, topologyError
	{"Dynamic Resource Allocation", Devices},
	{allocatingDevices, Devices}, // with DRA on (1.14): the provider names no devices of its machines
	{"did not tolerate", Taint},
	{"incompatible requirements", Selector},
	{"does not have known values", Selector},
	{"filtered out all available instance types", Types},
	{"no instance type has enough resources", Lacks},
	{"no instance type met all requirements", Types},
	// Of pairs: an instance type that meets the two named first lacks the third, and none
	// that pool and pod allow was told of before. So the allowed ones are too small.
	{"had enough resources and the required offering met", Lacks},
	{"the required offering had the required resources", Lacks},
	{"no instance type had enough resources", Lacks}, // "or had a required offering": each alone excludes all
	{"met the scheduling requirements or", Types},
	{"resources/offering tuple", Types},
	{"required offering", Offering},
	{"no instance type", Types},
}

// NotScheduled reads Karpenter's FailedScheduling: an error for each NodePool.
func NotScheduled(message string) []Reason {
	text := strings.Join(strings.Fields(message), " ")
	text = strings.TrimPrefix(text, "Failed to schedule pod, ")
	var out []Reason
	for part := range strings.SplitSeq(text, "; ") {
		r := Reason{Text: part, Bar: Other}
		if m := poolQuoted.FindStringSubmatch(part); m != nil {
			r.Pool = m[1] + m[2] + m[3]
		}
		for _, b := range poolBars {
			if strings.Contains(part, b.part) {
				r.Bar = b.bar
				break
			}
		}
		out = append(out, r)
	}
	return out
}

var (
	grown    = regexp.MustCompile(`\{(\S+) (\d+)->(\d+) \(max: (\d+)\)\}`)
	expected = regexp.MustCompile(`(nodeclaim|node)/([a-z0-9][a-z0-9.-]*)`)
)

// Grown names the groups that a TriggeredScaleUp speaks of.
func Grown(message string) []string {
	var out []string
	for _, m := range grown.FindAllStringSubmatch(message, -1) {
		out = append(out, m[1])
	}
	return out
}

// Nominated names the NodeClaims and the nodes on which Karpenter expects a pod.
func Nominated(message string) (claims, nodes []string) {
	for _, m := range expected.FindAllStringSubmatch(message, -1) {
		if m[1] == "nodeclaim" {
			claims = append(claims, m[2])
		} else {
			nodes = append(nodes, m[2])
		}
	}
	return claims, nodes
}
