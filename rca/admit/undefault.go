package admit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// Undefault takes a device out of the defaults of a LimitRange, where these give it to the pod: nobody who
// states none means to ask some.
func Undefault(c *edit.Workload, name corev1.ResourceName) (edit.Change, bool) {
	g := admission.GivenBy(c.Cluster.State.LimitRanges, c.Pod, name)
	if g == nil {
		return edit.Change{}, false
	}
	of := g.Sections()
	title := fmt.Sprintf("take %s out of %s of LimitRange %s, which gives it to %s", name, sections(of), g.Range.Name, strings.Join(g.Containers, ", "))
	return c.Once(title, func(title string) edit.Change {
		return edit.Change{Kind: diagnosis.ChangeRequest, Cause: diagnosis.GPURequestTooLarge, Manual: true, Minutes: 2, Risk: diagnosis.LowRisk, Title: title,
			Pod:      func(p *corev1.Pod) { p.Spec = g.Without(p).Spec },
			Commands: append([]string{fmt.Sprintf("kubectl -n %s edit limitrange %s  # spec.limits, type Container: no %s in %s", g.Range.Namespace, g.Range.Name, name, strings.Join(of, ", "))}, withoutGift(c.Pod, name)...)}
	}), true
}

// sections are the parts of a LimitRange for people.
func sections(of []string) string {
	var others []string
	for _, s := range of {
		if s != "default" && s != "defaultRequest" {
			others = append(others, s)
		}
	}
	return strings.Join(append([]string{"the defaults"}, others...), ", ")
}

// withoutGift has the pod made again without what it was given; who has no owner is written down first, as
// nobody else makes it again, and what it was given stands in its own spec by now.
func withoutGift(p *corev1.Pod, name corev1.ResourceName) []string {
	if view.ComesBack(p) {
		return []string{fmt.Sprintf("kubectl -n %s delete pod %s  # its owner makes another, which is given none", p.Namespace, p.Name)}
	}
	return []string{fmt.Sprintf("kubectl -n %s get pod %s -o yaml > %s.yaml  # take %s out of its resources there, too: nobody else makes it again", p.Namespace, p.Name, p.Name, name),
		fmt.Sprintf("kubectl replace --force -f %s.yaml", p.Name)}
}

// StateShare has containers that state no CPU, or no memory, ask for as much as a node has left for each, where the defaults of
// a LimitRange ask for more: nobody has said that they need it.
func StateShare(c *edit.Workload, n *view.Node) []edit.Change {
	var parts, amounts []string
	var asks []func([]corev1.Container)
	var by *admission.Given
	added := false // by a webhook: who sets that up has to state it there
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		g := admission.GivenBy(c.Cluster.State.LimitRanges, c.Pod, name)
		if wants, free := c.Wants[name], n.Free(name); g == nil || wants.Cmp(free) <= 0 {
			continue
		}
		share, some := g.Share(c.Pod, n.Free(name))
		if !some {
			return nil
		}
		by, added = g, added || !ofTemplate(c, g.Containers)
		parts = append(parts, fmt.Sprintf("%s %s for each of %s", share.String(), name, strings.Join(g.Containers, ", ")))
		amounts = append(amounts, fmt.Sprintf("%s: %s", name, share.String()))
		asks = append(asks, func(containers []corev1.Container) { g.Ask(containers, share) })
	}
	if by == nil {
		return nil
	}
	title := fmt.Sprintf("ask for %s, which state none, or lower the defaults of LimitRange %s to that", strings.Join(parts, " and "), by.Range.Name)
	return []edit.Change{c.Once(title, func(title string) edit.Change {
		ch := c.EditContainers(edit.Change{Kind: diagnosis.ChangeRequest, Cause: diagnosis.HostResourcesShort, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title}, func(containers []corev1.Container) {
			for _, ask := range asks {
				ask(containers)
			}
		})
		if added {
			ch.Manual, ch.Actions = true, nil
			ch.Commands = []string{c.EditByHand("resources.requests in these containers: " + strings.Join(amounts, ", ")),
				fmt.Sprintf("kubectl -n %s edit limitrange %s  # or this: spec.limits, type Container; pods that exist keep what they have", by.Range.Namespace, by.Range.Name)}
		}
		return ch
	})}
}

// ofTemplate says whether the workload's template has all of some containers.
func ofTemplate(c *edit.Workload, names []string) bool {
	spec := c.PodSpec()
	return !slices.ContainsFunc(names, func(name string) bool {
		return !slices.ContainsFunc(slices.Concat(spec.Containers, spec.InitContainers), func(k corev1.Container) bool { return k.Name == name })
	})
}
