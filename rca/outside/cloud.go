package outside

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
)

// provider is the cloud of the nodes, or of a node group by its name: aws, gce, azure;
// empty where neither says.
func provider(c *edit.Workload) string {
	for _, n := range c.Cluster.SortedNodes() {
		if cloud, _, ok := strings.Cut(n.Spec.ProviderID, "://"); ok && (cloud == "aws" || cloud == "gce" || cloud == "azure") {
			return cloud
		}
	}
	for _, n := range c.Cluster.SortedNodes() {
		for key := range n.Labels {
			if strings.HasPrefix(key, "kubernetes.azure.com/") || strings.HasPrefix(key, "karpenter.azure.com/") {
				return "azure"
			}
		}
	}
	for _, p := range c.Cluster.Outlook().Pools {
		if p.Class.Kind == "AKSNodeClass" {
			return "azure"
		}
	}
	for _, g := range c.Growth().Groups {
		switch {
		case strings.Contains(g.Name, "googleapis.com"):
			return "gce"
		case strings.HasPrefix(g.Name, "aks-"):
			return "azure"
		case strings.HasPrefix(g.Name, "eks-") || strings.HasPrefix(g.Name, "eksctl-"):
			return "aws"
		}
	}
	return ""
}

// growGroups are the commands of the cloud that raise a group's size.
func growGroups(c *edit.Workload) []string {
	out := []string{showStatus(c)}
	cloud := provider(c)
	groups := c.Growth().Groups
	if len(groups) == 0 {
		groups = []scaling.Group{{Name: "GROUP"}}
	}
	for i := range groups {
		g := &groups[i]
		most := "MORE"
		if g.Health.MaxSize > 0 {
			most = fmt.Sprint(g.Health.MaxSize + 1)
		}
		if o := g.Object(); o != nil {
			out = append(out, boundObject(o, most))
			continue
		}
		switch cloud {
		case "aws":
			out = append(out, "aws autoscaling update-auto-scaling-group --auto-scaling-group-name "+g.Short()+" --max-size "+most,
				"# of eksctl: eksctl scale nodegroup --cluster CLUSTER --name "+cmp.Or(nodeGroup(c, g.Short()), "NODEGROUP")+" --nodes-max "+most)
		case "gce":
			out = append(out, "gcloud container clusters update CLUSTER --enable-autoscaling --node-pool "+cmp.Or(nodeGroup(c, g.Short()), g.Short())+" --max-nodes "+most)
		case "azure":
			out = append(out, fmt.Sprintf("az aks nodepool update --resource-group GROUP --cluster-name CLUSTER --name %s --update-cluster-autoscaler --min-count %d --max-count %s", cmp.Or(nodeGroup(c, g.Short()), g.Short()), g.Health.MinSize, most))
		default:
			out = append(out, "# then raise the largest size of "+g.Short()+" to "+most+" with the cloud's own command")
		}
	}
	return out
}

// nodeGroup is the pool's own name, by the label of a node whose pool is part of the group's
// name, or by the pod's selector of such a label; empty for none.
func nodeGroup(c *edit.Workload, group string) string {
	for _, n := range c.Cluster.SortedNodes() {
		if pool := scaling.PoolOf(n.Node); (&scaling.Group{Name: group}).Of(pool) {
			return pool
		}
	}
	for key, pool := range c.Pod.Spec.NodeSelector {
		if scaling.IsPoolLabel(key) && (&scaling.Group{Name: group}).Of(pool) {
			return pool
		}
	}
	return ""
}

// tagCommands write on a node group what nodes of it will have.
func tagCommands(c *edit.Workload, what, value string) []string {
	groups := []string{"GROUP"}
	if all := c.Growth().Groups; ofObjects(all) {
		var out []string
		for i := range all {
			out = append(out, capacityOf(all[i].Object(), what, value))
		}
		return out
	}
	if all := c.Growth().Groups; len(all) > 0 {
		groups = groups[:0]
		for i := range all {
			groups = append(groups, all[i].Short())
		}
	}
	if cloud := provider(c); cloud != "aws" && cloud != "" {
		return []string{showStatus(c), "# this cloud's node groups have no such tag: set the group's smallest size to 1, and its nodes tell"}
	}
	var out []string
	for _, group := range groups {
		out = append(out, fmt.Sprintf("aws autoscaling create-or-update-tags --tags ResourceId=%s,ResourceType=auto-scaling-group,Key=k8s.io/cluster-autoscaler/node-template/%s,Value=%s,PropagateAtLaunch=true", group, what, value))
	}
	return out
}

// addGroup is for the cluster autoscaler whose groups do not have what the pod asks for: by the status it is seen which it
// knows, and one that is there already it may only have to find (cluster-autoscaler/cloudprovider/aws, Auto-Discovery Setup).
func addGroup(c *edit.Workload) []string {
	out := []string{showStatus(c) + "  # nodeGroups: which it knows"}
	if s := c.Cluster.Outlook().Status; s != nil && len(s.Groups) > 0 && len(s.Groups) <= mostGroups {
		names := make([]string, len(s.Groups))
		for i := range s.Groups {
			names[i] = s.Groups[i].Short()
		}
		out[0] += "; as of its last round " + strings.Join(names, ", ")
	}
	if provider(c) == "aws" {
		const tag = "ResourceId=GROUP,ResourceType=auto-scaling-group,PropagateAtLaunch=true,Key=k8s.io/cluster-autoscaler/"
		out = append(out, fmt.Sprintf("aws autoscaling create-or-update-tags --tags %[1]senabled,Value=true %[1]sCLUSTER,Value=owned  # where a group with such machines is there and not among them: it finds groups by these tags", tag))
	}
	return append(out, "# else add a node group whose machines the pod fits, with the cloud's own command")
}

// mostGroups is how many groups are named.
const mostGroups = 4

// quotaCommands ask the cloud for more.
func quotaCommands(c *edit.Workload) []string {
	switch provider(c) {
	case "gce":
		return []string{"gcloud compute regions describe REGION --format='table(quotas.metric,quotas.limit,quotas.usage)' | grep GPU", "# then ask for more: https://console.cloud.google.com/iam-admin/quotas"}
	case "azure":
		return []string{"az vm list-usage --location LOCATION -o table", "# then ask for more: az support or the portal, Usage + quotas"}
	}
	return append(lookAtPools(c), "aws service-quotas list-service-quotas --service-code ec2 --query \"Quotas[?contains(QuotaName,'Running On-Demand') || contains(QuotaName,'Spot')].[QuotaName,QuotaCode,Value]\" --output table",
		"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code CODE --desired-value VCPUS")
}
