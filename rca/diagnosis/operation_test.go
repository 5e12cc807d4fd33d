package diagnosis

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The mark is read as it was written, tells a node that is kept from one that is worked on,
// and says nothing any more of a quarantine that a person has ended.
func TestOperation(t *testing.T) {
	on := func(text string, closed bool) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Annotations: map[string]string{"unpend.dev/operation": text}}, Spec: corev1.NodeSpec{Unschedulable: closed}}
	}
	for _, tc := range []struct {
		name string
		mark Operation
		kept bool
	}{
		{"worked on", Operation{Plan: "p", ID: "x", PriorUnschedulable: true, PriorMIGConfig: "all-1g.5gb", Step: "cordon", PriorState: "success"}, false},
		{"parked", Operation{Plan: "p", ID: "x", Step: "parked", Parked: "it will not go back"}, true},
		{"quarantined", Operation{Plan: "p", ID: "x", Step: "quarantined", Quarantined: "sick"}, true},
	} {
		text, err := tc.mark.Annotation()
		if err != nil {
			t.Fatal(err)
		}
		for _, closed := range []bool{true, false} {
			is, err := OperationOn(on(text, closed))
			gone := tc.mark.Quarantined != "" && !closed
			want := tc.mark
			want.Schema = OperationSchema
			if err != nil || (is == nil) != gone || is != nil && (*is != want || is.Kept() != tc.kept) {
				t.Errorf("%s, closed %v: %+v, %v", tc.name, closed, is, err)
			}
		}
	}
	if is, err := OperationOn(&corev1.Node{}); is != nil || err != nil {
		t.Errorf("on a node without one: %+v, %v", is, err)
	}
	for _, text := range []string{"", "x", "{}", `{"op":"p"}`, "[]"} {
		want := `node gpu-1: annotation unpend.dev/operation is not one of ours: "` + text + `"`
		if text == `{"op":"p"}` {
			want = `node gpu-1: annotation unpend.dev/operation is not one of ours: "{\"op\":\"p\"}"`
		}
		if is, err := OperationOn(on(text, true)); is != nil || err == nil || err.Error() != want {
			t.Errorf("%q: %+v, %v", text, is, err)
		}
	}
}

// The mark of a program from before schemas were numbered is read as it was written; what a
// later one of this schema has written besides is kept; one of a newer schema is not read.
func TestOperationOfAnotherVersion(t *testing.T) {
	on := func(text string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", Annotations: map[string]string{"unpend.dev/operation": text}}, Spec: corev1.NodeSpec{Unschedulable: true}}
	}
	const before = `{"op":"p","id":"x","priorUnschedulable":true,"priorMigConfig":"all-1g.5gb","step":"config unpend-1","priorState":"success"}`
	is, err := OperationOn(on(before))
	if want := (Operation{Plan: "p", ID: "x", PriorUnschedulable: true, PriorMIGConfig: "all-1g.5gb", Step: "config unpend-1", PriorState: "success"}); err != nil || *is != want {
		t.Errorf("%+v, %v", is, err)
	}
	is, err = OperationOn(on(`{"schema":1,"op":"p","id":"x","step":"cordon","priorUnschedulable":false,"priorMigConfig":"","lease":{"holder":"a"},"tries":3}`))
	if err != nil {
		t.Fatal(err)
	}
	is.Step = "parked"
	const kept = `{"id":"x","lease":{"holder":"a"},"op":"p","priorMigConfig":"","priorUnschedulable":false,"schema":1,"step":"parked","tries":3}`
	if text, err := is.Annotation(); text != kept || err != nil {
		t.Errorf("%s, %v", text, err)
	}
	for _, text := range []string{`{"schema":2,"op":"p","id":"x"}`, `{"schema":2,"op":["p"],"id":{"uid":"x"}}`} {
		is, err := OperationOn(on(text))
		newer, ok := errors.AsType[*NewerError](err)
		if is != nil || !ok || *newer != (NewerError{"gpu-1", 2}) || err.Error() != "node gpu-1 is marked by a newer unpend (schema 2, this one knows 1) and left alone: give it back with that version" {
			t.Errorf("%s: %+v, %v", text, is, err)
		}
	}
}

// A mark of this schema says to a program of when schemas were numbered, which may be back after
// a downgrade, all that it says to this one.
func TestMarksAreThoseOfTheirSchema(t *testing.T) {
	var first struct { // as it was then
		Schema             int    `json:"schema,omitempty"`
		Op                 string `json:"op"`
		ID                 string `json:"id"`
		PriorUnschedulable bool   `json:"priorUnschedulable"`
		PriorMIGConfig     string `json:"priorMigConfig"`
		Step               string `json:"step"`
		PriorState         string `json:"priorState,omitempty"`
		Parked             string `json:"parked,omitempty"`
		Quarantined        string `json:"quarantined,omitempty"`
	}
	text, err := (&Operation{Plan: "p", ID: "u", PriorUnschedulable: true, PriorMIGConfig: "all-1g.5gb", Step: "config all-balanced", PriorState: "success", Parked: "why", Quarantined: "since"}).Annotation()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), &first); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if first.Schema != 1 || string(again) != text {
		t.Errorf("it reads %s of %s", again, text)
	}
	if n := reflect.TypeFor[Operation]().NumField(); n != reflect.TypeOf(first).NumField()+1 { // Unknown stands beside them
		t.Errorf("%d fields: one that this test does not know is a reason to think of the schema", n)
	}
}
