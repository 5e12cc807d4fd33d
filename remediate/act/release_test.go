package act

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
)

// left is a node as an operation has left it.
type left struct {
	mark          *diagnosis.Operation
	text          string // in place of the mark
	config, state string
	open          bool
	keep          bool
	holder        bool
}

func (l left) objects(t *testing.T) []runtime.Object {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1", UID: "n1", Labels: map[string]string{}, Annotations: map[string]string{"own": "kept"}}}
	n.Spec.Unschedulable = !l.open
	for label, value := range map[string]string{nodeprobe.LabelMIGConfig: l.config, nodeprobe.LabelMIGConfigState: l.state} {
		if value != "" {
			n.Labels[label] = value
		}
	}
	if l.mark != nil {
		text, err := l.mark.Annotation()
		if err != nil {
			t.Fatal(err)
		}
		l.text = text
	}
	if l.text != "" {
		n.Annotations[diagnosis.OperationAnnotation] = l.text
	}
	if l.keep {
		n.Annotations[diagnosis.KeepCordoned] = "true"
	}
	out := []runtime.Object{n, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "unpend", Name: "unpend-node-gpu-1"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("p")}}}
	if l.holder {
		out = append(out, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web-1"}, Spec: corev1.PodSpec{NodeName: "gpu-1", Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/mig-2g.10gb": resource.MustParse("1")}}}}}})
	}
	return out
}

// What was before is restored as far as that is safe, and what is not is said; the mark and
// the lock are off in every case.
func TestRelease(t *testing.T) {
	op := func(edit func(*diagnosis.Operation)) *diagnosis.Operation {
		o := &diagnosis.Operation{Plan: "p", ID: "u", Step: "config all-2g", PriorMIGConfig: "all-1g", PriorState: "success"}
		if edit != nil {
			edit(o)
		}
		return o
	}
	mine := "take the mark of plan p off"
	back := `set nvidia.com/mig.config back from all-2g to all-1g (MIG manager says "success"), and wait for MIG manager`
	asWas := `leave nvidia.com/mig.config=all-1g, as it was; MIG manager says "%s"`
	for name, tc := range map[string]struct {
		left
		says   []string
		open   bool
		config string
	}{
		"before the config was set":    {left{mark: op(func(o *diagnosis.Operation) { o.Step = "cordon" }), config: "all-1g", state: "success"}, []string{fmt.Sprintf(asWas, "success"), mine, "uncordon it"}, true, "all-1g"},
		"no MIG manager":               {left{mark: op(func(o *diagnosis.Operation) { o.Step, o.PriorMIGConfig = "cordon", "" })}, []string{mine, "uncordon it"}, true, ""},
		"the config was set":           {left{mark: op(nil), config: "all-2g", state: "success"}, []string{back, mine, "uncordon it"}, true, "all-1g"},
		"pods hold the new layout":     {left{mark: op(nil), config: "all-2g", state: "success", holder: true}, []string{`leave nvidia.com/mig.config=all-2g (it was all-1g; MIG manager says "success"): ml/web-1 holds GPUs that are laid out so`, mine, "uncordon it"}, true, "all-2g"},
		"somebody set a third":         {left{mark: op(nil), config: "own", state: "success"}, []string{`leave nvidia.com/mig.config=own, which others have set since it was "all-1g"; MIG manager says "success"`, mine, "uncordon it"}, true, "own"},
		"it was closed before":         {left{mark: op(func(o *diagnosis.Operation) { o.PriorUnschedulable = true }), config: "all-1g", state: "success"}, []string{fmt.Sprintf(asWas, "success"), mine, "leave it cordoned: it was so before"}, false, "all-1g"},
		"a person wants it closed":     {left{mark: op(nil), config: "all-1g", state: "success", keep: true}, []string{fmt.Sprintf(asWas, "success"), mine, "leave it cordoned: somebody else wants it so: annotation unpend.dev/keep-cordoned, or spec.unschedulable is of another manager too"}, false, "all-1g"},
		"parked, MIG manager failed":   {left{mark: op(func(o *diagnosis.Operation) { o.Parked = "it failed" }), config: "all-1g", state: "failed"}, []string{fmt.Sprintf(asWas, "failed"), mine, `leave it cordoned: MIG manager says "failed"; once its GPUs are well: kubectl uncordon gpu-1`}, false, "all-1g"},
		"parked, and mended since":     {left{mark: op(func(o *diagnosis.Operation) { o.Parked = "it failed" }), config: "all-1g", state: "success"}, []string{fmt.Sprintf(asWas, "success"), mine, "uncordon it"}, true, "all-1g"},
		"quarantined":                  {left{mark: op(func(o *diagnosis.Operation) { o.Step, o.Quarantined = "quarantined", "sick" }), config: "all-1g", state: "success"}, []string{fmt.Sprintf(asWas, "success"), mine, "uncordon it"}, true, "all-1g"},
		"quarantined, opened by hand":  {left{mark: op(func(o *diagnosis.Operation) { o.Step, o.Quarantined = "quarantined", "sick" }), config: "all-1g", state: "success", open: true}, []string{fmt.Sprintf(asWas, "success"), mine, "leave it open, as it is"}, true, "all-1g"},
		"a mark that is none of ours":  {left{text: "x", config: "all-2g", state: "success"}, []string{`take the annotation unpend.dev/operation off, which is not one of ours: "x"`, "leave it cordoned: what it was before is not known"}, false, "all-2g"},
		"opened by hand under its way": {left{mark: op(nil), config: "all-1g", state: "success", open: true}, []string{fmt.Sprintf(asWas, "success"), mine, "leave it open, as it is"}, true, "all-1g"},
	} {
		t.Run(name, func(t *testing.T) {
			d := memory(tc.objects(t)...)
			d.Locks = "unpend"
			manages(d.Client.(*fake.Clientset))
			n, err := d.Client.CoreV1().Nodes().Get(t.Context(), "gpu-1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			r, err := NewRelease(t.Context(), d, n)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.says, r.Says()); diff != "" {
				t.Error(diff)
			}
			if err := r.Do(t.Context(), time.Millisecond, func(string) {}); err != nil {
				t.Fatal(err)
			}
			if n, err = d.Client.CoreV1().Nodes().Get(t.Context(), "gpu-1", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
			_, marked := n.Annotations[diagnosis.OperationAnnotation]
			if marked || n.Spec.Unschedulable == tc.open || n.Labels[nodeprobe.LabelMIGConfig] != tc.config || n.Annotations["own"] != "kept" {
				t.Errorf("marked %v, unschedulable %v, labels %v, annotations %v", marked, n.Spec.Unschedulable, n.Labels, n.Annotations)
			}
			if err := r.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := d.Client.CoordinationV1().Leases("unpend").Get(t.Context(), "unpend-node-gpu-1", metav1.GetOptions{}); (err != nil) != (tc.mark != nil) {
				t.Errorf("the lock: %v", err)
			}
		})
	}
}

// manages has MIG manager apply a config at once: pending, then success.
func manages(client *fake.Clientset) {
	asked := 0
	client.PrependReactor("get", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		o, err := client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", a.(clienttesting.GetAction).GetName())
		if err != nil {
			return true, nil, err
		}
		n := o.(*corev1.Node).DeepCopy()
		if strings.Contains(n.Annotations[diagnosis.OperationAnnotation], `"step":"config all-1g"`) {
			if asked++; asked < 3 {
				n.Labels[nodeprobe.LabelMIGConfigState] = "pending"
			}
		}
		return true, n, nil
	})
}

// A node without a mark is nobody's to release; one that MIG manager fails on keeps its mark,
// and its cordon.
func TestReleaseThatCannot(t *testing.T) {
	d := memory(left{config: "all-1g"}.objects(t)...)
	n, err := d.Client.CoreV1().Nodes().Get(t.Context(), "gpu-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := NewRelease(t.Context(), d, n); r != nil || err != nil {
		t.Error(r, err)
	}
	d = memory(left{mark: &diagnosis.Operation{Plan: "p", ID: "u", Step: "config all-2g", PriorMIGConfig: "all-1g"}, config: "all-2g", state: "success"}.objects(t)...)
	if n, err = d.Client.CoreV1().Nodes().Get(t.Context(), "gpu-1", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	r, err := NewRelease(t.Context(), d, n)
	if err != nil {
		t.Fatal(err)
	}
	d.Client.(*fake.Clientset).PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		o, err := d.Client.(*fake.Clientset).Tracker().Get(corev1.SchemeGroupVersion.WithResource("nodes"), "", "gpu-1")
		if err != nil {
			return true, nil, err
		}
		failing := o.(*corev1.Node).DeepCopy()
		if failing.Labels[nodeprobe.LabelMIGConfig] == "all-1g" {
			failing.Labels[nodeprobe.LabelMIGConfigState] = "failed"
		}
		return true, failing, nil
	})
	if err := r.Do(t.Context(), time.Millisecond, func(string) {}); err == nil || !strings.Contains(err.Error(), "MIG manager says failed for all-1g; node gpu-1 stays cordoned with its mark: release it again") {
		t.Error(err)
	}
	if n, err = d.Client.CoreV1().Nodes().Get(t.Context(), "gpu-1", metav1.GetOptions{}); err != nil || !n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] == "" {
		t.Error(n, err)
	}
}
