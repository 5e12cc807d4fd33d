package terminal

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Wide, a plan says what it is of and who carries it out, and nothing is cut.
func TestPlansWide(t *testing.T) {
	p := v1alpha1.Remediation{Spec: v1alpha1.RemediationSpec{Incident: "gpu-7f3a01c9be", Fix: 2, Kind: "EvictPods", Cause: "GPUsInUse", Title: "evict a/b", Requester: "rex", Carrier: v1alpha1.Terminal}}
	p.Name = strings.Repeat("ab", 32)
	p.Spec.Workload.Kind, p.Spec.Workload.Namespace, p.Spec.Workload.Name = "Job", "ml", "training"
	p.Status.Evicted = 3
	mine := p
	mine.Spec.Carrier = ""
	var b bytes.Buffer
	if err := Plans(&b, []v1alpha1.Remediation{p, mine}, Options{style: style{Width: 40}, Wide: true}); err != nil {
		t.Fatal(err)
	}
	const want = `PLAN          INCIDENT          FIX        PHASE  STEP  NODE  BY  AGE  MESSAGE  CAUSE      WORKLOAD           EVICTED  ASKED BY  CARRIER   TITLE
abababababab  gpu-7f3a01c9be#2  EvictPods  -      -     -     -   -    -        GPUsInUse  ml/training (Job)  3        rex       terminal  evict a/b
abababababab  gpu-7f3a01c9be#2  EvictPods  -      -     -     -   -    -        GPUsInUse  ml/training (Job)  3        rex       executor  evict a/b
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
}
