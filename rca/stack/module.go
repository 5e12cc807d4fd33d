package stack

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Kernel Module Management (kubernetes-sigs/kernel-module-management) loads a maker's driver, and
// says so in a label of the node by which the maker's operator then chooses where its device plugin
// runs. Written by hand it would say what is not so.
const (
	moduleLabels = "kmm.node.kubernetes.io/"
	moduleReady  = ".ready"
)

// moduleOf is the module whose driver a label says is loaded; false for any other label.
func moduleOf(key string) (namespace, name string, is bool) {
	rest, kmm := strings.CutPrefix(key, moduleLabels)
	rest, said := strings.CutSuffix(rest, moduleReady)
	namespace, name, named := strings.Cut(rest, ".")
	return namespace, name, kmm && said && named
}

// moduleUnloaded: a maker's device plugin is kept off the node for its driver has not been loaded
// there.
func (s *Stack) moduleUnloaded(mk *maker, n *view.Node, d *parts.Set, m parts.Misses) *Finding {
	for _, label := range m.Labels {
		key, _, _ := strings.Cut(label, "=")
		namespace, name, is := moduleOf(key)
		if !is {
			continue
		}
		f := s.finding(Driver, Missing, diagnosis.DriverNotReady, fmt.Sprintf("%s and has no driver of theirs: %s/%s waits for label %s, which Kernel Module Management writes once the driver is loaded", mk.has, d.Namespace, d.Name, key), d.Ref(), d.Text(n, m), d.Claims(n, m)...)
		mend := Mend{Kind: diagnosis.RepairDeviceStack, Title: fmt.Sprintf("have Kernel Module Management load the driver (%s) of %s", mk.driver, n.Name), Risk: diagnosis.MediumRisk, Minutes: 20,
			Steps: []string{"see why the driver is not loaded: the pods kmm-worker-" + n.Name + "-* and, where it is built, *-build", "a driver that the machine has loaded already has to be kept from it first (blacklisted), and the machine rebooted", "leave label " + key + " alone: written by hand it says what is not so"}}
		if pod := worker(n, name); pod != nil {
			if l := s.kit.Look(pod); l.State != "" {
				f.Says += ": " + l.Text()
				f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(pod), l.Text(), l.Claims...))
			}
			mend.Commands = append(mend.Commands, fmt.Sprintf("kubectl -n %s logs %s --tail=50", pod.Namespace, pod.Name))
		}
		mend.Commands = append(mend.Commands, fmt.Sprintf("kubectl -n %s get pods,modules.kmm.sigs.x-k8s.io", namespace), fmt.Sprintf("kubectl -n %s get modules.kmm.sigs.x-k8s.io %s -o yaml  # its owner is where the driver's version is set", namespace, name), "kubectl get nodemodulesconfigs "+n.Name+" -o yaml")
		f.Mends = []Mend{mend}
		return f
	}
	return nil
}

// worker is the pod that loads a module on the node; nil where there is none.
func worker(n *view.Node, module string) *corev1.Pod {
	for _, p := range n.Pods {
		if p.Labels["app.kubernetes.io/component"] == "worker" && p.Labels[moduleLabels+"module.name"] == module {
			return p
		}
	}
	return nil
}
