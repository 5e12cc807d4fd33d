package scaling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A group is a pool's where its name has the pool's between separators; to begin alike is not
// enough.
func TestGroupOfPool(t *testing.T) {
	for group, pools := range map[string]map[string]bool{
		"eks-gpu-0ac1-11":                  {"gpu": true, "gp": false, "": false, "gpu-0ac1": true},
		"eks-gpus-0ac1":                    {"gpu": false, "gpus": true},
		"https://c/zones/z/gke-c-l4-5-grp": {"l4": true, "c": true, "zones": false},
		"gpu-grp":                          {"gpu": true, "grp": true},
		"aks-gpugpu-gpu-vmss":              {"gpu": true},
	} {
		for pool, want := range pools {
			if got := (&Group{Name: group}).Of(pool); got != want {
				t.Errorf("%s of %q: %v", group, pool, got)
			}
		}
	}
}

// Clouds and their tools name a node's pool by labels of their own, the cloud's own first; Oracle by its id.
func TestPoolOfNode(t *testing.T) {
	for want, labels := range map[string]map[string]string{
		"":    {"pool": "x", "agentpool": ""},
		"eks": {"eks.amazonaws.com/nodegroup": "eks", "alpha.eksctl.io/nodegroup-name": "ctl"},
		"ctl": {"alpha.eksctl.io/nodegroup-name": "ctl"},
		"gke": {"cloud.google.com/gke-nodepool": "gke"},
		"new": {"kubernetes.azure.com/agentpool": "new", "agentpool": "old"},
		"old": {"agentpool": "old"},
		"ops": {"kops.k8s.io/instancegroup": "ops"},
	} {
		if got := PoolOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}); got != want {
			t.Errorf("%v: %q, want %q", labels, got, want)
		}
	}
	ids := metav1.ObjectMeta{Annotations: map[string]string{okePool: "ocid1.nodepool.a"}}
	if got := PoolOf(&corev1.Node{ObjectMeta: ids}); got != "ocid1.nodepool.a" {
		t.Errorf("%q", got)
	}
	ids.Labels = map[string]string{"agentpool": "own"}
	if got := PoolOf(&corev1.Node{ObjectMeta: ids}); got != "own" {
		t.Errorf("%q", got)
	}
}

// A group of GCE's has its zone in its name, and gcloud asks for it.
func TestTheZoneOfAGroup(t *testing.T) {
	for name, want := range map[string]string{
		"https://content.googleapis.com/compute/v1/projects/p/zones/europe-west1-b/instanceGroups/gke-a-grp": " --zone europe-west1-b",
		"gke-a-grp": "", "MachineDeployment/a/zones": "",
	} {
		if got := (&Group{Name: name}).InZone(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
