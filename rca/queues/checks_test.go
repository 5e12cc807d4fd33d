package queues

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/watcher/incident"
)

// A request for machines that has ended keeps a Workload waiting whose check is Pending: one that
// says Retry is asked again by Kueue itself. It has to be the Workload's own.
func TestRequestsThatHaveEnded(t *testing.T) {
	ended := func(kind, status string) map[string]any {
		return map[string]any{"status": map[string]any{"conditions": []any{condition(kind, status, "Out", "of stock")}}}
	}
	own := metav1.OwnerReference{Kind: "Workload", Name: "mine"}
	for name, tc := range map[string]struct {
		state, reserved string
		request         *unstructured.Unstructured
		owner           metav1.OwnerReference
		want            string
	}{
		"it failed":             {"Pending", "True", object("a", "r", ended("Failed", "True")), own, "r Failed, Out: of stock"},
		"its machines are gone": {"Pending", "True", object("a", "r", ended("CapacityRevoked", "True")), own, "r CapacityRevoked, Out: of stock"},
		"its time is over":      {"Pending", "True", object("a", "r", ended("BookingExpired", "True")), own, "r BookingExpired, Out: of stock"},
		"it did not fail":       {"Pending", "True", object("a", "r", ended("Failed", "False")), own, ""},
		"it is provisioned":     {"Pending", "True", object("a", "r", ended("Provisioned", "True")), own, ""},
		"it is asked for again": {"Retry", "True", object("a", "r", ended("Failed", "True")), own, ""},
		"the check agrees":      {"Ready", "True", object("a", "r", ended("Failed", "True")), own, ""},
		"it has no quota":       {"Pending", "False", object("a", "r", ended("Failed", "True")), own, ""},
		"another namespace's":   {"Pending", "True", object("b", "r", ended("Failed", "True")), own, ""},
		"another Workload's":    {"Pending", "True", object("a", "r", ended("Failed", "True")), metav1.OwnerReference{Kind: "Workload", Name: "other"}, ""},
		"another of its name":   {"Pending", "True", object("a", "r", ended("Failed", "True")), metav1.OwnerReference{Kind: "Job", Name: "mine"}, ""},
		"nobody's":              {"Pending", "True", object("a", "r", ended("Failed", "True")), metav1.OwnerReference{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				gated(w)
				queued(w, nil, map[string]any{"conditions": []any{condition("QuotaReserved", tc.reserved, "R", "r")}, "admissionChecks": []any{map[string]any{"name": "prov", "state": tc.state}}})
				other := object("a", "other", ended("Failed", "True"))
				tc.request.SetOwnerReferences([]metav1.OwnerReference{tc.owner})
				w.ProvisioningRequests = []*unstructured.Unstructured{other, tc.request}
			})
			request, says := c.Unprovided(c.Queued())
			if got := strings.TrimSpace(request + " " + says); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if got := c.NotAdmitted().Says; strings.Contains(got, "ProvisioningRequest r has ended: ") != (tc.want != "") {
				t.Errorf("%s", got)
			}
		})
	}
}

// What objects show of a check: that it is not there, where checks were read; that it is not
// active, where it says so; and what became of the request that was made for the Workload.
func TestWhatShowsAChecksState(t *testing.T) {
	active := func(status string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{object("", "prov", map[string]any{"status": map[string]any{"conditions": []any{condition("Active", status, "Why", "so")}}})}
	}
	request := func(kind, status string) []*unstructured.Unstructured {
		o := object("a", "r", map[string]any{"status": map[string]any{"conditions": []any{condition(kind, status, "Why", "so")}}})
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Workload", Name: "mine"}})
		return []*unstructured.Unstructured{o}
	}
	const one = "Workload/a/mine: admission check prov is Pending"
	for name, tc := range map[string]struct {
		checks   []Check
		there    []*unstructured.Unstructured
		unread   string
		requests []*unstructured.Unstructured
		want     string
	}{
		"it is there":            {[]Check{{"prov", "Pending", ""}}, active("True"), "", nil, one},
		"it has words":           {[]Check{{"prov", "Pending", "soon"}}, active("True"), "", nil, one + ": soon"},
		"it is not there":        {[]Check{{"prov", "Pending", ""}}, nil, "", nil, one + "; AdmissionCheck/prov: is not among those that were read"},
		"they were not read":     {[]Check{{"prov", "Pending", ""}}, nil, "no right", nil, one},
		"it is not active":       {[]Check{{"prov", "Pending", ""}}, active("False"), "", nil, one + "; AdmissionCheck/prov: Active=False Why: so"},
		"it says nothing":        {[]Check{{"prov", "Pending", ""}}, active(""), "", nil, one},
		"its request failed":     {[]Check{{"prov", "Pending", ""}}, active("True"), "", request("Failed", "True"), one + "; ProvisioningRequest/a/r: Failed=True Why: so"},
		"it has not":             {[]Check{{"prov", "Pending", ""}}, active("True"), "", request("Failed", "False"), one},
		"it is provisioned":      {[]Check{{"prov", "Pending", ""}}, active("True"), "", request("Provisioned", "True"), one},
		"it is not":              {[]Check{{"prov", "Pending", ""}}, active("True"), "", request("Provisioned", "False"), one + "; ProvisioningRequest/a/r: Provisioned=False Why: so"},
		"no check is waited for": {nil, active("True"), "", request("Failed", "True"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := open(t, func(w *rcatest.World) {
				gated(w)
				queued(w, nil, map[string]any{})
				w.Queues.Checks, w.ProvisioningRequests = tc.there, tc.requests
				if tc.unread != "" {
					w.Unread["AdmissionCheck"] = tc.unread
				}
			})
			var got []string
			for _, e := range c.checked(c.Queued(), tc.checks) {
				got = append(got, e.Ref+": "+e.Fact)
			}
			if strings.Join(got, "; ") != tc.want {
				t.Errorf("%s, want %s", strings.Join(got, "; "), tc.want)
			}
		})
	}
}

// A suspended Job is shown by how many pods it wants at a time, where its own field says so.
func TestSuspendedJobsAreShown(t *testing.T) {
	two, three := int32(2), int32(3)
	for name, tc := range map[string]struct {
		parallelism *int32
		wants       int
		want        int // claims
	}{
		"as many":       {&two, 2, 2},
		"more":          {&three, 2, 1},
		"not said":      {nil, 1, 1},
		"not said, two": {nil, 2, 1},
	} {
		c := open(t, func(w *rcatest.World) {
			w.Jobs = []*batchv1.Job{{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train"}, Spec: batchv1.JobSpec{Parallelism: tc.parallelism}}}
		})
		c.Held = &incident.Refusal{Owner: incident.Ref{Kind: "Job", Namespace: "a", Name: "train"}, Wants: tc.wants}
		if e := c.heldBy(); len(e) != 1 || len(e[0].Claims) != tc.want {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// What other schedulers say of memory, and of a gang, is known by their words.
func TestWhatElseWordsAreAbout(t *testing.T) {
	for message, want := range map[string]string{
		"":                                "false false",
		"node has no GPU memory of 4 GiB": "true false",
		"gpu memory count on the node was not synced":    "true false",
		"3/4 tasks in gang unschedulable: out of GPUs":   "false true",
		"pod group is not ready, 2 Pending, 4 minMember": "false true",
		"Insufficient nvidia.com/gpu":                    "false false",
	} {
		w := Word{message: message}
		if got := fmt.Sprint(w.OfMemory(), " ", w.OfGang()); got != want {
			t.Errorf("%q: %s, want %s", message, got, want)
		}
	}
	if !(Word{reason: "NotReady"}).OfGang() {
		t.Error("NotReady is KAI's word for a gang that lacks pods")
	}
}

// Events are the pod's that name it, by its UID or by none; those of one before it of its name
// are not.
func TestWhoseWordsEventsAre(t *testing.T) {
	for uid, want := range map[types.UID]int{"w": 1, "": 1, "before": 0} {
		c := open(t, func(w *rcatest.World) {
			w.Events = []*corev1.Event{{InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "a", Name: "w", UID: uid}, Reason: "FailedScheduling", Message: "no", ReportingController: "volcano"}}
		})
		if got := c.Words(); len(got) != want {
			t.Errorf("of UID %q: %+v", uid, got)
		}
	}
}

// Whose a check is stands in its AdmissionCheck, where that was read.
func TestWhoChecks(t *testing.T) {
	c := open(t, func(w *rcatest.World) {
		w.Queues.Checks = append(w.Queues.Checks, object("", "dws", map[string]any{"spec": map[string]any{"controllerName": Provisioning}}))
	})
	for name, want := range map[string]string{"dws": Provisioning, "other": ""} {
		if got := CheckedBy(c, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
