package whatif

import (
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"
)

// List, Get and the lists of nodes with affinity are the framework's
// NodeInfoLister.

// List returns every node, by name.
func (l *lister) List() ([]fwk.NodeInfo, error) { return l.all(), nil }

// Get returns one node.
func (l *lister) Get(name string) (fwk.NodeInfo, error) {
	if info := l.snapshot.nodes[name]; info != nil {
		return info, nil
	}
	return nil, fmt.Errorf("node %q is not in the snapshot", name)
}

// HavePodsWithAffinityList returns the nodes with pods that have affinity terms.
func (l *lister) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	l.classify()
	return l.affinity.any, nil
}

// HavePodsWithRequiredAntiAffinityList returns the nodes with pods that require
// anti-affinity.
func (l *lister) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	l.classify()
	return l.affinity.anti, nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList returns those whose
// anti-affinity reaches beyond the node.
func (l *lister) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	l.classify()
	return l.affinity.farAnti, nil
}

func (l *lister) classify() {
	all := l.all()
	if l.affinity.known {
		return
	}
	l.affinity.any, l.affinity.anti, l.affinity.farAnti = nil, nil, nil
	for _, info := range all {
		if len(info.GetPodsWithAffinity()) > 0 {
			l.affinity.any = append(l.affinity.any, info)
		}
		if len(info.GetPodsWithRequiredAntiAffinity()) > 0 {
			l.affinity.anti = append(l.affinity.anti, info)
		}
		if len(info.GetPodsWithRequiredNonHostScopedAntiAffinity()) > 0 {
			l.affinity.farAnti = append(l.affinity.farAnti, info)
		}
	}
	l.affinity.known = true
}

// IsPVCUsedByPods says whether a scheduled pod uses the claim (namespace/name).
func (l *lister) IsPVCUsedByPods(claim string) bool {
	for _, info := range l.all() {
		if info.GetPVCRefCounts()[claim] > 0 {
			return true
		}
	}
	return false
}

// NodeInfos and StorageInfos make the lister the framework's SharedLister; the
// rest of it (gangs) is that of an empty cluster.

// NodeInfos returns the nodes.
func (l *lister) NodeInfos() fwk.NodeInfoLister { return l }

// StorageInfos returns the use of claims.
func (l *lister) StorageInfos() fwk.StorageInfoLister { return l }
