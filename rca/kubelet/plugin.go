package kubelet

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// noPlugin is the kubelet's word where no plugin of the driver has come to it
// (pkg/kubelet/cm/dra/plugin; "plugin name x not found" before 1.34).
var noPlugin = regexp.MustCompile(`DRA driver (\S+) is not registered|plugin name (\S+) not found in the list of registered DRA plugins`)

// pluginAway: what the driver has published stays after its plugin has left the node. Which DaemonSet is the
// driver's no object says; one that has pods on all other nodes with its devices, and nowhere else, is taken for it.
func pluginAway(w *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	m, n := noPlugin.FindStringSubmatch(says), w.Nodes[p.Spec.NodeName]
	if m == nil || n == nil || w.State.Unread["Pod"] != "" {
		return nil
	}
	driver := m[1] + m[2]
	d := pluginOfDRA(w, driver, n, false)
	if d == nil {
		return nil
	}
	h := &Hindrance{Says: fmt.Sprintf("DaemonSet %s/%s, which runs on the other nodes with devices of %s, has no pod there", d.Namespace, d.Name, driver),
		Title: fmt.Sprintf("have DaemonSet %s/%s make its pod on %s: it looks like the driver's plugin", d.Namespace, d.Name, n.Name), Unproven: "what the driver's plugin tells the kubelet is in no object", Risk: diagnosis.NoRisk, Minutes: 5}
	look := fmt.Sprintf("kubectl -n %s get pods -o wide --field-selector spec.nodeName=%s  # the driver's plugin has to run here", d.Namespace, n.Name)
	misses := d.Misses(n)
	if misses.None() {
		h.Evidence = []diagnosis.Evidence{diagnosis.Fact(d.Ref(), "has no pod on "+n.Name, d.Counted()...)}
		h.Commands = []string{fmt.Sprintf("kubectl -n %s describe daemonset %s  # it takes %s: is its pod refused?", d.Namespace, d.Name, n.Name), look}
		return h
	}
	way, text := d.Let(n, misses, "", nil), d.Text(n, misses)
	h.Says, h.Risk = h.Says+": "+text, diagnosis.LowRisk
	h.Title = fmt.Sprintf("%s: DaemonSet %s looks like the plugin of %s", way.Title(), d.Name, driver)
	h.Evidence = []diagnosis.Evidence{diagnosis.Fact(d.Ref(), text, d.Claims(n, misses)...)}
	h.Commands = append(slices.Clone(way.Commands), look)
	if way.Edits {
		h.Commands = append(h.Commands, "# in the driver's chart as well, or its next release takes that back")
	}
	return h
}

// pluginOfDRA is the one DaemonSet that has a pod on each node that a driver has devices of, on a further one or not on it,
// as is asked, and on no node else; nil where none is, or several.
func pluginOfDRA(w *view.Cluster, driver string, further *view.Node, there bool) *parts.Set {
	with := listed(w, driver)
	if delete(with, further.Name); !slices.ContainsFunc(w.SortedNodes(), func(n *view.Node) bool { return with[n.Name] }) {
		return nil
	}
	with[further.Name] = there
	var found *parts.Set
	for _, ds := range w.State.DaemonSets {
		d := parts.Asked(ds)
		is := !slices.ContainsFunc(w.SortedNodes(), func(n *view.Node) bool { return (d.On(n) != nil) != with[n.Name] })
		switch {
		case is && found != nil:
			return nil
		case is:
			found = d
		}
	}
	return found
}
