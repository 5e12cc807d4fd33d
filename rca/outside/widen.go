package outside

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
)

// capacityType is by which label Karpenter's machines are spot, on-demand or reserved.
const capacityType = "karpenter.sh/capacity-type"

// byPlace are the requirements of a NodePool that keep a cloud to few machines, those first that are widened with least change
// to what the pod gets.
var byPlace = []string{capacityType, corev1.LabelTopologyZone, corev1.LabelInstanceTypeStable, "karpenter.k8s.aws/instance-family", "eks.amazonaws.com/instance-family", "karpenter.azure.com/sku-family", "karpenter.azure.com/sku-name"}

// fewValues is how many values keep a cloud to few machines.
const fewValues = 2

// narrowed says what of the first NodePool keeps the cloud to few machines, as what is to be let; empty where nothing does.
func narrowed(c *edit.Workload) string {
	g := c.Growth()
	if !g.Karpenter || len(g.Pools) == 0 {
		return ""
	}
	p := &g.Pools[0]
	var few []string
	for _, r := range narrow(p) {
		few = append(few, r.Key+" "+strings.Join(r.Values, ", "))
	}
	if len(few) == 0 {
		return ""
	}
	return fmt.Sprintf("NodePool %s take other machines too: it is kept to %s", p.Name, strings.Join(few, " and "))
}

// narrow are the requirements of a NodePool that name few machines.
func narrow(p *scaling.Pool) []corev1.NodeSelectorRequirement {
	var out []corev1.NodeSelectorRequirement
	for _, key := range byPlace {
		for _, r := range p.Requirements {
			if r.Key == key && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) <= fewValues && (key != capacityType || !slices.Contains(r.Values, "on-demand")) {
				out = append(out, r)
			}
		}
	}
	return out
}

// keptBy are their keys.
func keptBy(p *scaling.Pool) []string {
	var out []string
	for _, r := range narrow(p) {
		out = append(out, r.Key)
	}
	return out
}

// ofSpotAlone is the NodePool that takes spot machines alone, where what the cloud refuses is spot; nil else.
func ofSpotAlone(c *edit.Workload) *scaling.Pool {
	g := c.Growth()
	if slices.ContainsFunc(g.Codes, func(k scaling.Code) bool { return !k.Spot() }) || c.Pod.Spec.NodeSelector[capacityType] == "spot" {
		return nil
	}
	for i := range g.Pools {
		for _, r := range g.Pools[i].Requirements {
			if r.Key == capacityType && r.Operator == corev1.NodeSelectorOpIn && !slices.Contains(r.Values, "on-demand") {
				return &g.Pools[i]
			}
		}
	}
	return nil
}

// onDemandToo lets a NodePool of spot machines alone have others, which another quota is of; they cost more.
func onDemandToo(c *edit.Workload, p *scaling.Pool) edit.Change {
	ch := Growing(diagnosis.CloudCapacityRefused, fmt.Sprintf("let NodePool %s take on-demand machines beside spot: what is used up is the account's quota of spot ones, and it may take no others", p.Name))
	ch.Until, ch.Untestable = "an on-demand machine of NodePool "+p.Name+" is a node", ""
	at := slices.IndexFunc(p.Requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == capacityType })
	ch.Commands = []string{fmt.Sprintf(`kubectl patch nodepool %s --type json -p '[{"op":"test","path":"/spec/template/spec/requirements/%[2]d/key","value":"%[3]s"},{"op":"add","path":"/spec/template/spec/requirements/%[2]d/values/-","value":"on-demand"}]'`, p.Name, at, capacityType),
		"kubectl get nodeclaims -w", fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name)}
	return ch
}

// ofSpotToo is the NodePool that takes on-demand machines beside spot, where what the cloud refuses is spot's alone and the pod
// may have either: Karpenter chooses spot as long as it may. nil else.
func ofSpotToo(c *edit.Workload) *scaling.Pool {
	pools := c.Growth().Pools
	if k := c.Growth().Claim; k != nil && len(pools) == 0 {
		if p := c.Cluster.Outlook().Pool(k.Pool); p != nil {
			pools = []scaling.Pool{*p}
		}
	}
	if slices.ContainsFunc(c.Growth().Codes, func(k scaling.Code) bool { return !k.Spot() }) || c.Pod.Spec.NodeSelector[capacityType] != "" {
		return nil
	}
	for i := range pools {
		for _, r := range pools[i].Requirements {
			if r.Key == capacityType && r.Operator == corev1.NodeSelectorOpIn && slices.Contains(r.Values, "spot") && slices.Contains(r.Values, "on-demand") {
				return &pools[i]
			}
		}
	}
	return nil
}

// askOnDemand has the workload take on-demand machines alone: another quota is of those, and they cost more. Its pods that run
// are made again for it.
func askOnDemand(c *edit.Workload, p *scaling.Pool) edit.Change {
	ch := Growing(diagnosis.CloudCapacityRefused, fmt.Sprintf("ask for on-demand machines by selector %s=on-demand in %s: NodePool %s takes them too, and what is used up is the quota of spot alone", capacityType, c.WorkloadName(), p.Name))
	ch.Until, ch.Untestable = "an on-demand machine of NodePool "+p.Name+" is a node", ""
	ch.Risk, ch.Drained = diagnosis.MediumRisk, c.Cluster.Running(c.Incident.Workload)
	ch.Commands = []string{c.EditByHand(fmt.Sprintf("nodeSelector: {%q: on-demand}", capacityType)), "kubectl get nodeclaims -w", fmt.Sprintf("kubectl -n %s get pod %s -w", c.Pod.Namespace, c.Pod.Name)}
	return ch
}

// azureRoom is how Azure tells by how much a quota is exceeded.
var azureRoom = regexp.MustCompile(`Current Limit: (\d+), Current Usage: (\d+), Additional Required: (\d+)`)

// beyond is by how much a quota is exceeded, where the cloud says it; empty else.
func beyond(c *edit.Workload) string {
	said := c.Growth().Said
	if k := c.Growth().Claim; k != nil {
		said += " " + k.Launched.Message
	}
	m := azureRoom.FindStringSubmatch(strings.Join(strings.Fields(said), " "))
	if m == nil {
		return ""
	}
	return fmt.Sprintf(": %s of %s used, %s more needed", m[2], m[1], m[3])
}
