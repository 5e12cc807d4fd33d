package terms

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// NotReady finds a passing taint of the node, that of a cordon left out.
func NotReady(c view.Subject, n *view.Node) *view.Finding {
	s := ShutFor(c, n)
	if s == nil {
		return nil
	}
	evidence := []diagnosis.Evidence{diagnosis.Fact(n.Ref(), "taint "+s.taint.ToString(), untolerated(c, n, s.taint)...)}
	if words := readyWords(n); words != "" {
		evidence = append(evidence, diagnosis.Fact(n.Ref(), "is not Ready: "+view.Quotable(words, 240), diagnosis.That("status.conditions[type=Ready].message", "", diagnosis.Is, words)))
	}
	if !s.Overdue.IsZero() {
		evidence = append(evidence, diagnosis.Fact(n.Ref(), "Ready since "+s.Overdue.UTC().Format("2006-01-02 15:04:05 MST"), view.Since("Ready", s.Overdue)))
	}
	if s.By != nil {
		misses := diagnosis.That("spec.template.spec.tolerations", "", diagnosis.ToleratesNot, s.misses.ToString())
		evidence = append(evidence, diagnosis.Fact(s.Ref(), "its pod takes that taint off "+n.Name+", and does not tolerate "+s.Misses(), misses, n.Tainted(s.misses)))
	}
	return view.Found(diagnosis.Proven, s.says, evidence...)
}

// Shut is why a node takes no pods for now, and what has to happen first.
type Shut struct {
	says  string
	Until string // what opens it, after the node's name
	taint corev1.Taint
	// Down: its kubelet says that its container runtime is, which nobody mends from outside.
	Down bool
	// Networkless: it says that its network plugin is not ready.
	Networkless bool
	// Unready is since when it is not Ready; zero where it does not say.
	Unready time.Time
	// network: the node is not ready for want of one.
	network bool
	// Overdue is since when a node is Ready on which a startup taint stands for longer than that takes; zero where it does not.
	Overdue time.Time
	// By is the DaemonSet whose pod would open the node, and is kept from it; nil: nothing is
	// known to keep it.
	By     *appsv1.DaemonSet
	misses corev1.Taint
}

// Ref names the DaemonSet.
func (s *Shut) Ref() string { return "DaemonSet/" + s.By.Namespace + "/" + s.By.Name }

// Misses is the taint that the DaemonSet does not tolerate.
func (s *Shut) Misses() string { return s.misses.ToString() }

// states are the taints that a node may have while it is Ready: what each says, and what ends
// it (well_known_taints.go, and node_lifecycle_controller.go in Kubernetes 1.37).
var states = map[string][2]string{
	corev1.TaintNodeDiskPressure:       {"under disk pressure", "has disk space again"},
	corev1.TaintNodeMemoryPressure:     {"under memory pressure", "has memory again"},
	corev1.TaintNodePIDPressure:        {"short of process ids", "has process ids again"},
	corev1.TaintNodeNetworkUnavailable: {"without a network", "has its network"},
	corev1.TaintNodeOutOfService:       {"taken out of service", "is in service again"},
}

// openers are those who take a startup taint off, by the taint's key: the DaemonSet that does so of the node its pod is on,
// as its chart names it; or parts of the names of pods, wherever they run. Every cloud's own controller manager has that
// in its name, and Azure's has a second one on each node (cloud-provider-azure, cloud-node-manager).
var openers = map[string]struct {
	who       string
	daemonSet string
	anywhere  []string
}{
	"karpenter.sh/unregistered":                      {who: "Karpenter"},
	"node.cilium.io/agent-not-ready":                 {who: "Cilium's agent there, or its operator,", daemonSet: "cilium"},
	"ebs.csi.aws.com/agent-not-ready":                {who: "the EBS CSI driver's pod there", daemonSet: "ebs-csi-node"},
	"node.cloudprovider.kubernetes.io/uninitialized": {who: "the cloud's controller manager", anywhere: []string{"cloud-controller-manager", "cloud-node-manager", "vsphere-cpi"}},
	"node.cloudprovider.kubernetes.io/shutdown":      {who: "the cloud's controller manager", anywhere: []string{"cloud-controller-manager", "cloud-node-manager", "vsphere-cpi"}},
}

// opens is how long those who open a node may take once it is Ready; Karpenter gives a machine up after that.
const opens = 15 * time.Minute

// Opener names who takes the startup taint off.
func (s *Shut) Opener() string { return openers[s.taint.Key].who }

// TaintText is that which is to be taken off, as kubectl writes it.
func (s *Shut) TaintText() string { return s.taint.ToString() }

// Openers are the pods that would take the taint off the node; none: nobody who would is seen, which says nothing of
// clouds that run theirs elsewhere.
func (s *Shut) Openers(c view.Subject, n *view.Node) []*corev1.Pod {
	of := openers[s.taint.Key]
	var out []*corev1.Pod
	if s.network = awaitsNetwork(n, s.taint); s.network {
		return networkers(n)
	}
	for _, p := range c.Cluster.State.Pods {
		by := metav1.GetControllerOfNoCopy(p)
		onNode := of.daemonSet != "" && p.Spec.NodeName == n.Name && by != nil && by.Kind == "DaemonSet" && by.Name == of.daemonSet
		named := slices.ContainsFunc(of.anywhere, func(part string) bool { return strings.Contains(p.Name, part) })
		if (onNode || named) && !view.Ended(p) {
			out = append(out, p)
		}
	}
	return out
}

// networks are DaemonSets without whose pod a node has no network, as their makers name them; some
// distributions put their own name in front.
var networks = []string{"antrea-agent", "aws-node", "azure-cns", "calico-node", "canal", "cilium", "kindnet", "kube-flannel", "kube-flannel-ds", "kube-router", "ovnkube-node", "weave-net"}

// awaitsNetwork says whether a node's kubelet does not call it Ready because it has no network yet.
func awaitsNetwork(n *view.Node, t corev1.Taint) bool {
	return t.Key == corev1.TaintNodeNotReady && strings.Contains(readyWords(n), "NetworkPluginNotReady")
}

// runtimeDown is a kubelet's word for a container runtime that does not answer (pkg/kubelet/runtime.go).
const runtimeDown = "container runtime is down"

// readyWords are a kubelet's own about a node that it does not call Ready; empty for one that it does.
func readyWords(n *view.Node) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// unreadySince is since when a node is not Ready; zero where it is, or does not say.
func unreadySince(n *view.Node) time.Time {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// networkers are the pods on a node that give it its network.
func networkers(n *view.Node) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(n.Pods), func(p *corev1.Pod) bool {
		by := metav1.GetControllerOfNoCopy(p)
		return view.Ended(p) || by == nil || by.Kind != "DaemonSet" || !slices.ContainsFunc(networks, func(name string) bool {
			return by.Name == name || strings.HasSuffix(by.Name, "-"+name)
		})
	})
}

// Opening is what those do who open the node, of one of them; told once they are asked for.
func (s *Shut) Opening() string {
	if s.network {
		return "gives it its network"
	}
	return "takes taint " + s.taint.Key + " off"
}

// Taint is that which is to be taken off.
func (s *Shut) Taint() string { return s.taint.Key }

// ShutFor says why a node takes no pods for now; nil where nothing passing keeps the pod off.
// That the node is not ready comes before all else.
func ShutFor(c view.Subject, n *view.Node) *Shut {
	var found *Shut
	for _, t := range Untolerated(c.Pod, n.Node) {
		if !Passing(t) {
			continue
		}
		state, known := states[t.Key]
		switch {
		case known && found == nil:
			found = &Shut{says: state[0], Until: state[1], taint: t}
		case !known && !slices.Contains(startupTaints, t.Key):
			found = &Shut{says: "not ready", Until: "is Ready again", taint: t}
			found.Unready = unreadySince(n)
			switch {
			case t.Key == corev1.TaintNodeNotReady && strings.Contains(readyWords(n), runtimeDown):
				found.says, found.Down = "not ready: its "+runtimeDown, true
			case awaitsNetwork(n, t):
				found.says, found.Networkless = "not ready: its network plugin is not", true
			}
			return found
		case !known && found == nil:
			found = unopened(c, n, t)
		}
	}
	return found
}

// unopened is a node on which a startup taint stands.
func unopened(c view.Subject, n *view.Node, t corev1.Taint) *Shut {
	s := &Shut{says: "not opened yet: startup taint " + t.Key + " stands on it", Until: "has lost taint " + t.Key, taint: t}
	for _, d := range c.Cluster.State.DaemonSets {
		if d.Name != openers[t.Key].daemonSet {
			continue
		}
		for _, kept := range Untolerated(&corev1.Pod{Spec: d.Spec.Template.Spec}, n.Node) {
			if strings.HasPrefix(kept.Key, "node.kubernetes.io/") { // the DaemonSet controller has its pods tolerate those
				continue
			}
			s.By, s.misses = d, kept
			s.says += ", for DaemonSet " + d.Namespace + "/" + d.Name + ", which takes it off, does not tolerate " + kept.ToString()
			return s
		}
	}
	since := n.ReadySince()
	if t.TimeAdded != nil && t.TimeAdded.After(since) {
		since = t.TimeAdded.Time
	}
	if !since.IsZero() && c.Cluster.State.Now.Sub(since) > opens {
		s.says, s.Overdue = "not opened: startup taint "+t.Key+" stands on it, long after it was Ready", n.ReadySince()
	}
	return s
}
