package devices

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Orphan is an allocated claim whose pods are all gone. Kubernetes' resource claim controller
// frees such a claim within seconds; where it does not (it was away when the pod went, and
// does not look at claims that are marked for deletion, kubernetes/kubernetes#132334), the
// devices stay allocated for ever, and nobody can be evicted for them.
type Orphan struct {
	Claim *resourcev1.ResourceClaim
	Gone  []Gone
	Age   time.Duration // since it was marked for deletion; 0 where it is not
}

// Gone is a pod that a claim is reserved for and that is not there. Again: another pod has
// its name now.
type Gone struct {
	Namespace, Name string
	UID             types.UID
	Again           bool
}

// settledAfter is how old a claim is before it can be an orphan: pods and claims are not read
// at one instant.
const settledAfter = time.Minute

// leaves says that a pod is being deleted and is not overdue.
func (v *Claims) leaves(p *corev1.Pod) bool { return view.Leaves(p, v.asker.Cluster.State.Now) }

// consumer is the pod that a claim is reserved for; nil where it is not there, and for what is no
// pod.
func (v *Claims) consumer(claim *resourcev1.ResourceClaim, r resourcev1.ResourceClaimConsumerReference) *corev1.Pod {
	if r.APIGroup != "" || r.Resource != "pods" {
		return nil
	}
	p := v.asker.Cluster.State.Pod(claim.Namespace, r.Name)
	if p == nil || r.UID != "" && p.UID != "" && r.UID != p.UID {
		return nil
	}
	return p
}

// Orphaned are the pods that a claim is reserved for where none of them is there; nil where one
// is, where it is reserved for nobody or for something else, and where pods were not read.
func (v *Claims) Orphaned(claim *resourcev1.ResourceClaim) []Gone {
	if v.asker == nil {
		return nil // there is no cluster to ask
	}
	st := v.asker.Cluster.State
	if claim.Status.Allocation == nil || len(claim.Status.ReservedFor) == 0 || st.Unread["Pod"] != "" || st.Now.Sub(claim.CreationTimestamp.Time) < settledAfter {
		return nil
	}
	var out []Gone
	for _, r := range claim.Status.ReservedFor {
		if r.APIGroup != "" || r.Resource != "pods" || v.consumer(claim, r) != nil {
			return nil
		}
		out = append(out, Gone{claim.Namespace, r.Name, r.UID, st.Pod(claim.Namespace, r.Name) != nil})
	}
	return out
}

// Orphans are the claims that hold devices of the node for pods that are gone.
func (v *Claims) Orphans(node string) []Orphan { return v.orphansOf(v.ByNode[node]) }

// AllOrphans are those of all nodes.
func (v *Claims) AllOrphans() []Orphan {
	if v.orphans == nil {
		all := v.orphansOf(v.Devices)
		v.orphans = &all
	}
	return *v.orphans
}

func (v *Claims) orphansOf(devices []*Device) []Orphan {
	var out []Orphan
	seen := map[*resourcev1.ResourceClaim]bool{}
	for _, d := range devices {
		claim := v.Inventory.Holders[d.ID]
		if claim == nil || seen[claim] {
			continue
		}
		seen[claim] = true
		if gone := v.Orphaned(claim); gone != nil {
			o := Orphan{Claim: claim, Gone: gone}
			if claim.DeletionTimestamp != nil {
				o.Age = v.asker.Cluster.State.Now.Sub(claim.DeletionTimestamp.Time)
			}
			out = append(out, o)
		}
	}
	return out
}

// Text says what an orphan is.
func (o Orphan) Text() string {
	text := "is reserved for " + goneText(o.Gone)
	if o.Claim.DeletionTimestamp != nil {
		text += fmt.Sprintf("; it was marked for deletion %s ago", view.Age(o.Age))
	}
	return text
}

// Claims are what Text is made from.
func (o Orphan) Claims() []diagnosis.Claim {
	var out []diagnosis.Claim
	if at := o.Claim.DeletionTimestamp; at != nil {
		out = append(out, diagnosis.That("metadata.deletionTimestamp", "", diagnosis.Is, at.UTC().Format(time.RFC3339)))
	}
	for _, g := range o.Gone {
		of := "Pod/" + g.Namespace + "/" + g.Name
		absent := diagnosis.That("", "", diagnosis.Absent, "").Of(of)
		if g.Again {
			absent = diagnosis.That("metadata.uid", "", diagnosis.IsNot, string(g.UID)).Of(of)
		}
		out = append(out, diagnosis.That("status.reservedFor", "", diagnosis.Contains, g.Name), absent)
	}
	return out
}

// goneText names pods that are not there.
func goneText(gone []Gone) string {
	names := make([]string, len(gone))
	for i, g := range gone {
		if names[i] = g.Name; g.Again {
			names[i] = "a former " + g.Name
		}
	}
	if len(names) == 1 {
		return names[0] + ", which is not there any more"
	}
	return strings.Join(names, ", ") + ", which are not there any more"
}
