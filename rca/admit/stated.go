package admit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/view"
)

// StateRequests is for a quota that takes only pods whose containers state what it limits:
// they do, or a LimitRange does it for all pods of the namespace. More quota is of no use.
func StateRequests(c *edit.Workload) []edit.Change {
	if c.Refused.Uncovered() {
		return []edit.Change{coverByQuota(c)}
	}
	var lacks []lack
	for _, q := range c.Refused.Refusing() {
		for _, u := range q.Unstated() {
			for _, container := range u.Containers {
				if l := (lack{container, u.Resource, q}); !slices.ContainsFunc(lacks, l.same) {
					lacks = append(lacks, l)
				}
			}
		}
	}
	if len(lacks) == 0 {
		return []edit.Change{{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Until: "its quota takes it", Title: "look at the quotas of " + c.Refused.Next().Namespace,
			Commands: []string{fmt.Sprintf("kubectl -n %s describe resourcequota", c.Refused.Next().Namespace)}}}
	}
	if sets, ok := asRequested(c, lacks); ok {
		ch := c.SetRequests("limit its containers to what they request", sets)
		ch.Adds = true
		return []edit.Change{ch, defaultByRange(c, lacks)}
	}
	return []edit.Change{stateByHand(c, lacks), defaultByRange(c, lacks)}
}

// lack is what one container does not state for a quota.
type lack struct {
	container string
	name      corev1.ResourceName // as the quota has it: limits.cpu
	quota     admission.Quota
}

func (l lack) same(m lack) bool { return l.container == m.container && l.name == m.name }

// plain is the resource without "limits." or "requests.", and whether it is a limit.
func (l lack) plain() (corev1.ResourceName, bool) {
	name, limit := strings.CutPrefix(string(l.name), "limits.")
	return corev1.ResourceName(strings.TrimPrefix(name, "requests.")), limit
}

// asRequested has each limit that is missing be what the container requests; false where
// one requests nothing, for nobody has said how much it needs.
func asRequested(c *edit.Workload, lacks []lack) (map[string]map[corev1.ResourceName]edit.Amounts, bool) {
	sets := map[string]map[corev1.ResourceName]edit.Amounts{}
	for _, l := range lacks {
		name, limit := l.plain()
		at := slices.IndexFunc(c.Refused.Next().Spec.Containers, func(k corev1.Container) bool { return k.Name == l.container })
		if at < 0 || !limit {
			return nil, false
		}
		q, asked := c.Refused.Next().Spec.Containers[at].Resources.Requests[name]
		if !asked {
			return nil, false
		}
		if sets[l.container] == nil {
			sets[l.container] = map[corev1.ResourceName]edit.Amounts{}
		}
		sets[l.container][name] = edit.Amounts{Request: q, Limit: q}
	}
	return sets, true
}

// stateByHand says what is to be written where. The amounts are a container's share of a
// node, for nobody has said what it needs.
func stateByHand(c *edit.Workload, lacks []lack) edit.Change {
	ch := edit.Change{Kind: diagnosis.ChangeRequest, Manual: true, Adds: true, Minutes: 1, Risk: diagnosis.NoRisk,
		Title:      "state " + unstatedText(lacks) + " in " + c.WorkloadName(),
		Untestable: "how much its containers need nobody has said: the amounts are a share of a node"}
	w := c.Incident.Workload
	settable := slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"}, w.Kind)
	for _, container := range containersOf(lacks) {
		var requests, limits []string
		for _, l := range lacks {
			if name, limit := l.plain(); l.container == container {
				text := fmt.Sprintf("%s=%s", name, portion(c, l))
				if limit {
					limits = append(limits, text)
				} else {
					requests = append(requests, text)
				}
			}
		}
		flags := ""
		if len(requests) > 0 {
			flags += " --requests=" + strings.Join(requests, ",")
		}
		if len(limits) > 0 {
			flags += " --limits=" + strings.Join(limits, ",")
		}
		ch.Steps = append(ch.Steps, fmt.Sprintf("have container %s state%s", container, strings.ReplaceAll(flags, " --", " ")))
		if settable {
			ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s set resources %s -c %s%s  # adapt the amounts", w.Namespace, c.WorkloadName(), container, flags))
		}
	}
	if !settable {
		ch.Commands = []string{c.EditByHand(strings.Join(ch.Steps, "; "))}
	}
	return ch
}

func containersOf(lacks []lack) []string {
	var out []string
	for _, l := range lacks {
		if !slices.Contains(out, l.container) {
			out = append(out, l.container)
		}
	}
	return out
}

// unstatedText is "limits.cpu, limits.memory of container main".
func unstatedText(lacks []lack) string {
	var names []string
	for _, l := range lacks {
		if !slices.Contains(names, string(l.name)) {
			names = append(names, string(l.name))
		}
	}
	return strings.Join(names, ", ") + " of container " + strings.Join(containersOf(lacks), ", ")
}

// defaultByRange has the API server fill in what pods of the namespace leave out.
func defaultByRange(c *edit.Workload, lacks []lack) edit.Change {
	ns := c.Refused.Next().Namespace
	lists := map[bool][]string{} // whether it is a limit
	for _, l := range lacks {
		name, limit := l.plain()
		if text := fmt.Sprintf("%s: %q", name, portion(c, l)); !slices.Contains(lists[limit], text) {
			lists[limit] = append(lists[limit], text)
		}
	}
	requests, limits := lists[false], lists[true]
	item := "type: Container"
	if len(limits) > 0 {
		item += ", default: {" + strings.Join(limits, ", ") + "}"
	}
	if len(requests) > 0 {
		item += ", defaultRequest: {" + strings.Join(requests, ", ") + "}"
	}
	return edit.Change{Kind: diagnosis.Manual, Manual: true, Minutes: 2, Risk: diagnosis.NoRisk, Title: "give " + ns + " a LimitRange with defaults for what its pods do not state",
		Untestable: "the amounts are a share of a node, and hold for every pod of " + ns + " that states none",
		Steps:      []string{"create a LimitRange in " + ns + " with defaults; pods that exist keep what they have"},
		Commands:   []string{edit.Feed("kubectl -n "+ns+" create", fmt.Sprintf("{apiVersion: v1, kind: LimitRange, metadata: {name: defaults}, spec: {limits: [{%s}]}}", item))}}
}

// portion is what a container may take of a resource: its GPUs' part of the node that has most
// GPUs, shared among its containers, and no more than the quota has left.
func portion(c *edit.Workload, l lack) string {
	name, _ := l.plain()
	q := map[corev1.ResourceName]resource.Quantity{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi")}[name]
	if len(c.Asks) == 1 && c.Asks[0].Profile == "" {
		if n := mostGPUs(c, c.Asks[0].Resource); n != nil {
			has := n.Status.Allocatable[name]
			part := has.Value() * c.Asks[0].Count / n.Allocatable(c.Asks[0].Resource) / int64(max(1, len(c.Refused.Next().Spec.Containers)))
			if name == corev1.ResourceMemory {
				part = part >> 30 << 30
			}
			if part > q.Value() {
				q = *resource.NewQuantity(part, q.Format)
			}
		}
	}
	left := l.quota.Left(l.name)
	if name == corev1.ResourceMemory && left.Value() > 1<<30 {
		left = *resource.NewQuantity(left.Value()>>30<<30, resource.BinarySI)
	}
	if left.Sign() > 0 && left.Cmp(q) < 0 {
		q = left
	}
	return view.QuantityText(q)
}

// mostGPUs is the node that offers most of a GPU resource; nil where none does.
func mostGPUs(c *edit.Workload, name corev1.ResourceName) *view.Node {
	var most *view.Node
	for _, n := range c.Cluster.SortedNodes() {
		if has := n.Allocatable(name); has > 0 && (most == nil || has > most.Allocatable(name)) {
			most = n
		}
	}
	return most
}

// coverByQuota makes the quota that the API server's configuration wants.
func coverByQuota(c *edit.Workload) edit.Change {
	ns, class := c.Refused.Next().Namespace, c.Refused.Next().Spec.PriorityClassName
	ch := edit.Change{Kind: diagnosis.Manual, Manual: true, Minutes: 2, Risk: diagnosis.NoRisk, Title: "give " + ns + " a quota that covers its pods", Until: ns + " has a quota that covers it"}
	if class == "" {
		ch.Commands = []string{fmt.Sprintf("kubectl -n %s create quota gpus --hard=%s", ns, hardText(c))}
		return ch
	}
	ch.Title = fmt.Sprintf("give %s a quota for priority class %s", ns, class)
	ch.Commands = []string{edit.Feed("kubectl -n "+ns+" create", fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: %s}, spec: {hard: {pods: \"1000\"}, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [%s]}]}}}", class, class))}
	if w := c.Incident.Workload; slices.Contains([]string{"system-node-critical", "system-cluster-critical"}, class) && w.Kind == "DaemonSet" && stack.Of(c.Cluster).Has(w.Namespace, w.Name) {
		ch.Kind = diagnosis.RepairDeviceStack
	}
	return ch
}

// hardText is what the pods that are missing ask of devices.
func hardText(c *edit.Workload) string {
	missing := int64(0)
	for _, r := range c.Refused.All {
		missing += int64(r.Missing)
	}
	var out []string
	for _, a := range c.Asks {
		out = append(out, fmt.Sprintf("requests.%s=%d", a.Resource, a.Count*missing))
	}
	if len(out) == 0 {
		out = []string{fmt.Sprintf("pods=%d", missing)}
	}
	return strings.Join(out, ",")
}
