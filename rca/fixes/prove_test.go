package fixes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/rcatest"
)

// A fix is what the scheduler's own code makes of the cluster as the fix leaves it: a node for
// the pod that no kubelet would refuse again, and that no manager is about to change.
func TestProofs(t *testing.T) {
	full := func(nodes ...string) func(*cluster.State) {
		return func(st *cluster.State) {
			for _, n := range nodes {
				p := rcatest.Victim("v-"+n, 0, 1, 0, "v")
				p.Spec.NodeName, p.Spec.Containers[0].Resources.Requests = n, rcatest.List("nvidia.com/mig-1g.5gb", "7")
				st.Pods = append(st.Pods, p)
			}
		}
	}
	const accepts, copied = "the scheduler's filters accept ", " on a copy of the cluster"
	fewer := func(node string) []edit.Change {
		return []edit.Change{{Kind: diagnosis.ChangeRequest, Title: "less", Pod: func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"on": node} }}}
	}
	midway := func(c *Finder) {
		c.Judged = []diagnosis.NodeBlockers{{Name: "a", Blockers: []diagnosis.Blocker{{Cause: diagnosis.MIGConfigInProgress}}}, {Name: "b", Blockers: []diagnosis.Blocker{{Cause: diagnosis.MIGInstancesInUse}}}}
	}
	claimed := func(source corev1.PersistentVolumeSource, mode corev1.PersistentVolumeAccessMode) func(*cluster.State) {
		return func(st *cluster.State) {
			full("a")(st)
			for _, p := range st.Pods {
				p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
				p.UID = types.UID(p.Name)
			}
			st.PVs = []*corev1.PersistentVolume{{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source, AccessModes: []corev1.PersistentVolumeAccessMode{mode}, ClaimRef: &corev1.ObjectReference{Namespace: st.Pods[0].Namespace, Name: "data"}}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}}
			st.PVCs = []*corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: st.Pods[0].Namespace, Name: "data", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv", AccessModes: []corev1.PersistentVolumeAccessMode{mode}}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}}
		}
	}
	disk := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "v"}}
	files := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "efs.csi.aws.com", VolumeHandle: "v"}}
	nothing := func(*Finder) []edit.Change { return []edit.Change{{Title: "x"}} }
	for name, tc := range map[string]struct {
		state   func(*cluster.State)
		edit    func(*Finder)
		changes func(*Finder) []edit.Change
		verdict diagnosis.Verdict
		why     string
		runs    int // of those that wait; -1: it is not said
	}{
		"no copy shows it": {nil, nil, func(*Finder) []edit.Change {
			return []edit.Change{{Title: "x"}, {Title: "y", Untestable: "nobody knows"}}
		}, diagnosis.Unproven, "nobody knows", -1},
		"it does not help": {full("a", "b"), nil, func(*Finder) []edit.Change { return []edit.Change{{Title: "x"}} }, diagnosis.Refuted, "the scheduler's filters still refuse every node", -1},
		"it helps":         {full("a"), nil, func(*Finder) []edit.Change { return []edit.Change{{Title: "x"}} }, diagnosis.Schedules, accepts + "b" + copied, 1},
		"somebody leaves": {full("a", "b"), nil, func(c *Finder) []edit.Change {
			return []edit.Change{edit.EvictFrom(c.Node("a"), diagnosis.MIGInstancesInUse, c.Node("a").Pods)}
		}, diagnosis.Schedules, accepts + "a" + copied + "; victims will wait: 1 of 1", 1},
		"somebody leaves and lands": {full("a"), nil, func(c *Finder) []edit.Change {
			ch := edit.EvictFrom(c.Node("a"), diagnosis.MIGInstancesInUse, c.Node("a").Pods)
			ch.Pod = fewer("a")[0].Pod
			return []edit.Change{ch}
		}, diagnosis.Schedules, accepts + "a" + copied + "; each evicted pod was placed again", 1},
		"its kubelet would refuse it again": {full("b"), nil, func(*Finder) []edit.Change { return []edit.Change{{Title: "x", Not: "a"}} }, diagnosis.Refuted, "the scheduler chooses a again, whose kubelet would refuse it again", -1},
		"another node's would":              {full("a"), nil, func(*Finder) []edit.Change { return []edit.Change{{Title: "x", Not: "a"}} }, diagnosis.Schedules, accepts + "b" + copied, 1},
		"another node has its disk":         {claimed(disk, corev1.ReadWriteOnce), nil, nothing, diagnosis.Unproven, accepts + "b" + copied + ", but its PersistentVolumeClaim data may be on one node at a time, and a/v-a has it on a", -1},
		"and something comes first":         {claimed(disk, corev1.ReadWriteOnce), nil, func(*Finder) []edit.Change { return []edit.Change{{Title: "x", Until: "it is noon"}} }, diagnosis.Unproven, "accepted on a copy once it is noon, but its PersistentVolumeClaim data may be on one node at a time, and a/v-a has it on a", -1},
		"and somebody would be stopped": {func(st *cluster.State) {
			claimed(disk, corev1.ReadWriteOnce)(st)
			full("b")(st)
		}, nil, func(c *Finder) []edit.Change {
			return []edit.Change{edit.EvictFrom(c.Node("b"), diagnosis.MIGInstancesInUse, c.Node("b").Pods)}
		}, diagnosis.Refuted, accepts + "b" + copied + ", but its PersistentVolumeClaim data may be on one node at a time, and a/v-a has it on a", -1},
		"all nodes may have its disk": {claimed(disk, corev1.ReadWriteMany), nil, nothing, diagnosis.Schedules, accepts + "b" + copied, 1},
		"it is no disk":               {claimed(files, corev1.ReadWriteOnce), nil, nothing, diagnosis.Schedules, accepts + "b" + copied, 1},
		"it is about to be deleted": {func(st *cluster.State) {
			full("b")(st)
			for _, n := range st.Nodes {
				n.Spec.ProviderID = "aws:///z/" + n.Name
			}
			st.NodeClaims = []*unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "k"}, "status": map[string]any{"providerID": "aws:///z/a", "conditions": []any{map[string]any{"type": "Registered", "status": "False"}}}}}}
		}, nil, func(*Finder) []edit.Change { return []edit.Change{{Title: "x"}} }, diagnosis.Refuted, "Karpenter does not take a for its own and deletes its machine: NodeClaim k has not registered", -1},
		"it is about to be changed": {nil, midway, func(*Finder) []edit.Change { return fewer("a") }, diagnosis.Refuted, "MIG manager is not done with a: what it offers now it may not offer in a minute", -1},
		"another is about to be":    {nil, midway, func(*Finder) []edit.Change { return fewer("b") }, diagnosis.Schedules, accepts + "b" + copied, 1},
		"what was asked stays": {nil, midway, func(*Finder) []edit.Change {
			all := fewer("a")
			all[0].Adds = true
			return all
		}, diagnosis.Schedules, accepts + "a" + copied, 1},
		"a label is changed": {nil, midway, func(*Finder) []edit.Change {
			all := fewer("a")
			all[0].Kind = diagnosis.FixSelector
			return all
		}, diagnosis.Schedules, accepts + "a" + copied, 1},
		"something comes first": {full("a"), nil, func(*Finder) []edit.Change { return []edit.Change{{Title: "x", Until: "it is noon"}} }, diagnosis.Waits, "accepted on a copy once it is noon", -1},
		"it does not exist yet": {func(st *cluster.State) {
			full("a")(st)
			st.Pods[0].Spec.Containers[0].Resources.Limits = st.Pods[0].Spec.Containers[0].Resources.Requests.DeepCopy()
		}, func(c *Finder) { c.Unborn = true }, func(*Finder) []edit.Change { return []edit.Change{{Title: "x"}} }, diagnosis.Schedules, "by the arithmetic of quotas and limits the API server takes it; " + accepts + "b" + copied, 1},
		"the API server refuses it": {full("a"), func(c *Finder) { c.Unborn = true }, func(*Finder) []edit.Change { return []edit.Change{{Title: "x"}} }, diagnosis.Refuted, "container c requests 1 nvidia.com/mig-1g.5gb and has no limit of it", -1},
		"all that wait":             {full("a"), func(c *Finder) { c.Incident.Waiting = 9 }, func(*Finder) []edit.Change { return []edit.Change{{Title: "x"}} }, diagnosis.Schedules, accepts + "b" + copied + "; 7 of 9 run", 7},
	} {
		t.Run(name, func(t *testing.T) {
			c := finder(t, nil, "nvidia.com/mig-1g.5gb", func(st *cluster.State) {
				for _, n := range st.Nodes {
					n.Labels["on"] = n.Name
				}
				if tc.state != nil {
					tc.state(st)
				}
			})
			if tc.edit != nil {
				tc.edit(c)
			}
			f := c.candidate(c.Node("a"), tc.changes(c))
			if err := c.prove(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			runs := -1
			if f.fix.Effect != nil {
				runs = f.fix.Effect.Runs
			}
			if p := f.fix.Proof; p.Verdict != tc.verdict || p.Why != tc.why || runs != tc.runs {
				t.Errorf("%s: %q, %d run; want %s: %q, %d", p.Verdict, p.Why, runs, tc.verdict, tc.why, tc.runs)
			}
		})
	}
}
