package changes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/admit"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// fewerGPUs asks for as many whole GPUs as the node has, or as are free on it.
func (c *Bench) fewerGPUs(n *view.Node) []edit.Change {
	var out []edit.Change
	for _, a := range c.Asks {
		has, free := n.Allocatable(a.Resource), n.Free(a.Resource)
		if a.Profile != "" || has >= a.Count {
			continue
		}
		if ch, ok := admit.Undefault(c.Workload, a.Resource); ok {
			return []edit.Change{ch} // to ask less in a template that asks none of it changes nothing
		}
		cause := diagnosis.GPURequestTooLarge
		if most(c.Cluster, a.Resource) >= a.Count {
			cause = diagnosis.GPUsInUse // another node has as many, which are held
		}
		less := c.fewer(cause, a, max(has, shortest(c.Cluster, a)))
		out = append(out, less...)
		if len(less) == 0 && has > 0 {
			out = append(out, c.inOne(a, has)...)
		}
		if free.Value() < has {
			out = append(out, c.fewer(cause, a, free.Value())...)
		}
	}
	return out
}

// inOne is for containers of a pod that each ask for devices, together more than the node has: taking
// from any would leave one with none, and which of them needs none only a person knows.
func (c *Bench) inOne(a view.Ask, has int64) []edit.Change {
	var names, texts []string
	largest, asked := max(has, most(c.Cluster, a.Resource)), int64(0)
	for _, k := range askersOf(&c.Pod.Spec, a.Resource) {
		if k.runsOn {
			asked = max(asked, k.asks)
			names = append(names, k.who())
			texts = append(texts, fmt.Sprintf("%s asks for %d", k.who(), k.asks))
		}
	}
	if len(names) < 2 {
		return nil
	}
	what, atMost := a.Resource, ""
	if asked > largest { // fewer containers alone would not do
		what, atMost = corev1.ResourceName(fmt.Sprintf("at most %d %s", largest, a.Resource)), fmt.Sprintf("at most %d in all, ", largest)
	}
	title := fmt.Sprintf("ask for %s in fewer containers of %s: %s, and the largest node has %d", what, c.WorkloadName(), strings.Join(texts, ", "), largest)
	ch := c.Once(title, func(title string) edit.Change {
		return edit.Change{Kind: diagnosis.ChangeRequest, Cause: diagnosis.GPURequestTooLarge, Manual: true, Risk: diagnosis.MediumRisk, Title: title, Less: a.Count - has,
			Untestable: "which of its containers works without one, only a person knows",
			Commands:   []string{c.EditByHand(fmt.Sprintf("resources of %s: %srequests and limits without %s where it does no GPU work", strings.Join(names, " and "), atMost, a.Resource))}}
	})
	return []edit.Change{ch}
}

// shortest is the most that is free on a node, of those that have less free than is asked: a node that has enough
// keeps the pod off for something else.
func shortest(cluster *view.Cluster, a view.Ask) int64 {
	most := int64(0)
	for _, n := range cluster.SortedNodes() {
		free := n.Free(a.Resource)
		if free.Value() < a.Count {
			most = max(most, free.Value())
		}
	}
	return most
}

// most is the most that any node could give of a resource.
func most(cluster *view.Cluster, name corev1.ResourceName) int64 {
	most := int64(0)
	for _, n := range cluster.SortedNodes() {
		most = max(most, n.Allocatable(name))
	}
	return most
}

// fewerInstances asks for as many of the profile as the node has free, where more are
// asked than all of its GPUs could ever have.
func (c *Bench) fewerInstances(n *view.Node, cause diagnosis.CauseID, a view.Ask) []edit.Change {
	free := n.Free(a.Resource)
	if a.Profile == "" || len(n.GPUs) == 0 || free.Sign() <= 0 || free.Value() >= a.Count {
		return nil
	}
	most := 0
	for _, g := range n.GPUs {
		if p, has := g.Grid.Profile(a.Profile); has {
			most += p.Max
		}
	}
	if int64(most) >= a.Count {
		return nil
	}
	return c.fewer(cause, a, free.Value())
}

// fewer asks for at most so many devices in all; nothing where a container would be left
// with none of what it asks: without a GPU it does something else.
func (c *Bench) fewer(cause diagnosis.CauseID, a view.Ask, most int64) []edit.Change {
	ch := c.Once(fmt.Sprintf("at most %d %s", most, a.Resource), func(string) edit.Change {
		all, ok := c.share(a.Resource, most)
		if !ok {
			return edit.Change{}
		}
		sets := map[string]map[corev1.ResourceName]edit.Amounts{}
		var texts []string
		for _, k := range all {
			if k.keeps == k.asks {
				continue
			}
			q := *resource.NewQuantity(k.keeps, resource.DecimalSI)
			sets[k.name] = map[corev1.ResourceName]edit.Amounts{a.Resource: {Request: q, Limit: q}}
			text := fmt.Sprintf("%d instead of %d", k.keeps, k.asks)
			if len(texts) == 0 {
				text += " " + string(a.Resource)
			}
			if len(all) > 1 {
				text += " in " + k.who()
			}
			texts = append(texts, text)
		}
		ch := c.SetRequests("ask "+strings.Join(texts, " and ")+" (less than asked)", sets)
		ch.Cause, ch.Less = cause, a.Count-most
		return ch
	})
	if ch.Kind == "" {
		return nil
	}
	return []edit.Change{ch}
}

// asker is a container that asks a resource, and how much of it it keeps.
type asker struct {
	name        string
	init        bool // one of init
	runsOn      bool // beside the containers, as those of init do that are sidecars
	asks, keeps int64
}

func (k *asker) who() string {
	if k.init {
		return "init container " + k.name
	}
	return "container " + k.name
}

// askersOf lists those of a pod, containers before those of init.
func askersOf(spec *corev1.PodSpec, name corev1.ResourceName) []asker {
	var all []asker
	note := func(k *corev1.Container, init bool) {
		q := edit.Asked(&k.Resources, name)
		if q.Sign() > 0 {
			runsOn := !init || k.RestartPolicy != nil && *k.RestartPolicy == corev1.ContainerRestartPolicyAlways
			all = append(all, asker{name: k.Name, init: init, runsOn: runsOn, asks: q.Value(), keeps: q.Value()})
		}
	}
	for i := range spec.Containers {
		note(&spec.Containers[i], false)
	}
	for i := range spec.InitContainers {
		note(&spec.InitContainers[i], true)
	}
	return all
}

// share gives the pod's containers at most so many of a resource, as the scheduler counts
// them: together those that run together, and each that ends before with the sidecars that
// started before it. No more is taken than that, and of containers that run together from
// those who ask most, of equals from the first. False where one would be left with none.
func (c *Bench) share(name corev1.ResourceName, most int64) ([]asker, bool) {
	all := askersOf(&c.Pod.Spec, name)
	var together []*asker
	for i := range all {
		if all[i].runsOn {
			together = append(together, &all[i])
		}
	}
	slices.SortStableFunc(together, func(a, b *asker) int { return cmp.Compare(a.asks, b.asks) })
	left := most
	for i, k := range together {
		k.keeps = min(k.asks, left/int64(len(together)-i))
		left -= k.keeps
	}
	sidecars := int64(0)
	for i := range all {
		switch k := &all[i]; {
		case k.init && k.runsOn:
			sidecars += k.keeps
		case k.init:
			k.keeps = min(k.asks, most-sidecars)
		}
	}
	return all, !slices.ContainsFunc(all, func(k asker) bool { return k.keeps < 1 })
}
