package parts

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// Kernel Module Management (kubernetes-sigs/kernel-module-management) loads a maker's driver, and
// says so in a label of the node by which the maker's operator then chooses where its device plugin
// runs. Written by hand it would say what is not so.
const (
	moduleLabels = "kmm.node.kubernetes.io/"
	moduleReady  = ".ready"
)

// ModuleOf is the module whose driver a label says is loaded; false for any other label.
func ModuleOf(key string) (namespace, name string, is bool) {
	rest, kmm := strings.CutPrefix(key, moduleLabels)
	rest, said := strings.CutSuffix(rest, moduleReady)
	namespace, name, named := strings.Cut(rest, ".")
	return namespace, name, kmm && said && named
}

// ModuleWorker is the pod that loads a module on the node; nil where there is none.
func ModuleWorker(n *view.Node, module string) *corev1.Pod {
	for _, p := range n.Pods {
		if p.Labels["app.kubernetes.io/component"] == "worker" && p.Labels[moduleLabels+"module.name"] == module {
			return p
		}
	}
	return nil
}
