package stack

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// moduleUnloaded: a maker's device plugin is kept off the node for its driver has not been loaded
// there.
func (s *Stack) moduleUnloaded(mk *makers.Maker, n *view.Node, d *parts.Set, m parts.Misses) *Finding {
	for _, label := range m.Labels {
		key, _, _ := strings.Cut(label, "=")
		namespace, name, is := parts.ModuleOf(key)
		if !is {
			continue
		}
		f := s.finding(Driver, Missing, diagnosis.DriverNotReady, fmt.Sprintf("%s and has no driver of theirs: %s/%s waits for label %s, which Kernel Module Management writes once the driver is loaded", mk.Has, d.Namespace, d.Name, key), d.Ref(), d.Text(n, m), d.Claims(n, m)...)
		mend := Mend{Kind: diagnosis.RepairDeviceStack, Title: fmt.Sprintf("have Kernel Module Management load the driver (%s) of %s", mk.Driver, n.Name), Risk: diagnosis.MediumRisk, Minutes: 20,
			Steps: []string{"see why the driver is not loaded: the pods kmm-worker-" + n.Name + "-* and, where it is built, *-build", "a driver that the machine has loaded already has to be kept from it first (blacklisted), and the machine rebooted", "leave label " + key + " alone: written by hand it says what is not so"}}
		if pod := parts.ModuleWorker(n, name); pod != nil {
			if l := s.kit.Look(pod); l.State != "" {
				f.Says += ": " + l.Text()
				f.Evidence = append(f.Evidence, diagnosis.Fact(podRef(pod), l.Text(), l.Claims...))
			}
			mend.Commands = append(mend.Commands, fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", pod.Namespace, pod.Name))
		}
		mend.Commands = append(mend.Commands, fmt.Sprintf("kubectl -n %s get pods,modules.kmm.sigs.x-k8s.io", namespace), fmt.Sprintf("kubectl -n %s get modules.kmm.sigs.x-k8s.io %s -o yaml  # its owner is where the driver's version is set", namespace, name), "kubectl get nodemodulesconfigs "+n.Name+" -o yaml")
		f.Mends = []Mend{mend}
		return f
	}
	return nil
}
