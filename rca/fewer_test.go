package rca

import (
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

// A pod's containers each ask as many of another resource as they asked before, and not
// as many as they did together.
func TestOtherResourceIsAskedByEach(t *testing.T) {
	st := edited(t, "MIGProfileUnsupported", `spec: {containers: [{name: main, image: registry.example/x, resources: {limits: {nvidia.com/mig-3g.24gb: "1"}}}]}`,
		`spec: {containers: [{name: a, image: registry.example/x, resources: {limits: {nvidia.com/mig-3g.24gb: "1"}}}, {name: b, image: registry.example/x, resources: {limits: {nvidia.com/mig-3g.24gb: "1"}}}]}`)
	found, err := Diagnose(t.Context(), st, Options{})
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	const each = `"resources":{"limits":{"nvidia.com/mig-2g.12gb":"1","nvidia.com/mig-3g.24gb":null},"requests":{"nvidia.com/mig-2g.12gb":"1"}}`
	f := found[0].Fixes[0]
	if f.Kind != diagnosis.ChangeRequest || f.Proof.Verdict != diagnosis.Schedules || len(f.Actions) != 1 ||
		string(f.Actions[0].Patch) != `{"spec":{"containers":[{"name":"a",`+each+`},{"name":"b",`+each+`}]}}` {
		t.Errorf("%+v", f)
	}
}
