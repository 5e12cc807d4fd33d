package scaling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
)

func said(all []Reason) string {
	var out []string
	for _, r := range all {
		out = append(out, fmt.Sprintf("%d %s %s %s|%s", r.Count, r.Bar, r.Pool, r.Lacks, r.Text))
	}
	return strings.Join(out, "\n")
}

// One Event lists all groups, in any order, and commas stand inside reasons, too.
func TestNotTriggered(t *testing.T) {
	for message, want := range map[string]string{
		"pod didn't trigger scale-up: 2 max node group size reached, 1 Insufficient nvidia.com/gpu":                                     "2 limit  |max node group size reached\n1 lacks  nvidia.com/gpu|Insufficient nvidia.com/gpu",
		`pod didn't trigger scale-up: 1 exceeded quota: "gpus", resources: cpu, nvidia.com/gpu, 3 node(s) had untolerated taint {a: b}`: "1 limit  |exceeded quota: \"gpus\", resources: cpu, nvidia.com/gpu\n3 taint  |node(s) had untolerated taint {a: b}",
		"pod didn't trigger scale-up (it wouldn't fit if a new node is added): 1 in backoff after failed scale-up":                      "1 backoff  |in backoff after failed scale-up",
		"pod didn't trigger scale-up: max total nodes in cluster reached":                                                               "0 limit  |max total nodes in cluster reached",
		"pod didn't trigger scale-up: 4 node(s) didn't match Pod's node affinity/selector, 1 not ready for scale-up":                    "4 selector  |node(s) didn't match Pod's node affinity/selector\n1 notReady  |not ready for scale-up",
		"pod didn't trigger scale-up: max node group size reached, Insufficient cpu elsewhere":                                          "0 limit  |max node group size reached, Insufficient cpu elsewhere",
		"pod didn't trigger scale-up: none fits, 2 max node group size reached":                                                         "0 limit  |none fits, 2 max node group size reached",
		"pod didn't trigger scale-up: ":               "",
		"pod triggered scale-up: [{g 0->1 (max: 4)}]": "",
	} {
		if got := said(NotTriggered(message)); got != want {
			t.Errorf("%q: got\n%s\nwant\n%s", message, got, want)
		}
	}
}

// A taint that a node is given in its life is none that a fresh machine has.
func TestRemembered(t *testing.T) {
	for text, want := range map[string]string{
		"node(s) had untolerated taint {remediator.kubernetes.azure.com/unschedulable: }":    "remediator.kubernetes.azure.com/unschedulable",
		"node(s) had untolerated taint {ToBeDeletedByClusterAutoscaler: 1767000000}":         "ToBeDeletedByClusterAutoscaler",
		"node(s) had untolerated taint {aws-node-termination-handler/spot-itn: 1}":           "aws-node-termination-handler/spot-itn",
		"node(s) had untolerated taint {node.kubernetes.io/not-ready: }":                     "node.kubernetes.io/not-ready",
		"node(s) had untolerated taint {sku: gpu}":                                           "",
		"node(s) had untolerated taint(s)":                                                   "",
		"node(s) didn't match Pod's node affinity/selector {node.kubernetes.io/not-ready: }": "",
		"node(s) had taint {node.kubernetes.io/not-ready: }, that the pod didn't tolerate":   "node.kubernetes.io/not-ready",
	} {
		if got := groupReason(1, text).Remembered(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// A taint that software takes off is told by its name.
func TestAtStartup(t *testing.T) {
	for key, want := range map[string]bool{"node.cilium.io/agent-not-ready": true, "ebs.csi.aws.com/agent-not-ready": true, "gpu.acme.io/notReady": true, "acme.io/uninitialized": true, "startup.acme.io/driver": true,
		"node.kubernetes.io/not-ready": false, "nvidia.com/gpu": false, "acme.io/ready": false, "acme.io/startups": false} {
		if got := groupReason(1, "node(s) had untolerated taint {"+key+": true}").AtStartup(); (got == key) != want {
			t.Errorf("%s: %q, want %v", key, got, want)
		}
	}
}

// Karpenter has an error for each NodePool; before 1.5 each names its pool first.
func TestNotScheduled(t *testing.T) {
	for message, want := range map[string]string{
		`Failed to schedule pod, incompatible with nodepool "gpu", daemonset overhead={"cpu":"150m"}, did not tolerate taint (taint=nvidia.com/gpu=true:NoSchedule); incompatible with nodepool "cpu", daemonset overhead={"cpu":"150m"}, no instance type has enough resources, requirements=a In [b], resources={"nvidia.com/gpu":"1"}`: "taint gpu,lacks cpu",
		"Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=gpu)":                                                                                                                      "limit gpu",
		`Failed to schedule pod, all available instance types exceed limits for nodepool: "gpu"`:                                                                                                                              "limit gpu",
		"Failed to schedule pod, node limits have been exhausted for nodepool (NodePool=a.b)":                                                                                                                                 "limit a.b",
		"Failed to schedule pod, no instance type which met the scheduling requirements and had enough resources, had a required offering":                                                                                    "offering ",
		`Failed to schedule pod, incompatible requirements, label "gpu" does not have known values`:                                                                                                                           "selector ",
		"Failed to schedule pod, no instance type met all requirements":                                                                                                                                                       "types ",
		"Failed to schedule pod, no instance type has enough resources, requirements=karpenter.sh/nodepool In [cpu.a], resources={}; no instance type has the required offering, requirements=karpenter.sh/nodepool In [gpu]": "lacks cpu.a,offering gpu",
		"Failed to schedule pod, no instance type has the required offering":                                                                                                                                                  "offering ",
		`Failed to schedule pod, incompatible with nodepool "g5", daemonset overhead={"memory":"2198Mi"}, no instance type satisfied resources {"memory":"15510Mi","nvidia.com/gpu":"1"} and requirements node.kubernetes.io/instance-type In [g5.xlarge] (no instance type which had enough resources and the required offering met the scheduling requirements)`: "lacks g5",
		"Failed to schedule pod, no instance type which met the scheduling requirements and the required offering had the required resources, requirements=a In [b]":                                                                                                                                                                                               "lacks ",
		"Failed to schedule pod, no instance type had enough resources or had a required offering":                                                                   "lacks ",
		"Failed to schedule pod, no instance type met the scheduling requirements or had enough resources or had a required offering":                                "types ",
		"Failed to schedule pod, no instance type met the scheduling requirements or had a required offering":                                                        "types ",
		"Failed to schedule pod, no instance type met the requirements/resources/offering tuple":                                                                     "types ",
		"Failed to schedule pod, no instance type met the scheduling requirements or had a required offering, requirements=topology.kubernetes.io/zone DoesNotExist": "volume ",
	} {
		var got []string
		for _, r := range NotScheduled(message) {
			got = append(got, string(r.Bar)+" "+r.Pool)
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q: %q, want %q", message, got, want)
		}
	}
}

// A value without a name is that of machines which have none; what was cut off says nothing.
func TestValuesBesideOneWithoutAName(t *testing.T) {
	for counts, want := range map[string]string{
		"(counts = : 0, b: 1, a: 2, podDomains = zone Exists, nodeDomains = zone In [a b]": "a b",
		"(counts = b: 1, : 0, podDomains = zone Exists, nodeDomains = zone In [b]":         "b",
		"(counts = a: 2, b: 1, podDomains = zone In [a], nodeDomains = zone In [a]":        "",
		"(counts = : 0, a: 1, ":                      "",
		"(counts = : 0, a, podDomains = zone Exists": "",
	} {
		r := Reason{Text: "unsatisfiable topology constraint for topology spread, key=zone " + counts}
		if got := strings.Join(r.Beside(), " "); got != want {
			t.Errorf("%s: %q, want %q", counts, got, want)
		}
	}
}

// A stock-out, an account's quota and a subnet without addresses arrive under one name.
func TestCodes(t *testing.T) {
	for words, want := range map[string]string{
		"insufficient capacity, with fleet error(s), InsufficientInstanceCapacity: none; VcpuLimitExceeded: limit of 0":                                                      "InsufficientInstanceCapacity, VcpuLimitExceeded " + string(Stockout) + "; the account's quota for such machines is 0",
		"VcpuLimitExceeded: your current vCPU limit of 64 allows; VcpuLimitExceeded: your current vCPU limit of 0 allows":                                                    "VcpuLimitExceeded " + string(Quota),
		"QUOTA_EXCEEDED: Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 0.0 in region europe-west4.":                                                                               "QUOTA_EXCEEDED the account's quota for such machines is 0",
		"Failed adding 1 nodes to group g due to OutOfResourcesErrorClass.RESOURCE_POOL_EXHAUSTED; source errors: …":                                                         "RESOURCE_POOL_EXHAUSTED " + string(Stockout),
		"SubscriptionQuotaReached: Standard NCADS":                                                                                                                           "SubscriptionQuotaReached " + string(Quota),
		`Code="OperationNotAllowed" Message="The operation couldn't be completed as it results in exceeding quota limit of standardDSv3Family Cores. Maximum allowed: 1000"`: "OperationNotAllowed: standardDSv3Family Cores " + string(Quota),
		"OperationNotAllowed\n\n\"Operation could not be completed as it results in exceeding approved standardNCASv3Family Cores quota. Location: eastus\"; InstanceLimitExceeded; OperationNotAllowed, exceeding approved standardNCASv3Family Cores quota": "InstanceLimitExceeded, OperationNotAllowed: standardNCASv3Family Cores " + string(Quota),
		"OperationNotAllowed: The server rejected the request because too many requests have been received":                                                                                                                                                   " ",
		"InsufficientFreeAddressesInSubnet.":                          "InsufficientFreeAddressesInSubnet " + string(Addresses),
		"all requested instance types were unavailable during launch": " ",
	} {
		if all := Codes(words); Names(all)+" "+Says(all) != want {
			t.Errorf("%q: %s %s, want %s", words, Names(all), Says(all), want)
		}
	}
}

// What is no status is none; YAML is read, and of the plain text of versions before 1.30 the groups.
func TestStatus(t *testing.T) {
	of := func(status string) *Status {
		return ReadStatus(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: cluster.AutoscalerStatus, Annotations: map[string]string{LastUpdated: "2026-11-20 11:59:50.1 +0000 UTC"}}, Data: map[string]string{"status": status}})
	}
	for _, plain := range []string{"", "Cluster-autoscaler status at 2026-11-20 11:59:50 +0000 UTC:\nCluster-wide:\n  Health:      Healthy (ready=4)\n", "\t:", "[]"} {
		if s := of(plain); s != nil {
			t.Errorf("%q: %+v", plain, s)
		}
	}
	for written, want := range map[string]string{"2026-11-20 11:59:50.1 +0000 UTC": "2026-11-20 11:59:50.1 +0000 UTC", "2026-11-20T11:59:50Z": "2026-11-20 11:59:50 +0000 UTC", "then": "0001-01-01 00:00:00 +0000 UTC"} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{LastUpdated: written}}, Data: map[string]string{"status": "autoscalerStatus: Running"}}
		if s := ReadStatus(cm); s == nil || s.Updated.UTC().String() != want {
			t.Errorf("%s: %+v", written, s)
		}
	}
	s := of("autoscalerStatus: Running\nnodeGroups:\n- name: a/b/gpu\n  health: {cloudProviderTarget: 2, maxSize: 2}\n  scaleUp: {status: Backoff, backoffInfo: {errorCode: QUOTA_EXCEEDED, errorMessage: no}}\n")
	if s == nil || s.Updated.IsZero() || len(s.Groups) != 1 {
		t.Fatalf("%+v", s)
	}
	if g := s.Groups[0]; !g.AtMax() || !g.InBackoff() || g.Short() != "gpu" || g.ScaleUp.BackoffInfo.ErrorCode != "QUOTA_EXCEEDED" || g.Text != nil {
		t.Errorf("%+v", g)
	}
	s = of(`Cluster-autoscaler status at 2022-03-19 11:59:50.1 +0000 UTC:
Cluster-wide:
  Health:      Healthy (ready=9 unready=0 notStarted=0 longNotStarted=0 registered=9 longUnregistered=0)
  ScaleUp:     InProgress (ready=9 registered=9)

NodeGroups:
  Name:        https://h/zones/us-central1-c/instanceGroups/gke-a-grp
  Health:      Unhealthy (ready=1 unready=1 (resourceUnready=1) notStarted=2 longNotStarted=0 registered=4 longUnregistered=3 cloudProviderTarget=5 (minSize=1, maxSize=7))
               LastProbeTime:      2022-03-19 11:59:50 +0000 UTC m=+238.2
  ScaleUp:     Backoff (ready=1 cloudProviderTarget=5)
               LastProbeTime:      2022-03-19 11:59:50 +0000 UTC m=+238.2
  ScaleDown:   NoCandidates (candidates=0)

  Name:        b
  Health:      Healthy (ready=0 unready=0 notStarted=0 longNotStarted=0 registered=0 longUnregistered=0 cloudProviderTarget=0 (minSize=0, maxSize=2))
`)
	var got []string
	for _, g := range s.Groups {
		r := g.Health.NodeCounts.Registered
		got = append(got, fmt.Sprint(g.Short(), " ", g.Health.Status, r.Ready, r.Unready.Total, r.Unready.ResourceUnready, r.NotStarted, r.Total, g.Health.NodeCounts.LongUnregistered, g.Health.Target, g.Health.MinSize, g.Health.MaxSize, g.ScaleUp.Status, len(g.Text)))
	}
	if want := "gke-a-grp Unhealthy1 1 1 2 4 3 5 1 7Backoff2; b Healthy0 0 0 0 0 0 0 0 21"; strings.Join(got, "; ") != want || s.State != "" || s.Updated.IsZero() {
		t.Errorf("%s, want %s: %+v", strings.Join(got, "; "), want, s)
	}
}

// A group is at its largest where it has one, empty where it has no machine and may have some,
// and of machines those count that became nodes.
func TestGroupsOfStatus(t *testing.T) {
	of := func(target, registered, most int, status string) Group {
		g := Group{Name: "g"}
		g.Health.Target, g.Health.MaxSize, g.ScaleUp.Status = target, most, status
		g.Health.NodeCounts.Registered.Total = registered
		return g
	}
	s := &Status{Groups: []Group{of(0, 0, 2, "NoActivity"), of(1, 0, 2, "InProgress"), of(0, 1, 2, ""), of(2, 2, 2, "Backoff"), of(3, 2, 2, ""), of(0, 0, 0, ""), of(1, 1, 0, "")}}
	const want = "empty; ; grows; at max in backoff; at max; ; "
	var got []string
	for i := range s.Groups {
		g, says := &s.Groups[i], []string{}
		for word, is := range map[string]bool{"empty": g.Empty(), "at max": g.AtMax(), "in backoff": g.InBackoff(), "grows": g.Grows()} {
			if is {
				says = append(says, word)
			}
		}
		slices.Sort(says)
		got = append(got, strings.Join(says, " "))
	}
	if text := strings.Join(got, "; "); text != want || s.Machines() != 6 {
		t.Errorf("%q, %d machines", text, s.Machines())
	}
	if ReadStatus(nil) != nil {
		t.Error("a status of nothing")
	}
}

// What helps against a refusal goes by its ground: a code has the one, and not the others.
func TestGroundsOfCodes(t *testing.T) {
	all := Codes("QUOTA_EXCEEDED, then x.AMINotFound and QUOTA_EXCEEDED again", "SKUNotAvailable")
	if Names(all) != "QUOTA_EXCEEDED, AMINotFound, SKUNotAvailable" || !Has(all, Quota) || !Has(all, Setup) || !Has(all, Stockout) || Has(all, Addresses) || Has(nil, Quota) {
		t.Errorf("%v", all)
	}
	if all = Codes(".QUOTA_EXCEEDED", "AuthFailure.ServiceLinkedRoleCreationNotPermitted"); Names(all) != "QUOTA_EXCEEDED, AuthFailure.ServiceLinkedRoleCreationNotPermitted" {
		t.Errorf("%v", all)
	}
}
