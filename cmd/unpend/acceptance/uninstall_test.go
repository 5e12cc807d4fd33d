package acceptance

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/chart"
)

// What helm runs before an uninstall, with the arguments and the rights that the chart
// renders, refuses while a plan is under way or a node is parked, names both and writes
// nothing; a person gives a parked node back, as it was, and then it has nothing to do.
func TestUninstall(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	c := l.newCell(t)
	var job batchv1.Job
	for _, o := range (chart.Release{Namespace: c.ns, Values: chart.Values{"mode": "approve"}}).Objects(t) {
		if o.GetKind() == "Job" {
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &job))
		}
	}
	if job.Annotations["helm.sh/hook"] != "pre-delete" {
		t.Fatalf("annotations %v", job.Annotations)
	}
	pod := job.Spec.Template.Spec
	args := append(append([]string{}, pod.Containers[0].Args...), "--kubeconfig", l.asServiceAccount(t, c.ns, pod.ServiceAccountName))

	c.rem.Status.Phase, c.rem.Status.Progress = v1alpha1.Running, "2/9"
	must(t, storeOf(t, l.asExecutor(t, c.ns)).Save(t.Context(), c.rem))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: executor.LeaderLease}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("x"), RenewTime: new(metav1.NowMicro())}}
	_, err := l.Client().CoordinationV1().Leases(c.ns).Create(t.Context(), lease, metav1.CreateOptions{})
	must(t, err)
	// Before it has marked its node.
	want := fmt.Sprintf("the executor in namespace %s carries plan %.12s out (step 2/9): 'unpend reject %.12s' stops it and takes it back", c.ns, c.rem.Name, c.rem.Name)
	if code, out, errs := call(t, args...); code != exitRefused || out != "" || !strings.Contains(errs, want) {
		t.Errorf("%d %s%s, want %q", code, out, errs, want)
	}

	mark := diagnosis.Operation{Plan: c.rem.Name, ID: c.rem.UID, Step: "cordon", PriorMIGConfig: "all-1g.5gb"}
	c.mark(t, &mark)
	before := c.nodeOf(t)
	want = fmt.Sprintf("the executor in namespace %s carries plan %.12s out on node %s (step 2/9): 'unpend reject %.12s' stops it and takes it back", c.ns, c.rem.Name, c.node, c.rem.Name)
	if code, out, errs := call(t, args...); code != exitRefused || out != "" || !strings.Contains(errs, want) {
		t.Errorf("%d %s%s, want %q", code, out, errs, want)
	}
	if n := c.nodeOf(t); !n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != before.Annotations[diagnosis.OperationAnnotation] {
		t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
	}

	c.rem.Status.Phase = v1alpha1.Parked
	must(t, storeOf(t, l.asExecutor(t, c.ns)).Save(t.Context(), c.rem))
	mark.Step, mark.Parked = "parked", "it will not go back"
	c.mark(t, &mark)
	want = fmt.Sprintf("node %s is parked: it will not go back: look at it, and give it back by 'unpend release %s'", c.node, c.node)
	if code, out, errs := call(t, args...); code != exitRefused || out != "" || !strings.Contains(errs, want) {
		t.Errorf("%d %s%s, want %q", code, out, errs, want)
	}
	if n := c.nodeOf(t); !n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] == "" {
		t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
	}
	byHand := []string{"release", c.node, "--yes", "--executor-namespace", c.ns, "--kubeconfig", l.asServiceAccount(t, c.ns, pod.ServiceAccountName)}
	if code, out, errs := call(t, byHand...); code != exitDone || out != "node "+c.node+" is released: it is open\n" {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, out, errs := call(t, args...); code != exitDone || out != "No mark of unpend is there: nothing is to be released.\n" {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if n := c.nodeOf(t); n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" || n.Labels[migConfig] != "all-1g.5gb" {
		t.Errorf("unschedulable %v, mark %q, config %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation], n.Labels[migConfig])
	}
}
