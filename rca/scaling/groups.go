package scaling

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// poolLabels are those by which clouds and their tools name, on a node, the pool that its
// group is of: EKS, eksctl, GKE, AKS (new and old), kOps, Gardener, DigitalOcean, Scaleway, IBM.
var poolLabels = []string{"eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", "agentpool", "kops.k8s.io/instancegroup",
	"worker.gardener.cloud/pool", "doks.digitalocean.com/node-pool", "k8s.scaleway.com/pool-name", "ibm-cloud.kubernetes.io/worker-pool-name"}

// IsPoolLabel says whether a label names the pool of a node.
func IsPoolLabel(key string) bool { return slices.Contains(poolLabels, key) }

// okePool is the annotation by which Oracle's managed nodes name theirs: by its id, which is the group's
// name (cluster-autoscaler cloudprovider/oci/nodepools).
const okePool = "oci.oraclecloud.com/node-pool-id"

// PoolOf is the name of a node's pool; empty where nothing tells it.
func PoolOf(n *corev1.Node) string {
	for _, key := range poolLabels {
		if pool := n.Labels[key]; pool != "" {
			return pool
		}
	}
	return n.Annotations[okePool]
}

// Of says whether the group is one of the pool's: clouds put the pool's name, between
// separators, into the group's.
func (g *Group) Of(pool string) bool {
	if pool == "" {
		return false
	}
	const separators = "-./_"
	for rest, name := 0, g.Short(); ; {
		at := strings.Index(name[rest:], pool)
		if at < 0 {
			return false
		}
		begin := rest + at
		end := begin + len(pool)
		if (begin == 0 || strings.ContainsRune(separators, rune(name[begin-1]))) && (end == len(name) || strings.ContainsRune(separators, rune(name[end]))) {
			return true
		}
		rest = begin + 1
	}
}

// onAKS is how AKS names the scale sets of its pools.
var onAKS = regexp.MustCompile(`^aks-([a-z][a-z0-9]*)-[0-9]+-vmss$`)

// PoolOnAKS is the name of the pool of AKS that the group is the scale set of; empty for another.
func (g *Group) PoolOnAKS() string {
	if m := onAKS.FindStringSubmatch(g.Short()); m != nil {
		return m[1]
	}
	return ""
}
