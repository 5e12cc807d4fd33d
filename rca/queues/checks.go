package queues

import (
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// Check is an AdmissionCheck that a Workload with quota still waits for.
type Check struct {
	Name, State, Message string // State: Pending, Retry or Rejected
}

// Unchecked are the checks that are not Ready, those that refuse first; none before the
// Workload has its quota, for they are only asked then.
func Unchecked(w *unstructured.Unstructured) []Check {
	if !scaling.ConditionOf(w, "QuotaReserved").Met() {
		return nil
	}
	return unready(w)
}

// unready are the checks that do not agree, those that refuse first.
func unready(w *unstructured.Unstructured) []Check {
	var out []Check
	for _, m := range nested(w, "status", "admissionChecks") {
		if k := (Check{Name: wordOf(m, "name"), State: wordOf(m, "state"), Message: wordOf(m, "message")}); k.State != "Ready" && k.Name != "" {
			out = append(out, k)
		}
	}
	states := []string{"Rejected", "Retry", "Pending"}
	slices.SortStableFunc(out, func(a, b Check) int { return slices.Index(states, a.State) - slices.Index(states, b.State) })
	return out
}

// Unprovided is the ProvisioningRequest that Kueue made for a Workload and that has come to an
// end without machines, and what it says, while its check stays Pending: of one that says Retry
// Kueue asks again by itself. Empty where none has.
func (c *Case) Unprovided(w *unstructured.Unstructured) (name, says string) {
	if checks := Unchecked(w); len(checks) == 0 || checks[0].State != "Pending" {
		return "", ""
	}
	for _, u := range c.Cluster.State.ProvisioningRequests {
		if !madeFor(u, w) {
			continue
		}
		for _, kind := range []string{"Failed", "CapacityRevoked", "BookingExpired"} {
			if k := scaling.ConditionOf(u, kind); k.Met() {
				return u.GetName(), kind + ", " + view.Quotable(k.Words(), 200)
			}
		}
	}
	return "", ""
}

func madeFor(u, w *unstructured.Unstructured) bool {
	return u.GetNamespace() == w.GetNamespace() && slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Kind == "Workload" && o.Name == w.GetName() })
}

// multiKueue is the controller of checks that give a Workload to other clusters (Kueue,
// pkg/controller/admissionchecks/multikueue).
const multiKueue = "kueue.x-k8s.io/multikueue"

// Provisioning is the controller of checks that ask an autoscaler for machines (pkg/controller/admissionchecks/provisioning).
const Provisioning = "kueue.x-k8s.io/provisioning-request"

// CheckedBy is the controller of an AdmissionCheck; empty where it was not read.
func CheckedBy(c *Case, name string) string {
	check := objectOf(c.Cluster.State.Queues.Checks, "", name)
	if check == nil {
		return ""
	}
	return nestedText(check, "spec", "controllerName")
}

// Dispatched is the check by which Kueue gives a Workload that has its quota to another cluster:
// its pods begin there, and those here stay held. nil where it does not.
func (c *Case) Dispatched() *Check {
	w := c.Queued()
	if w == nil || !scaling.ConditionOf(w, "QuotaReserved").Met() {
		return nil
	}
	for _, m := range nested(w, "status", "admissionChecks") {
		if o := objectOf(c.Cluster.State.Queues.Checks, "", wordOf(m, "name")); o != nil && nestedText(o, "spec", "controllerName") == multiKueue {
			return &Check{Name: wordOf(m, "name"), State: wordOf(m, "state"), Message: wordOf(m, "message")}
		}
	}
	return nil
}

// reservedOn is how MultiKueue names the cluster that takes a Workload.
var reservedOn = regexp.MustCompile(`got reservation on "([a-z0-9][a-z0-9.-]*)"`)

// Cluster is the one that takes the Workload, where the check names one; empty else.
func (k Check) Cluster() string {
	if m := reservedOn.FindStringSubmatch(k.Message); m != nil {
		return m[1]
	}
	return ""
}

// Says is the check with its own words.
func (k Check) Says() string {
	says := "admission check " + view.Quotable(k.Name, 63) + " is " + view.Quotable(k.State, 63)
	if k.Message != "" {
		says += ": " + view.Quotable(k.Message, 160)
	}
	return says
}

// checked is what objects show of a Workload's checks: the check itself, where it is not
// active, and the ProvisioningRequest that was made for the Workload.
func (c *Case) checked(w *unstructured.Unstructured, checks []Check) []diagnosis.Evidence {
	st, of := c.Cluster.State, view.ObjectRef("Workload", w.GetNamespace(), w.GetName())
	var out []diagnosis.Evidence
	for _, k := range checks {
		claims := []diagnosis.Claim{diagnosis.That("status.admissionChecks", "", diagnosis.Contains, k.Name)}
		if k.Message != "" {
			claims = append(claims, diagnosis.Says(k.Message))
		}
		out = append(out, diagnosis.Fact(of, k.Says(), claims...))
		o := objectOf(st.Queues.Checks, "", k.Name)
		switch {
		case o == nil && st.Unread["AdmissionCheck"] == "":
			out = append(out, diagnosis.Fact("AdmissionCheck/"+k.Name, "is not among those that were read", diagnosis.That("", "", diagnosis.Absent, "")))
		case o != nil:
			if a := scaling.ConditionOf(o, "Active"); a.Status != "" && !a.Met() {
				out = append(out, diagnosis.Fact("AdmissionCheck/"+k.Name, "Active="+a.Status+" "+view.Cut(a.Words(), 300), append(view.SaysOf(a), view.ConditionIs("Active", a.Status))...))
			}
		}
	}
	for _, u := range st.ProvisioningRequests {
		if len(checks) == 0 || !madeFor(u, w) {
			continue
		}
		for _, kind := range []string{"Failed", "CapacityRevoked", "BookingExpired", "Provisioned"} {
			if k := scaling.ConditionOf(u, kind); k.Status != "" && k.Met() == (kind != "Provisioned") {
				out = append(out, diagnosis.Fact(view.ObjectRef("ProvisioningRequest", u.GetNamespace(), u.GetName()), kind+"="+k.Status+" "+view.Cut(k.Words(), 300), append(view.SaysOf(k), view.ConditionIs(kind, k.Status))...))
			}
		}
	}
	return out
}
