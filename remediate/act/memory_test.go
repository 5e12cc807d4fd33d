package act

import (
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

const a100 = "A100-40GB"

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// memory is a cluster in memory that holds these objects: what verbs decide is tested on
// it, what the API server does about it is tested on a real one (executor).
func memory(objects ...runtime.Object) Deps {
	var typed, custom []runtime.Object
	for _, o := range objects {
		if _, ours := o.(*unstructured.Unstructured); ours {
			custom = append(custom, o)
		} else {
			typed = append(typed, o)
		}
	}
	client := fake.NewClientset(typed...)
	return Deps{Client: client, As: client, Now: func() time.Time { return noon }, Logger: slog.New(slog.DiscardHandler), Deadlines: pace.Deadlines{}.WithDefaults(),
		Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
			v1alpha1.Remediations: "RemediationList", v1alpha1.Approvals: "ApprovalList", nodeprobe.Resource: "NodeGeometryList"}, custom...)}
}

// reported is what the probe says of a node.
func reported(t *testing.T, n sim.Node) *unstructured.Unstructured {
	t.Helper()
	u, err := sim.Unstructured(n.Geometry(noon))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// this is a plan of these actions.
func this(actions ...diagnosis.Action) *v1alpha1.Remediation {
	return &v1alpha1.Remediation{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Remediation"},
		ObjectMeta: metav1.ObjectMeta{Name: "this-plan-of-mine", UID: "this"}, Spec: v1alpha1.RemediationSpec{Actions: actions}}
}

// relayoutOf is the verb of a plan that has one action.
func relayoutOf(d Deps, a diagnosis.Action) *relayout {
	return New(d, this(a)).verbs[0].(*relayout)
}

// line is that of a step that has just begun.
func line() *journal.Entry {
	return &journal.Entry{Entry: &v1alpha1.Entry{Began: metav1.NewMicroTime(noon)}}
}
