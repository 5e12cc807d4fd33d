package parts

import "cmp"

// Upgrade begins the command that changes the release of one of NVIDIA's charts: the one that the DaemonSet says it
// is of, for another name or namespace would be a second one; by the chart's own name where there is none.
func (d *Set) Upgrade(chart string) string {
	release, namespace := chart, chart
	if d != nil {
		release = cmp.Or(d.Annotations["meta.helm.sh/release-name"], d.Labels["app.kubernetes.io/instance"], release)
		namespace = cmp.Or(d.Annotations["meta.helm.sh/release-namespace"], d.Namespace)
	}
	return "helm upgrade --install " + release + " nvidia/" + chart + " -n " + namespace + " --create-namespace --reuse-values "
}
