package shelf

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
)

const (
	// keptWords are at most kept: the names of 5,000 nodes, and what stands in every object.
	keptWords = 16_384
	// longestWord is above the names of nodes and images, in bytes.
	longestWord = 128
)

// words keeps texts that stand in many objects, so that each is in memory once. Several
// goroutines may use it.
type words struct {
	mu    sync.Mutex
	known map[string]string
}

// once has texts that are equal be one.
func once[S ~string](w *words, texts ...*S) {
	for _, s := range texts {
		text := string(*s)
		if text == "" || len(text) > longestWord {
			continue
		}
		is, known := w.known[text]
		if !known {
			if w.known == nil || len(w.known) == keptWords {
				w.known = map[string]string{}
			}
			w.known[text], is = text, text
		}
		*s = S(is)
	}
}

// pod has a pod say with the words of others what it has in common with them. It is nobody
// else's yet.
func (w *words) pod(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	once(w, &p.Namespace, &p.GenerateName, &p.Spec.NodeName, &p.Spec.SchedulerName, &p.Spec.ServiceAccountName, &p.Spec.DeprecatedServiceAccount, &p.Spec.PriorityClassName, &p.Status.Reason)
	once(w, &p.Spec.RestartPolicy)
	once(w, &p.Spec.DNSPolicy)
	once(w, &p.Status.Phase)
	once(w, &p.Status.QOSClass)
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		once(w, &c.Type)
		once(w, &c.Status)
		once(w, &c.Reason, &c.Message)
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			once(w, &list[i].Name, &list[i].Image)
		}
	}
}

// report does the same for what was reported of a node.
func (w *words) report(r *nodeprobe.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	once(w, &r.Source)
	once(w, &r.DriverVersion)
	holder := func(h *nodeprobe.Holder) { once(w, &h.Namespace, &h.Container) }
	for i := range r.GPUs {
		g := &r.GPUs[i]
		once(w, &g.Product)
		for k := range g.Holders {
			holder(&g.Holders[k])
		}
		for k := range g.Instances {
			once(w, &g.Instances[k].Profile)
			if h := g.Instances[k].Holder; h != nil {
				holder(h)
			}
		}
	}
}
