package diagnosis

import (
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
			if err != nil || (is == nil) != gone || is != nil && (*is != tc.mark || is.Kept() != tc.kept) {
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
