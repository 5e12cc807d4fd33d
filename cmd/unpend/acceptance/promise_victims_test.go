package acceptance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR17: evicting from the first node is cheapest, but who is evicted there
// may run nowhere else; who is evicted from the second node, of a higher priority,
// finds room on the third. The second is offered. Where there is only the first, it is
// said that the victim will wait.
func promiseR17(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	p := &pool{lane: l, ns: l.Namespace(t)}
	p.priority(t, "waits", 1000)
	p.priority(t, "mobile", 100)
	p.held(t, "gpu-1", "stuck", "", map[string]string{"kubernetes.io/hostname": "gpu-1"})
	p.held(t, "gpu-2", "mobile", "mobile", map[string]string{"pool": "mobile"})
	small := threes("gpu-3", "mobile")
	small.CPU = "2" // too little for the Jobs
	p.AddNode(t, small)

	p.asks(t, "two-ways", nil)
	p.asks(t, "one-way", map[string]string{"kubernetes.io/hostname": "gpu-1"})
	held := 0
	both := p.told(t, "two-ways")
	if f := both.Fixes[0]; f.Kind == diagnosis.MovePods && f.Proof.Verdict == diagnosis.Schedules && f.Proof.Victims == "land" && f.Proof.Node == "gpu-2" && len(f.Cost.Evictions) == 1 && strings.HasPrefix(f.Cost.Evictions[0].Name, "mobile-") {
		held++
	} else {
		t.Errorf("first of two ways: %+v", f)
	}
	alone := p.told(t, "one-way")
	i := slices.IndexFunc(alone.Fixes, func(f diagnosis.Fix) bool { return f.Kind == diagnosis.EvictPods })
	if i >= 0 && alone.Fixes[i].Proof.Victims == "wait" && alone.Fixes[i].Risk != "low" && strings.Contains(alone.Fixes[i].Proof.Why, "victims will wait: 1 of 1") {
		held++
	} else {
		t.Errorf("the only way: %+v", alone.Fixes)
	}
	report(t, held, 2, fmt.Sprintf("with an alternative: %q, victims %s; alone, in place %d of %d: %q", both.Fixes[0].Title, both.Fixes[0].Proof.Victims, i+1, len(alone.Fixes), alone.Fixes[max(0, i)].Proof.Why))
}

// threes is a node with two instances of 3g.20gb.
func threes(name, pool string) sim.Node {
	return sim.Node{Name: name, Model: a100, Config: "all-3g.20gb", Layouts: [][]sim.Placed{sim.All(a100, "3g.20gb")}, Labels: map[string]string{"pool": pool}}
}

// priority makes a class that takes nobody's place by itself.
func (p *pool) priority(t *testing.T, name string, value int32) {
	t.Helper()
	never := corev1.PreemptNever
	_, err := p.Client().SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &never}, metav1.CreateOptions{})
	must(t, err)
}

// held makes a node of which two pods hold all.
func (p *pool) held(t *testing.T, node, name, class string, on map[string]string) {
	t.Helper()
	p.AddNode(t, threes(node, name))
	tpl, two := template("3g.20gb", map[string]string{"app": name}), int32(2)
	tpl.Spec.NodeSelector, tpl.Spec.PriorityClassName = on, class
	_, err := p.Client().AppsV1().Deployments(p.ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: &two, Selector: &metav1.LabelSelector{MatchLabels: tpl.Labels}, Template: tpl}}, metav1.CreateOptions{})
	must(t, err)
	controlplane.Eventually(t, 30*time.Second, name+" runs", func() (bool, string) {
		list, err := p.Client().CoreV1().Pods(p.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name, FieldSelector: "status.phase=Running"})
		must(t, err)
		return len(list.Items) == 2, fmt.Sprint(len(list.Items))
	})
}

func (p *pool) asks(t *testing.T, name string, on map[string]string) {
	t.Helper()
	tpl := template("3g.20gb", nil)
	tpl.Spec.RestartPolicy, tpl.Spec.NodeSelector, tpl.Spec.PriorityClassName = corev1.RestartPolicyNever, on, "waits"
	tpl.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	_, err := p.Client().BatchV1().Jobs(p.ns).Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: tpl}}, metav1.CreateOptions{})
	must(t, err)
}

// told is what `why` says of a Job once the scheduler has refused it and the probe has
// told who holds what.
func (p *pool) told(t *testing.T, job string) (d diagnosis.Diagnosis) {
	t.Helper()
	controlplane.Eventually(t, 30*time.Second, "why "+job+" is told", func() (bool, string) {
		code, out, errs := call(t, "why", "job/"+job, "-n", p.ns, "-o", "json", "--kubeconfig", p.Kubeconfig())
		var list diagnosis.List
		if err := json.Unmarshal([]byte(out), &list); code != 0 || err != nil || len(list.Items) != 1 {
			return false, fmt.Sprintf("exit %d: %s", code, errs)
		}
		d = list.Items[0]
		evicts := slices.ContainsFunc(d.Fixes, func(f diagnosis.Fix) bool { return len(f.Cost.Evictions) > 0 && f.Proof.Victims != "" })
		return evicts, fmt.Sprintf("%+v", d.Fixes)
	})
	return d
}
