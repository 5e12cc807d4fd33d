package causes

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/devices"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/gangs"
	"github.com/unpend/unpend/rca/growth"
	"github.com/unpend/unpend/rca/kubelet"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/terms"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher/incident"
)

// Case is one incident with all that a rule or a fix may look at.
type Case struct {
	*evict.Asker
	Incident incident.Incident
	Pod      *corev1.Pod      // the waiting pod that stands for the others
	Refusal  corev1.PodStatus // as the pod itself has it, also when the kubelet refused it
	Asks     []view.Ask
	Wants    corev1.ResourceList // all that the pod requests
	Verdict  whatif.Verdict
	Judged   []diagnosis.NodeBlockers // as the rules told the verdict
	// Claims is what the pod asks of DRA drivers; nil for nothing.
	Claims *devices.Claims
	// Gang is the pod's group, when that is scheduled whole and is not yet; nil else.
	Gang *gangs.Gang
	// Refused are the owners that lack pods of this incident. Unborn: none of its pods exists,
	// and Pod is what the next would be.
	Refused *admission.Refused
	Unborn  bool
	// Stuck are the pods of other workloads that wait in vain as its own does, and hold what it waits
	// for.
	Stuck  []*corev1.Pod
	looked *bool // what lookedAll says, once it was asked
	// held: it waits for GPUs that are there and held.
	held bool
	// Unstarted are the pods of it that have their node and are not begun there, as
	// incident.WithKubelet completes them; bound: Pod is one of them.
	Unstarted []*corev1.Pod
	bound     bool
	// Own are the causes that are the pod's own; Everywhere are those of them that keep
	// it from every node.
	Own        []PodRule
	Everywhere map[diagnosis.CauseID]bool
	// Labels, Company, Spread and volumes are what the pod demands of the place that it goes to.
	Labels  *terms.Labels
	Company *terms.Company
	Spread  *terms.Spread
	volumes *terms.Volumes
	// entitled are the words of findings that are not the usual case of their cause.
	entitled map[diagnosis.CauseID]string
	// Kubelet is the case as a kubelet that refused the pod shows it.
	Kubelet *kubelet.Case
	// Queue is the case as queues and other schedulers see it.
	Queue *queues.Case
	// grows is what autoscalers make of the pod, once asked for.
	grows *growth.Growth
	// meant are other pods of it that nodes are judged by, by node, and others the cases of these. alone are requirements
	// that are not those of all of them.
	meant  map[string]fellow
	others map[*corev1.Pod]*Case
	alone  map[string]bool
}

// entitle has a headline say a cause in these words.
func (c *Case) entitle(id diagnosis.CauseID, words string) {
	c.entitled[id] = words
}

// Node returns the view of a node of the case's cluster.
func (c *Case) Node(name string) *view.Node { return c.Cluster.Nodes[name] }

// askOf returns the GPU request named by an "Insufficient …" reason.
func (c *Case) askOf(resource string) (view.Ask, bool) {
	for _, a := range c.Asks {
		if string(a.Resource) == resource {
			return a, true
		}
	}
	return view.Ask{}, false
}

// Headline are the words that say a cause in a headline: those of the finding, else those
// of its usual case.
func (c *Case) Headline(id diagnosis.CauseID) string {
	if words := c.entitled[id]; words != "" {
		return words
	}
	return id.Words()
}
