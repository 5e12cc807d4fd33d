package queues

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// triedAgain is how long Kueue may take to look at a Workload once its back-off is over; a
// cycle of its scheduler takes seconds.
const triedAgain = 10 * time.Minute

// Refused are the checks for which a Workload has given its quota back: it was evicted for
// them, and has none since. What they ask for is what it lacks, not quota.
func Refused(w *unstructured.Unstructured) []Check {
	if k := scaling.ConditionOf(w, "Evicted"); !k.Met() || k.Reason != "AdmissionCheck" || scaling.ConditionOf(w, "QuotaReserved").Met() {
		return nil
	}
	return slices.DeleteFunc(unready(w), func(k Check) bool { return k.State != "Retry" && k.State != "Rejected" })
}

// neverTried is how long a Workload may be left alone that was evicted for a check and given no back-off: that of
// a check ends after half an hour at most (provisioningrequest config, backoffMaxSeconds).
const neverTried = 2 * time.Hour

// Forgotten is since when the back-off of an evicted Workload is over without anybody having
// looked at it: its condition is the one that it was evicted with (kueue issue 5129); or since when it is evicted, where it
// was given no back-off (kueue issue 3322). Zero where Kueue has looked since, or may still be about to.
func (c *Case) Forgotten(w *unstructured.Unstructured) time.Time {
	checks, quota, now := Refused(w), scaling.ConditionOf(w, "QuotaReserved"), c.Cluster.State.Now
	if len(checks) == 0 || Inactive(w) || !strings.Contains(quota.Message, "failed admission checks") {
		return time.Time{}
	}
	over, evicted := scaling.ConditionOf(w, "Requeued"), scaling.ConditionOf(w, "Evicted")
	if over.Met() && !over.Since.IsZero() && quota.Since.Before(over.Since) && now.Sub(over.Since) >= triedAgain {
		return over.Since
	}
	backsOff := over.Status != "" || nestedText(w, "status", "requeueState", "requeueAt") != ""
	if backsOff || checks[0].State != "Retry" || evicted.Since.IsZero() || quota.Since.Sub(evicted.Since) >= triedAgain || now.Sub(evicted.Since) < neverTried {
		return time.Time{}
	}
	return evicted.Since
}

// refusedSays is what a Workload that gave its quota back waits for.
func (c *Case) refusedSays(w *unstructured.Unstructured, checks []Check) (string, []diagnosis.Evidence) {
	over := c.Forgotten(w)
	switch {
	case over.IsZero():
		return "it gave its quota back, for " + checks[0].Says(), nil
	case scaling.ConditionOf(w, "Requeued").Status == "":
		return "Kueue has not tried it again since it gave its quota back at " + over.UTC().Format("15:04 MST") + "; " + checks[0].Says(), []diagnosis.Evidence{conditionFact(w, "Evicted")}
	}
	return "Kueue has not tried it again since its back-off ended at " + over.UTC().Format("15:04 MST") + "; " + checks[0].Says(), []diagnosis.Evidence{conditionFact(w, "Requeued")}
}

// SecondPass is what Kueue says of a Workload that has its quota, and whose checks are all
// Ready, but for which it then finds no place by topology (scheduler.go, SecondPassFailed):
// empty where it says no such thing.
func (c *Case) SecondPass(w *unstructured.Unstructured) string {
	if !scaling.ConditionOf(w, "QuotaReserved").Met() || scaling.ConditionOf(w, "Admitted").Met() || len(unready(w)) > 0 {
		return ""
	}
	var newest time.Time
	says := ""
	for _, e := range c.Cluster.EventsOf("Workload", w.GetNamespace(), w.GetName()) {
		if at := scaling.Seen(e); e.Reason == "SecondPassFailed" && (says == "" || at.After(newest)) {
			newest, says = at, strings.Join(strings.Fields(e.Message), " ")
		}
	}
	return says
}

// secondPassSays is what such a Workload waits for.
func secondPassSays(w *unstructured.Unstructured, words string) (string, diagnosis.Evidence) {
	return "it has its quota, its checks are Ready, and Kueue finds no place for it in a second pass: " + view.Quotable(assigning.ReplaceAllString(words, ""), 160),
		diagnosis.Fact(view.ObjectRef("Workload", w.GetNamespace(), w.GetName()), fmt.Sprintf("SecondPassFailed: %s", view.Quotable(words, 300)), diagnosis.Says(words))
}
