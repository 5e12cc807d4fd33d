package changes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/layouts"
	"github.com/unpend/unpend/rca/mend"
	"github.com/unpend/unpend/rca/view"
)

// uniform gives all of a node's GPUs one profile where strategy single finds several, or
// some GPU without: those entries of its config that re-make the fewest GPUs, and of them
// those of the profile that there is most of. What comes of it the node's counts do not
// tell under that strategy, so a person sets the label and looks.
func (c *Bench) uniform(n *view.Node) []edit.Change {
	if !layouts.MixesUnderSingle(n) {
		return nil
	}
	if i := slices.IndexFunc(c.Asks, func(a view.Ask) bool { return a.Profile != "" }); i >= 0 {
		return []edit.Change{byProfile(c, n, c.Asks[i])}
	}
	if layouts.ByHand(n) && n.PluginPod() != nil {
		return []edit.Change{mend.Alike(c.Workload, n)}
	}
	if n.Geometry == nil || n.Doubt != "" || len(n.GPUs) != len(n.Geometry.Report.GPUs) {
		return []edit.Change{c.uniformTo(n, "NAME", "nobody knows which layout costs least: nothing reports what all GPUs of "+n.Name+" have, and who is on them")}
	}
	if sick := n.SickText(); sick != "" {
		return []edit.Change{c.uniformTo(n, "NAME", "nobody knows what MIG manager makes of a sick GPU: "+sick+" of "+n.Name+" is unhealthy")}
	}
	var out []edit.Change
	fewest, most := 0, int64(0)
	for i := range c.Cluster.NamedLayouts(n) {
		named := &c.Cluster.NamedLayouts(n)[i]
		profile, count := named.OneProfile()
		r, ok := c.layouts().Remakes(n, c.Cluster.ClassOf(n).RemakeByName(n, named))
		if count == 0 || !ok || !named.Legal || named.Config == n.Labels[view.LabelMIGConfig] {
			continue
		}
		made := c.Cluster.ClassOf(n).Made[view.Spelled(profile)]
		worse := cmp.Or(len(r.Remade)-fewest, cmp.Compare(most, made))
		if len(out) > 0 && worse > 0 {
			continue
		}
		if len(out) == 0 || worse < 0 {
			out, fewest, most = nil, len(r.Remade), made
		}
		ch := c.uniformTo(n, named.Config, "")
		ch.Victims, ch.Cost = r.Victims, r.Cost
		ch.Title += edit.Evicting(r.Victims)
		ch.Node = func(o *corev1.Node) {
			q := *resource.NewQuantity(count, resource.DecimalSI)
			o.Status.Allocatable[view.WholeGPU], o.Status.Capacity[view.WholeGPU] = q, q
		}
		if len(r.Victims) > 0 {
			first := []string{"kubectl cordon " + n.Name}
			for _, v := range r.Victims {
				first = append(first, edit.EvictCommand(v))
			}
			ch.Commands = append(append(first, ch.Commands...), "kubectl uncordon "+n.Name)
		}
		out = append(out, ch)
	}
	return out
}

func (c *Bench) uniformTo(n *view.Node, config, untestable string) edit.Change {
	label := fmt.Sprintf("kubectl label node %s %s=%s --overwrite", n.Name, view.LabelMIGConfig, config)
	title := fmt.Sprintf("lay all GPUs of %s out alike", n.Name)
	if config == "NAME" {
		label += "  # NAME: " + cmp.Or(strings.Join(c.Cluster.OneProfileEntries(n), " or "), "an entry of one profile for all GPUs, such as all-1g.…")
	} else {
		title += fmt.Sprintf(", by %q", config)
	}
	return edit.Change{Kind: diagnosis.FixMIGConfig, Cause: diagnosis.MIGStrategyMismatch, Manual: true, Minutes: 4, Risk: diagnosis.MediumRisk, Title: title, Untestable: untestable,
		Commands: []string{label, "kubectl get node " + n.Name + " -L " + view.LabelMIGState + " -w"}}
}
