package changes

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/view"
)

// lowering has pods ask for less.
type lowering struct{ *Bench }

// lowerRequest asks for as much CPU, memory and ephemeral storage as the node has free,
// when that is all it is short of.
func (c *Bench) lowerRequest(n *view.Node, lack view.Deficits, fits bool) (edit.Change, bool) {
	if !fits {
		lack = lowering{c}.lacks(n)
	}
	for name := range lack {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
			return edit.Change{}, false
		}
	}
	most := corev1.ResourceList{}
	var texts []string
	for name := range lack {
		left := n.Free(name)
		left.Sub(c.Pod.Spec.Overhead[name]) // its RuntimeClass adds that to what its container asks
		free := inMi(name, left)
		if free.Sign() <= 0 {
			return edit.Change{}, false
		}
		most[name] = free
		texts = append(texts, fmt.Sprintf("%s %s", free.String(), name))
	}
	switch {
	case len(most) == 0:
		return edit.Change{}, false
	case len(runningOn(&c.Pod.Spec)) > 1:
		return lowering{c}.lowerLargest(n, lack)
	}
	slices.Sort(texts)
	ch := c.ChangeRequest(diagnosis.HostResourcesShort, "ask for "+strings.Join(texts, ", ")+" (less than asked)", edit.AskAtMost(most))
	ch.AsksLess(c.Wants, most)
	return ch, true
}

// lacks is what the pod asks beyond what the node has free, whether it could ever have that or not.
func (c lowering) lacks(n *view.Node) view.Deficits {
	lack := view.Deficits{}
	for name, q := range c.Wants {
		free := n.Free(name)
		if d := q.MilliValue() - free.MilliValue(); d > 0 {
			lack[name] = d
		}
	}
	return lack
}

// runningOn are the containers of a pod that run beside each other: those of init that are sidecars, too.
func runningOn(spec *corev1.PodSpec) []*corev1.Container {
	var out []*corev1.Container
	for i := range spec.Containers {
		out = append(out, &spec.Containers[i])
	}
	for i := range spec.InitContainers {
		if policy := spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			out = append(out, &spec.InitContainers[i])
		}
	}
	return out
}

// lowerLargest takes what the node lacks from the container that asks most of it: of several that run together it is the
// one that can best do with less. False where that is not enough, or would leave it nothing.
func (c lowering) lowerLargest(n *view.Node, lack view.Deficits) (edit.Change, bool) {
	cuts, texts := map[string]corev1.ResourceList{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(lack)) {
		k := largest(&c.Pod.Spec, name)
		if k == nil {
			return edit.Change{}, false
		}
		asked := edit.Asked(&k.Resources, name)
		keeps := less(name, asked, lack[name])
		if keeps.Sign() <= 0 {
			return edit.Change{}, false
		}
		if cuts[k.Name] == nil {
			cuts[k.Name] = corev1.ResourceList{}
		}
		cuts[k.Name][name] = keeps
		texts = append(texts, fmt.Sprintf("%s instead of %s %s in container %s", keeps.String(), asked.String(), name, k.Name))
	}
	cut := func(containers []corev1.Container) {
		for i := range containers {
			edit.AskAtMost(cuts[containers[i].Name])(&containers[i].Resources)
		}
	}
	after, asks := c.Pod.DeepCopy(), corev1.ResourceList{}
	cut(after.Spec.Containers)
	cut(after.Spec.InitContainers)
	for name := range lack {
		asks[name] = view.PodRequests(after)[name]
		if q, free := asks[name], n.Free(name); q.Cmp(free) > 0 {
			return edit.Change{}, false
		}
	}
	if k := c.putIn(cuts); k != "" {
		return c.lowerPutIn(k, cuts, cut)
	}
	ch := c.Once("ask for "+strings.Join(texts, ", ")+" (less than asked)", func(title string) edit.Change {
		return c.EditContainers(edit.Change{Kind: diagnosis.ChangeRequest, Cause: diagnosis.HostResourcesShort, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title + " in " + c.WorkloadName()}, cut)
	})
	ch.AsksLess(c.Wants, asks)
	return ch, true
}

// largest is the container that asks most of a resource, of those that run together; nil: none asks it.
func largest(spec *corev1.PodSpec, name corev1.ResourceName) *corev1.Container {
	var most *corev1.Container
	for _, k := range runningOn(spec) {
		asks := edit.Asked(&k.Resources, name)
		if most == nil && asks.Sign() > 0 {
			most = k
		} else if most != nil && asks.Cmp(edit.Asked(&most.Resources, name)) > 0 {
			most = k
		}
	}
	return most
}

// less is an amount without so many thousandths of it, and of memory and disks in whole Mi.
func less(name corev1.ResourceName, asked resource.Quantity, milli int64) resource.Quantity {
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(asked.MilliValue()-milli, resource.DecimalSI)
	}
	return inMi(name, *resource.NewQuantity(asked.Value()-(milli+999)/1000, resource.BinarySI))
}

// inMi is an amount of memory or disk in whole Mi, where it has some: nobody reads twelve digits.
func inMi(name corev1.ResourceName, q resource.Quantity) resource.Quantity {
	if name == corev1.ResourceCPU || q.Value() < 1<<20 {
		return q
	}
	return *resource.NewQuantity(q.Value()>>20<<20, resource.BinarySI)
}

// putIn is the first of the containers that are to be cut which the template does not have: something puts it into each
// pod as it is made, and to change the template takes nothing from it. Empty: the template has all of them.
func (c lowering) putIn(cuts map[string]corev1.ResourceList) string {
	spec := c.PodSpec()
	for _, name := range slices.Sorted(maps.Keys(cuts)) {
		if !slices.ContainsFunc(slices.Concat(spec.Containers, spec.InitContainers), func(k corev1.Container) bool { return k.Name == name }) {
			return name
		}
	}
	return ""
}

// asksBy are the annotations of pods by which those who put a container into them are told what it is to ask, by their
// own documents: GKE's Cloud Storage FUSE, Istio, Linkerd, Dapr, Vault's agent injector.
var asksBy = map[string]map[corev1.ResourceName]string{
	"gke-gcsfuse-sidecar": {corev1.ResourceCPU: "gke-gcsfuse/cpu-request", corev1.ResourceMemory: "gke-gcsfuse/memory-request", corev1.ResourceEphemeralStorage: "gke-gcsfuse/ephemeral-storage-request"},
	"istio-proxy":         {corev1.ResourceCPU: "sidecar.istio.io/proxyCPU", corev1.ResourceMemory: "sidecar.istio.io/proxyMemory"},
	"linkerd-proxy":       {corev1.ResourceCPU: "config.linkerd.io/proxy-cpu-request", corev1.ResourceMemory: "config.linkerd.io/proxy-memory-request"},
	"daprd":               {corev1.ResourceCPU: "dapr.io/sidecar-cpu-request", corev1.ResourceMemory: "dapr.io/sidecar-memory-request"},
	"vault-agent":         {corev1.ResourceCPU: "vault.hashicorp.com/agent-requests-cpu", corev1.ResourceMemory: "vault.hashicorp.com/agent-requests-mem"},
}

// lowerPutIn has a container that is put into the pods ask for less: by the annotation that says so, where it is known.
func (c lowering) lowerPutIn(name string, cuts map[string]corev1.ResourceList, cut func([]corev1.Container)) (edit.Change, bool) {
	annotations, texts := map[string]string{}, []string{}
	for _, r := range view.SortedNames(cuts[name]) {
		q := cuts[name][r]
		texts = append(texts, q.String()+" "+string(r))
		if key := asksBy[name][r]; key != "" {
			annotations[key] = q.String()
		}
	}
	title := fmt.Sprintf("have container %s, which is put into the pods of %s as they are made, ask for %s (less than asked)", name, c.WorkloadName(), strings.Join(texts, ", "))
	return c.Once(title, func(title string) edit.Change {
		ch := edit.Change{Kind: diagnosis.ChangeRequest, Cause: diagnosis.HostResourcesShort, Manual: true, Minutes: 1, Risk: diagnosis.MediumRisk, Title: title,
			Pod: func(p *corev1.Pod) { cut(p.Spec.Containers); cut(p.Spec.InitContainers) }}
		if len(cuts) > 1 || len(annotations) < len(texts) {
			ch.Pod, ch.Untestable = nil, "what it asks is set by who puts it in"
			ch.Commands = []string{"kubectl get mutatingwebhookconfigurations  # who puts it in: its settings, or an annotation of the pods, say how much it asks",
				fmt.Sprintf("kubectl -n %s get pod %s -o yaml", c.Pod.Namespace, c.Pod.Name)}
			return ch
		}
		ch.Commands = []string{c.AnnotatePods(annotations)}
		return ch
	}), true
}
