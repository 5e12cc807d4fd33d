package admission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Quota is what one ResourceQuota makes of a pod.
type Quota struct {
	*corev1.ResourceQuota
	asked corev1.ResourceList // by the pod, of what the quota limits
	used  corev1.ResourceList
	Hard  corev1.ResourceList
	// counted: the quota's status does not say what is used, so its pods were counted.
	Counted bool
	Demand  string // what must be written in every container and is not
	holders []QuotaHolder
}

// QuotaHolder is a pod that counts against a quota.
type QuotaHolder struct {
	Pod  *corev1.Pod
	Uses corev1.ResourceList
}

// Quotas are those of the pod's namespace that count it: as they are, or with other
// limits (by name) and without the pods that leave.
func Quotas(st *cluster.State, pod *corev1.Pod, hard map[string]corev1.ResourceList, leave []*corev1.Pod) []Quota {
	var out []Quota
	for _, q := range st.Quotas {
		if q.Namespace != pod.Namespace {
			continue
		}
		if len(q.Status.Hard) == 0 { // as written by hand; a live one holds to its status
			q = q.DeepCopy()
			q.Status.Hard = q.Spec.Hard
		}
		asked, demand, err := whatif.QuotaUse(q, whatif.WithDefaults(pod), st.Now)
		if err != nil || len(asked) == 0 && demand == "" {
			continue // its scopes leave the pod out, or are such that the API server had not taken them
		}
		v := Quota{ResourceQuota: q, asked: asked, Demand: demand, used: maps.Clone(q.Status.Used), Hard: maps.Clone(q.Status.Hard)}
		maps.Copy(v.Hard, hard[q.Name])
		findHolders(st, &v, leave)
		out = append(out, v)
	}
	return out
}

// findHolders finds the pods that hold something of a quota, and how much.
func findHolders(st *cluster.State, v *Quota, leave []*corev1.Pod) {
	for _, p := range st.Pods {
		if p.Namespace != v.Namespace {
			continue
		}
		uses, _, err := whatif.QuotaUse(v.ResourceQuota, whatif.WithDefaults(p), st.Now)
		if err != nil || len(uses) == 0 {
			continue
		}
		if !slices.Contains(leave, p) {
			v.holders = append(v.holders, QuotaHolder{p, uses})
			continue
		}
		for name, q := range uses {
			used := v.used[name]
			used.Sub(q)
			if v.used != nil {
				v.used[name] = used
			}
		}
	}
	for name := range v.asked {
		if _, ok := v.Status.Used[name]; !ok {
			v.Counted = true
			if v.used == nil {
				v.used = corev1.ResourceList{}
			}
			v.used[name] = v.held(name)
		}
	}
}

// held is what the pods that stay hold of a resource.
func (v *Quota) held(name corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for _, h := range v.holders {
		sum.Add(h.Uses[name])
	}
	return sum
}

// Exceeded lists, by name, the resources of which the pod asks more than the quota has left.
func (v *Quota) Exceeded() []corev1.ResourceName { return v.ExceededBy(1) }

// ExceededBy is Exceeded for n such pods together.
func (v *Quota) ExceededBy(n int) []corev1.ResourceName {
	var out []corev1.ResourceName
	for name := range v.asked {
		if need := v.Need(name, n); need.Cmp(v.Hard[name]) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Need is what the quota would have to allow for n such pods.
func (v *Quota) Need(name corev1.ResourceName, n int) resource.Quantity {
	need := v.Hard[name].DeepCopy() // for its notation
	need.Sub(v.Hard[name])
	need.Add(v.used[name])
	asked := v.asked[name].DeepCopy()
	asked.Mul(int64(n))
	need.Add(asked)
	return need
}

// Says is the arithmetic of the refusal, and who holds most.
func (v *Quota) Says() string {
	exceeded := v.Exceeded()
	parts := make([]string, len(exceeded))
	for i, name := range exceeded {
		parts[i] = fmt.Sprintf("%s of %s %s used, %s asked", view.QuantityText(v.used[name]), view.QuantityText(v.Hard[name]), name, view.QuantityText(v.asked[name]))
	}
	says := fmt.Sprintf("quota %s refuses it: %s", v.Name, strings.Join(parts, "; "))
	if top := v.Top(exceeded[0]); len(top) > 0 {
		names := make([]string, 0, len(top))
		for _, h := range top[:min(len(top), topHolders)] {
			names = append(names, fmt.Sprintf("%s (%s)", h.Pod.Name, view.QuantityText(h.Uses[exceeded[0]])))
		}
		says += ", held by " + strings.Join(names, ", ")
		if more := len(top) - topHolders; more > 0 {
			says += fmt.Sprintf(" and %d more", more)
		}
	}
	return says
}

// DemandSays is the sentence for what every container must write and one does not.
func (v *Quota) DemandSays() string {
	return fmt.Sprintf("quota %s takes only pods whose containers state what it limits: its containers %s", v.Name, v.Demand)
}

// Unstated is what containers must write for a quota and do not.
type Unstated struct {
	Resource   corev1.ResourceName // as the quota names it: limits.cpu
	Containers []string            // those of init too
}

// Unstated lists, by resource, what the quota demands.
func (v *Quota) Unstated() []Unstated {
	var out []Unstated
	for part := range strings.SplitSeq(strings.TrimPrefix(v.Demand, "must specify "), "; ") {
		if name, containers, ok := strings.Cut(part, " for: "); ok {
			out = append(out, Unstated{corev1.ResourceName(name), strings.Split(containers, ",")})
		}
	}
	return out
}

// Left is what the quota still gives of a resource.
func (v *Quota) Left(name corev1.ResourceName) resource.Quantity {
	left := v.Hard[name].DeepCopy()
	left.Sub(v.used[name])
	return left
}

// UsedUp says whether nothing is left of some resource that the pod asks too much of.
func (v *Quota) UsedUp() bool {
	return slices.ContainsFunc(v.Exceeded(), func(name corev1.ResourceName) bool { left := v.Left(name); return left.Sign() <= 0 })
}

// Beyond says whether the pod asks more of some resource than the quota allows to all.
func (v *Quota) Beyond() bool {
	return slices.ContainsFunc(v.Exceeded(), func(name corev1.ResourceName) bool { asked := v.asked[name]; return asked.Cmp(v.Hard[name]) > 0 })
}

// topHolders is how many of those who hold a quota are named.
const topHolders = 3

// Top lists who holds a resource, most first.
func (v *Quota) Top(name corev1.ResourceName) []QuotaHolder {
	out := slices.DeleteFunc(slices.Clone(v.holders), func(h QuotaHolder) bool {
		q := h.Uses[name]
		return q.IsZero()
	})
	slices.SortFunc(out, func(a, b QuotaHolder) int {
		x, y := a.Uses[name], b.Uses[name]
		return cmp.Or(y.Cmp(x), strings.Compare(a.Pod.Name, b.Pod.Name))
	})
	return out
}

// DemandEvidence is what the quota's object limits that containers do not state, and how
// much of it is used.
func (v *Quota) DemandEvidence() []diagnosis.Evidence {
	var out []diagnosis.Evidence
	for _, u := range v.Unstated() {
		used := v.Status.Used[u.Resource]
		out = append(out, diagnosis.Fact(view.ObjectRef("ResourceQuota", v.Namespace, v.Name), fmt.Sprintf("limits %s to %s (%s used): container %s states none", u.Resource, view.QuantityText(v.Hard[u.Resource]), view.QuantityText(used), strings.Join(u.Containers, ", ")), v.hardIs(u.Resource), diagnosis.That("status.used", string(u.Resource), diagnosis.Is, view.QuantityText(used))))
	}
	return out
}

// Evidence is what the quota's object says, with what of the pod is claimed, and its top holders.
func (v *Quota) Evidence(asked func(corev1.ResourceName) []diagnosis.Claim) []diagnosis.Evidence {
	at := view.ObjectRef("ResourceQuota", v.Namespace, v.Name)
	var out []diagnosis.Evidence
	for _, name := range v.Exceeded() {
		fact := fmt.Sprintf("%s: %s used of %s, one pod asks %s", name, view.QuantityText(v.used[name]), view.QuantityText(v.Hard[name]), view.QuantityText(v.asked[name]))
		if v.Counted {
			fact += " (counted from its pods: its status does not say)"
		}
		out = append(out, diagnosis.Fact(at, fact, append(v.claims(name), asked(name)...)...))
		top := v.Top(name)
		for _, h := range top[:min(len(top), topHolders)] {
			out = append(out, diagnosis.Fact(view.PodRef(h.Pod), fmt.Sprintf("holds %s of %s", view.QuantityText(h.Uses[name]), name), heldClaims(name, h.Uses[name])...))
		}
	}
	return out
}
