package admission

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// countedWithin is how long a quota may be without figures: its controller counts a new or changed one within
// seconds, all of them every five minutes (kube-controller-manager, --resource-quota-sync-period).
const countedWithin = 5 * time.Minute

// uncounted is about a quota whose status does not say what is used: the API server takes no pod that it limits
// before that (k8s.io/apiserver, resourcequota/controller.go, hasUsageStats). One that is old and has none yet is
// not counted at all.
func (c *Refused) uncounted() APIRefusal {
	r := APIRefusal{Kind: QuotaUncounted, words: "its quota is not counted yet", certainty: diagnosis.Possible, says: "a quota was new and what is used of it not counted yet, which passes within seconds"}
	if c.Cluster.State.Unread["ResourceQuota"] != "" {
		return r
	}
	ns := c.Next().Namespace
	of := slices.DeleteFunc(slices.Clone(c.Cluster.State.Quotas), func(q *corev1.ResourceQuota) bool { return q.Namespace != ns })
	lacking := slices.DeleteFunc(slices.Clone(of), func(q *corev1.ResourceQuota) bool { return len(Uncounted(q)) == 0 })
	stale := slices.IndexFunc(lacking, func(q *corev1.ResourceQuota) bool { return c.Cluster.State.Now.Sub(changed(q)) >= countedWithin })
	switch {
	case stale >= 0:
		return c.neverCounted(lacking[stale])
	case len(of) > 0 && len(lacking) == 0:
		r.Gone, r.words = true, "its quota is counted by now"
		r.says = "what is used of a quota was not counted yet when it refused; all quotas of " + ns + " are counted by now, and its controller has not tried again (its back-off reaches minutes)"
	}
	return r
}

func (c *Refused) neverCounted(q *corev1.ResourceQuota) APIRefusal {
	keys := Uncounted(q)
	of := "all that it limits"
	if len(keys) < len(q.Spec.Hard) {
		of = view.Cut(strings.Join(keys, ", "), 120)
	}
	ref := view.ObjectRef("ResourceQuota", q.Namespace, q.Name)
	return APIRefusal{Kind: QuotaUncounted, Name: q.Name, Stale: q, words: "its quota is never counted", certainty: diagnosis.Likely,
		says:     fmt.Sprintf("ResourceQuota %s has been without a figure of what is used, of %s, for %s: nobody counts it, and the API server takes no pod before that", q.Name, of, view.Age(c.Cluster.State.Now.Sub(changed(q)))),
		evidence: []diagnosis.Evidence{diagnosis.Fact(ref, "limits "+keys[0]+", and its status.used says nothing of that", diagnosis.That("spec.hard", keys[0], diagnosis.Exists, ""), diagnosis.That("status.used", keys[0], diagnosis.Absent, ""))}}
}

// Uncounted are the keys of a quota of which its status does not say what is used.
func Uncounted(q *corev1.ResourceQuota) []string {
	var out []string
	for name := range q.Spec.Hard {
		if _, ok := q.Status.Used[name]; !ok {
			out = append(out, string(name))
		}
	}
	slices.Sort(out)
	return out
}

// changed is when a quota's limits were last written, as far as the object says.
func changed(q *corev1.ResourceQuota) time.Time {
	out := q.CreationTimestamp.Time
	for _, m := range q.ManagedFields {
		if m.Time != nil && m.Subresource == "" && m.Time.After(out) {
			out = m.Time.Time
		}
	}
	return out
}
