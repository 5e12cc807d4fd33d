package rca

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// uniform gives all of a node's GPUs one profile where strategy single finds several, or
// some GPU without: those entries of its config that re-make the fewest GPUs, and of them
// those of the profile that there is most of. What comes of it the node's counts do not
// tell under that strategy, so a person sets the label and looks.
func (c *Bench) uniform(n *nodeView) []change {
	if !n.mixesUnderSingle() {
		return nil
	}
	if n.geometry == nil || n.doubt != "" || len(n.gpus) != len(n.geometry.Report.GPUs) {
		return []change{c.uniformTo(n, "NAME", "which layout costs least cannot be told: nothing reports what all GPUs of "+n.Name+" have, and who is on them")}
	}
	var out []change
	fewest, most := 0, int64(0)
	for i := range c.world.namedLayouts(n) {
		named := &c.world.namedLayouts(n)[i]
		profile, count := named.oneProfile()
		r, ok := c.remakes(n, c.world.classOf(n).remakeByName(n, named))
		if count == 0 || !ok || !named.legal || named.config == n.Labels[labelMIGConfig] {
			continue
		}
		made := c.world.classOf(n).made[spelled(profile)]
		worse := cmp.Or(len(r.remade)-fewest, cmp.Compare(most, made))
		if len(out) > 0 && worse > 0 {
			continue
		}
		if len(out) == 0 || worse < 0 {
			out, fewest, most = nil, len(r.remade), made
		}
		ch := c.uniformTo(n, named.config, "")
		ch.victims, ch.cost = r.victims, r.cost
		ch.title += evicting(r.victims)
		ch.node = func(o *corev1.Node) {
			q := *resource.NewQuantity(count, resource.DecimalSI)
			o.Status.Allocatable[wholeGPU], o.Status.Capacity[wholeGPU] = q, q
		}
		if len(r.victims) > 0 {
			first := []string{"kubectl cordon " + n.Name}
			for _, v := range r.victims {
				first = append(first, evictCommand(v))
			}
			ch.commands = append(append(first, ch.commands...), "kubectl uncordon "+n.Name)
		}
		out = append(out, ch)
	}
	return out
}

func (c *Bench) uniformTo(n *nodeView, config, untestable string) change {
	label := fmt.Sprintf("kubectl label node %s %s=%s --overwrite", n.Name, labelMIGConfig, config)
	title := fmt.Sprintf("lay all GPUs of %s out alike", n.Name)
	if config == "NAME" {
		label += "  # NAME: an entry of one profile for all GPUs, such as all-1g.…"
	} else {
		title += fmt.Sprintf(", by %q", config)
	}
	return change{kind: FixMIGConfig, cause: MIGStrategyMismatch, manual: true, minutes: 4, risk: MediumRisk, title: title, untestable: untestable,
		commands: []string{label, "kubectl get node " + n.Name + " -L " + labelMIGState + " -w"}}
}

// oneProfile is how many instances a layout makes of which profile; 0 unless all are of
// one and no GPU is left without.
func (l *namedLayouts) oneProfile() (profile string, count int64) {
	if l.gives == nil {
		return "", 0
	}
	for _, layout := range l.layouts {
		of := 0
		for name, k := range layout {
			if profile != "" && name != profile {
				return "", 0
			}
			profile, of = name, of+k
		}
		if of == 0 {
			return "", 0
		}
		count += int64(of)
	}
	return profile, count
}
