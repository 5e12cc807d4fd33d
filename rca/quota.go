package rca

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/whatif"
)

// quotaView is what one ResourceQuota makes of a pod.
type quotaView struct {
	*corev1.ResourceQuota
	asked corev1.ResourceList // by the pod, of what the quota limits
	used  corev1.ResourceList
	hard  corev1.ResourceList
	// counted: the quota's status does not say what is used, so its pods were counted.
	counted bool
	demand  string // what must be written in every container and is not
	holders []holder
}

// holder is a pod that counts against a quota.
type holder struct {
	pod  *corev1.Pod
	uses corev1.ResourceList
}

// quotas are those of the pod's namespace that count it: as they are, or with other
// limits (by name) and without the pods that leave.
func (c *Case) quotas(pod *corev1.Pod, hard map[string]corev1.ResourceList, leave []*corev1.Pod) []quotaView {
	var out []quotaView
	for _, q := range c.world.state.Quotas {
		if q.Namespace != pod.Namespace {
			continue
		}
		if len(q.Status.Hard) == 0 { // as written by hand; a live one holds to its status
			q = q.DeepCopy()
			q.Status.Hard = q.Spec.Hard
		}
		asked, demand, err := whatif.QuotaUse(q, whatif.WithDefaults(pod), c.world.state.Now)
		if err != nil || len(asked) == 0 && demand == "" {
			continue // its scopes leave the pod out, or are such that the API server had not taken them
		}
		v := quotaView{ResourceQuota: q, asked: asked, demand: demand, used: maps.Clone(q.Status.Used), hard: maps.Clone(q.Status.Hard)}
		maps.Copy(v.hard, hard[q.Name])
		c.count(&v, leave)
		out = append(out, v)
	}
	return out
}

// count finds who holds what of a quota.
func (c *Case) count(v *quotaView, leave []*corev1.Pod) {
	sum := corev1.ResourceList{}
	for _, p := range c.world.state.Pods {
		if p.Namespace != v.Namespace {
			continue
		}
		uses, _, err := whatif.QuotaUse(v.ResourceQuota, whatif.WithDefaults(p), c.world.state.Now)
		if err != nil || len(uses) == 0 {
			continue
		}
		add(sum, uses)
		if !slices.Contains(leave, p) {
			v.holders = append(v.holders, holder{p, uses})
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
			v.counted = true
			if v.used == nil {
				v.used = corev1.ResourceList{}
			}
			v.used[name] = v.held(name)
		}
	}
}

// held is what the pods that stay hold of a resource.
func (v *quotaView) held(name corev1.ResourceName) resource.Quantity {
	var sum resource.Quantity
	for _, h := range v.holders {
		sum.Add(h.uses[name])
	}
	return sum
}

// short lists, by name, what n such pods would exceed.
func (v *quotaView) short() []corev1.ResourceName { return v.shortFor(1) }

func (v *quotaView) shortFor(n int) []corev1.ResourceName {
	var out []corev1.ResourceName
	for name := range v.asked {
		if need := v.need(name, n); need.Cmp(v.hard[name]) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// need is what the quota would have to allow for n such pods.
func (v *quotaView) need(name corev1.ResourceName, n int) resource.Quantity {
	need := v.hard[name].DeepCopy() // for its notation
	need.Sub(v.hard[name])
	need.Add(v.used[name])
	asked := v.asked[name].DeepCopy()
	asked.Mul(int64(n))
	need.Add(asked)
	return need
}

// says is the arithmetic of the refusal, and who holds most.
func (v *quotaView) says() string {
	short := v.short()
	parts := make([]string, len(short))
	for i, name := range short {
		parts[i] = fmt.Sprintf("%s of %s %s used, %s asked", text(v.used[name]), text(v.hard[name]), name, text(v.asked[name]))
	}
	says := fmt.Sprintf("quota %s refuses it: %s", v.Name, strings.Join(parts, "; "))
	if top := v.top(short[0]); len(top) > 0 {
		names := make([]string, 0, len(top))
		for _, h := range top[:min(len(top), topHolders)] {
			names = append(names, fmt.Sprintf("%s (%s)", h.pod.Name, text(h.uses[short[0]])))
		}
		says += ", held by " + strings.Join(names, ", ")
		if more := len(top) - topHolders; more > 0 {
			says += fmt.Sprintf(" and %d more", more)
		}
	}
	return says
}

func (v *quotaView) demandSays() string {
	return fmt.Sprintf("quota %s refuses it: its containers %s", v.Name, v.demand)
}

func text(q resource.Quantity) string { return q.String() }

// topHolders is how many of those who hold a quota are named.
const topHolders = 3

// top lists who holds a resource, most first.
func (v *quotaView) top(name corev1.ResourceName) []holder {
	out := slices.DeleteFunc(slices.Clone(v.holders), func(h holder) bool {
		q := h.uses[name]
		return q.IsZero()
	})
	slices.SortFunc(out, func(a, b holder) int {
		x, y := a.uses[name], b.uses[name]
		return cmp.Or(y.Cmp(x), strings.Compare(a.pod.Name, b.pod.Name))
	})
	return out
}

// evidence is what the quota's object says, and its top holders.
func (v *quotaView) evidence() []Evidence {
	at := ref("ResourceQuota", v.Namespace, v.Name)
	var out []Evidence
	if v.demand != "" {
		out = append(out, Evidence{at, "limits what containers " + v.demand})
	}
	for _, name := range v.short() {
		fact := fmt.Sprintf("%s: %s used of %s, one pod asks %s", name, text(v.used[name]), text(v.hard[name]), text(v.asked[name]))
		if v.counted {
			fact += " (counted from its pods: its status does not say)"
		}
		out = append(out, Evidence{at, fact})
		top := v.top(name)
		for _, h := range top[:min(len(top), topHolders)] {
			out = append(out, Evidence{ref("Pod", h.pod.Namespace, h.pod.Name), fmt.Sprintf("holds %s of %s", text(h.uses[name]), name)})
		}
	}
	return out
}
