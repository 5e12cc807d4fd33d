package decisions

import (
	"testing"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Who says INCIDENT#N means the plan that can still be stopped, whatever has been
// recorded since; of the others the newest.
func TestPlanNamed(t *testing.T) {
	plan := func(name, incident string, phase v1alpha1.Phase) v1alpha1.Remediation {
		p := v1alpha1.Remediation{Spec: v1alpha1.RemediationSpec{Incident: incident, Fix: 1}, Status: v1alpha1.RemediationStatus{Phase: phase}}
		p.Name = name
		return p
	}
	newestFirst := []v1alpha1.Remediation{plan("aaaa4", "gpu-1", v1alpha1.Expired), plan("aaaa3", "gpu-1", v1alpha1.Queued), plan("bbbb2", "gpu-1", v1alpha1.Running), plan("bbbb1", "gpu-1", v1alpha1.Failed),
		plan("cccc3", "gpu-2", v1alpha1.Stale), plan("cccc2", "gpu-2", ""), plan("cccc1", "gpu-2", v1alpha1.Succeeded), plan("dddd2", "gpu-3", v1alpha1.Stale), plan("dddd1", "gpu-3", v1alpha1.Succeeded)}
	for name, want := range map[string]string{"gpu-1#1": "bbbb2", "gpu-2#1": "cccc2", "gpu-3#1": "dddd2", "gpu-1#2": "", "aaaa": "", "aaaa4": "aaaa4", "remediation.unpend.dev/aaaa4": "aaaa4", "bbb": ""} {
		found, err := planNamed(newestFirst, name)
		if want == "" && err == nil || want != "" && (err != nil || found.Name != want) {
			t.Errorf("%s: %+v, %v; want %s", name, found, err, want)
		}
	}
}
