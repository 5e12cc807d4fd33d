package deploy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/testdata/chart"
)

// The demo asks for what its README says, and tolerates what GPU nodes are tainted with.
func TestDemoChart(t *testing.T) {
	got := map[string]string{}
	pod := func(spec corev1.PodSpec) string {
		limits := spec.Containers[0].Resources.Limits
		delete(limits, corev1.ResourceMemory)
		var out string
		for name, q := range limits {
			out += q.String() + " " + string(name)
		}
		for _, tol := range spec.Tolerations {
			out += " " + tol.Key
		}
		return out
	}
	for _, o := range (chart.Release{Chart: "mig-demo", Namespace: "demo"}).Objects(t) {
		switch o.GetKind() {
		case "Deployment":
			var d appsv1.Deployment
			convert(t, o, &d)
			got[d.Name] = strings.Repeat("x", int(*d.Spec.Replicas)) + " " + pod(d.Spec.Template.Spec)
		case "Job":
			var j batchv1.Job
			convert(t, o, &j)
			if *j.Spec.BackoffLimit != 0 {
				t.Errorf("backoffLimit %d", *j.Spec.BackoffLimit)
			}
			got[j.Name] = "x " + pod(j.Spec.Template.Spec)
		default:
			t.Errorf("a %s", o.GetKind())
		}
	}
	want := map[string]string{"inference": "xxxx 1 nvidia.com/mig-1g.5gb nvidia.com/gpu", "fragmenter": "xx 1 nvidia.com/mig-1g.5gb nvidia.com/gpu", "training": "x 1 nvidia.com/mig-2g.10gb nvidia.com/gpu"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, v := range map[string]values{"another vendor": {"training": values{"resource": "amd.com/gpu"}}, "no replicas": {"inference": values{"replicas": -1}}, "unknown key": {"gpus": 2}} {
		if _, err := (chart.Release{Chart: "mig-demo", Values: v}).Render(t); err == nil || !strings.Contains(err.Error(), "values don't meet the specifications") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
