package deploy_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/unpend/unpend/testdata/controlplane"
)

// Who writes a plan's status: the executor that of every plan, an approver that of one which
// a terminal carries out, and who carries it out is not changed afterwards.
func TestWhoWritesTheJournal(t *testing.T) {
	t.Parallel() // it waits for a control plane of its own
	if testing.Short() {
		t.Skip("needs the real control plane")
	}
	cp := controlplane.Start(t)
	installAll(t, cp, objects(t, approve()))
	its, adas, mias := dynamic.NewForConfigOrDie(asExecutor(t, cp)), person{"ada", nil}.dynamic(t, cp), person{"mia", []string{"gpu-admins"}}.dynamic(t, cp)
	veras := person{"vera", nil}.dynamic(t, cp)
	waitForRights(t, cp, person{"ada", nil}, "create", "remediations", true)
	ours := remediation(hashOf("journal ours"), "ada")
	ours.Object["spec"].(values)["carrier"] = "terminal"
	others := remediation(hashOf("journal others"), "ada")
	const policy, rbac = "policy: of a plan that no terminal carries out, only the executor writes the status", "RBAC"
	for _, o := range []*unstructured.Unstructured{ours, others} {
		mustCreate(t, adas, remediationsAPI, o)
	}
	var n tally
	for _, c := range []struct {
		who                    string
		client                 dynamic.Interface
		ofTerminal, ofTheOther string
	}{
		{"who recorded it", adas, "yes", policy},
		{"another approver", mias, "yes", policy},
		{"anybody", veras, rbac, rbac},
		{"the executor", its, "yes", "yes"},
		{"an admin", cp.Dynamic(), "yes", "yes"},
	} {
		for name, want := range map[string]string{ours.GetName(): c.ofTerminal, others.GetName(): c.ofTheOther} {
			o, err := cp.Dynamic().Resource(remediationsAPI).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			o.Object["status"] = values{"phase": "Running", "message": "by " + c.who}
			_, err = c.client.Resource(remediationsAPI).UpdateStatus(t.Context(), o, metav1.UpdateOptions{})
			got := answer(err)
			if want == rbac {
				got = kind(got)
			}
			n.check(t, c.who+" of "+name[:6], got, want)
		}
	}
	o, err := cp.Dynamic().Resource(remediationsAPI).Get(t.Context(), others.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o.Object["spec"].(map[string]any)["carrier"] = "terminal"
	_, err = cp.Dynamic().Resource(remediationsAPI).Update(t.Context(), o, metav1.UpdateOptions{})
	n.check(t, "another carrier afterwards", answer(err), "invalid")
	if n.broken > 0 || n.held != 11 {
		t.Errorf("%d of 11 held", n.held)
	}
}
