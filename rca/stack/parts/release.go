package parts

import (
	"cmp"
	"regexp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/view"
)

// releaseName is what Helm writes on all that it makes, beside the namespace of the release.
const releaseName, releaseSpace = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"

// release is the release of Helm's that an object says it is of, and its namespace: under another name or in another
// namespace, a command would make a second one. What the object does not say is as given.
func release(o metav1.Object, name, namespace string) (string, string) {
	of := o.GetAnnotations()
	return cmp.Or(of[releaseName], o.GetLabels()["app.kubernetes.io/instance"], name), cmp.Or(of[releaseSpace], namespace)
}

// chartVersion ends what a chart writes of itself on what it makes: its name, then its version.
var chartVersion = regexp.MustCompile(`-v?[0-9]+\..*$`)

// Upgrade begins the command that changes the release of one of NVIDIA's charts: the one that the DaemonSet says it
// is of, by the name that the chart had then; by the chart's own name where there is none.
func (d *Set) Upgrade(chart string) string {
	name, namespace := chart, chart
	if d != nil {
		name, namespace = release(d, chart, d.Namespace)
		chart = cmp.Or(chartVersion.ReplaceAllString(d.Labels["helm.sh/chart"], ""), chart)
	}
	return "helm upgrade --install " + name + " nvidia/" + chart + " -n " + namespace + " --create-namespace --reuse-values "
}

// Named says whether the DaemonSet says which release of Helm's it is of.
func (d *Set) Named() bool {
	name, _ := release(d, "", "")
	return name != ""
}

// Reuse begins the command that changes the release that the DaemonSet is of, and keeps its other values. RELEASE stands for one that it does
// not name.
func (d *Set) Reuse(chart string) string { return reuse(d, chart, "RELEASE", d.Namespace) }

func reuse(o metav1.Object, chart, name, namespace string) string {
	name, namespace = release(o, name, namespace)
	return "helm upgrade " + name + " " + chart + " -n " + namespace + " --reuse-values "
}

// ReuseOperator is the same of the GPU Operator's chart, as its own Deployment says it: what the operator makes has no word of Helm's.
// A namespace is given where what it makes is known.
func ReuseOperator(w *view.Cluster, namespace string) string {
	const chart, name = "nvidia/gpu-operator", operatorName
	if d := OperatorDeployed(w); d != nil {
		return reuse(d, chart, name, d.Namespace)
	}
	return reuse(&metav1.ObjectMeta{}, chart, name, cmp.Or(namespace, name))
}
