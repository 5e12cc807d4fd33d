package kubelet

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Unlisted is a node that a DRA driver's plugin runs on and that none of the driver's ResourceSlices is of, where other
// nodes have theirs. A kubelet deletes those of its node when it starts, and when the plugin has been away for a while; a
// plugin that does not notice makes none again before it starts again (dra-driver-nvidia-gpu issue 330).
type Unlisted struct {
	Driver string
	On     string
	Pod    *corev1.Pod // the driver's plugin there
	parts.Look
}

// publishTime is how long a plugin that has become Ready may take for its ResourceSlices.
const publishTime = 2 * time.Minute

// UnlistedOn tells it of a node and the first of some drivers; nil where they offer their devices otherwise than node by node, and
// where the plugin is not there, or only just.
func UnlistedOn(w *view.Cluster, drivers []string, n *view.Node) *Unlisted {
	if w.State.Unread["Pod"] != "" || w.State.Unread["ResourceSlice"] != "" {
		return nil
	}
	for _, driver := range drivers {
		with := listed(w, driver)
		if len(with) == 0 || with[n.Name] || with[""] {
			continue
		}
		u := &Unlisted{Driver: driver, On: n.Name, Pod: pluginOn(w, driver, n)}
		if u.Pod == nil {
			continue
		}
		if u.Look = parts.Of(w).Look(u.Pod); u.State != "" || w.State.Now.Sub(u.Since) >= publishTime {
			return u
		}
	}
	return nil
}

// listed are the nodes that ResourceSlices of a driver are of; the empty name stands for slices that are of no single one.
func listed(w *view.Cluster, driver string) map[string]bool {
	with := map[string]bool{}
	for _, s := range w.State.ResourceSlices {
		if s.Spec.Driver != driver {
			continue
		}
		name := ""
		if s.Spec.NodeName != nil {
			name = *s.Spec.NodeName
		}
		with[name] = true
	}
	return with
}

// nvidias are the containers of NVIDIA's plugin, by the driver that each is.
var nvidias = map[string]string{"gpu.nvidia.com": "gpus", "compute-domain.nvidia.com": "compute-domains"}

// pluginOn is the pod of a driver's plugin on a node: NVIDIA's is known, another's is told by where its DaemonSet runs.
func pluginOn(w *view.Cluster, driver string, n *view.Node) *corev1.Pod {
	if container := nvidias[driver]; container != "" {
		p := parts.Of(w).Pod(n, parts.DRADriver)
		if p == nil || !slices.ContainsFunc(p.Spec.Containers, func(k corev1.Container) bool { return k.Name == container }) {
			return nil
		}
		return p
	}
	if d := pluginOfDRA(w, driver, n, true); d != nil {
		return d.On(n)
	}
	return nil
}

// Says completes "1 node: …".
func (u *Unlisted) Says() string {
	if u.State != "" {
		return fmt.Sprintf("offers no device of %s: the driver's plugin %s/%s is not ready there: %s", u.Driver, u.Pod.Namespace, u.Pod.Name, u.Text())
	}
	return fmt.Sprintf("offers no device of %s, though the driver's plugin %s/%s runs there: no ResourceSlice of it is of that node", u.Driver, u.Pod.Namespace, u.Pod.Name)
}

// Evidence is what shows it.
func (u *Unlisted) Evidence() []diagnosis.Evidence {
	ref := "Pod/" + u.Pod.Namespace + "/" + u.Pod.Name
	return []diagnosis.Evidence{
		diagnosis.Fact("Node/"+u.On, "no ResourceSlice of driver "+u.Driver+" is of it, and other nodes have theirs", diagnosis.That("spec.nodeName[spec.driver="+u.Driver+"]", "", diagnosis.IsNot, u.On).Of("ResourceSlice/*")),
		diagnosis.Fact(ref, "the driver's plugin there: "+u.Text(), append([]diagnosis.Claim{diagnosis.That("spec.nodeName", "", diagnosis.Is, u.On)}, u.Claims...)...),
	}
}

// Title is what is to be done.
func (u *Unlisted) Title() string {
	if u.State != "" {
		return fmt.Sprintf("mend the plugin of %s on %s: %s is not ready", u.Driver, u.On, u.Pod.Name)
	}
	return fmt.Sprintf("have the plugin of %s on %s publish its devices again: make its pod %s again", u.Driver, u.On, u.Pod.Name)
}

// Commands are how.
func (u *Unlisted) Commands() []string {
	pod := "kubectl -n " + u.Pod.Namespace
	out := []string{
		"kubectl get resourceslices --field-selector spec.nodeName=" + u.On,
		fmt.Sprintf("%s logs %s --all-containers --tail=50", pod, u.Pod.Name),
	}
	if u.State != "" {
		return append(out, fmt.Sprintf("%s describe pod %s", pod, u.Pod.Name))
	}
	return append(out, fmt.Sprintf("%s delete pod %s  # its DaemonSet makes it again; who has devices keeps them", pod, u.Pod.Name))
}
