package executor

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// What a program wrote half-way that numbered no schema yet, on a real control plane, is
// read to the last field, and is a plan and a journal that this one goes on with.
func TestUnnumbered(t *testing.T) {
	cordoned := diagnosis.Operation{Plan: "cd1fec3878ea811ba8a2ef90038334e2ff1a52736f096c00454be8cbec9f89fe", ID: "93e3a1b8-c025-4e56-a9ca-f0379896a2b3", PriorMIGConfig: "all-1g.5gb", Step: "cordon"}
	configured := diagnosis.Operation{Plan: "6c726aafc4469dfcd7dcede9530ab0da8af3d52596b50fbb7d40afbdbfc8c2e1", ID: "52cd2c5f-1e76-4c60-b425-fc9957c96ac4", PriorMIGConfig: "all-1g.5gb", Step: "config all-balanced", PriorState: "success"}
	for name, want := range map[string]struct {
		mark     *diagnosis.Operation
		phase    v1alpha1.Phase
		progress string
		lines    int
	}{
		"cordon": {nil, v1alpha1.Running, "2/11", 2},
		"config": {&cordoned, v1alpha1.Running, "7/11", 7},
		"undo":   {&configured, v1alpha1.Undoing, "8/11", 10},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("testdata/unnumbered/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var is struct {
				Mark        string
				Remediation json.RawMessage
			}
			if err := json.Unmarshal(text, &is); err != nil {
				t.Fatal(err)
			}
			var rem v1alpha1.Remediation
			strict := json.NewDecoder(bytes.NewReader(is.Remediation))
			strict.DisallowUnknownFields()
			if err := strict.Decode(&rem); err != nil {
				t.Fatal(err)
			}
			var before, after any
			into(t, is.Remediation, &before)
			into(t, rem, &after)
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("read and written again: %s", diff)
			}
			if rem.Written() != 0 || rem.Newer() || plan.Name(rem.Spec) != rem.Name {
				t.Errorf("schema %d; its hash is %s, its name %s", rem.Written(), plan.Name(rem.Spec), rem.Name)
			}
			if st := rem.Status; st.Phase != want.phase || st.Progress != want.progress || len(st.Journal) != want.lines {
				t.Errorf("%s at %s, %d lines", st.Phase, st.Progress, len(st.Journal))
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
			if is.Mark != "" {
				node.Annotations[diagnosis.OperationAnnotation] = is.Mark
			}
			mark, err := diagnosis.OperationOn(node)
			if diff := cmp.Diff(want.mark, mark); diff != "" || err != nil {
				t.Errorf("the mark: %v %s", err, diff)
			}
			program := act.New(act.Deps{Now: time.Now, Locks: "unpend"}, &rem)
			if _, err := journal.New(journal.Options{Now: time.Now}, &rem, program); err != nil {
				t.Errorf("it is not gone on with: %v", err)
			}
		})
	}
}
