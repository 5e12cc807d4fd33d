package terms

import (
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// consumes are a kubelet's words for a container that used more of the disk than it asked for, and whose pod it evicted for
// that (pkg/kubelet/eviction/helpers.go, containerMessageFmt).
var consumes = regexp.MustCompile(`Container (\S+) was using (\S+), request is (\S+), has larger consumption of ephemeral-storage`)

// Overfull is that pods of the waiting one's own controller were evicted from a node for what they write: once the node has
// room again, the next one fills it again.
type Overfull struct {
	Pods      []*corev1.Pod
	Container string
	Used      resource.Quantity // by the first of them
	asked     string
}

// OverfullOn finds those; nil where a node has disk space, or others have filled it.
func OverfullOn(c view.Subject, n *view.Node) *Overfull {
	by := metav1.GetControllerOfNoCopy(c.Pod)
	if by == nil || c.Unborn || !UnderDiskPressure(n) {
		return nil
	}
	var out *Overfull
	for _, p := range c.Cluster.State.Pods {
		of := metav1.GetControllerOfNoCopy(p)
		if p.Spec.NodeName != n.Name || p.Status.Phase != corev1.PodFailed || p.Status.Reason != "Evicted" || of == nil || of.UID != by.UID || p.Namespace != c.Pod.Namespace {
			continue
		}
		words := consumes.FindStringSubmatch(p.Status.Message)
		if words == nil {
			continue
		}
		if out == nil {
			used, err := resource.ParseQuantity(words[2])
			if err != nil {
				continue
			}
			out = &Overfull{Container: words[1], Used: used, asked: words[3]}
		}
		out.Pods = append(out.Pods, p)
	}
	return out
}

// UnderDiskPressure says whether a node takes no pods for want of disk space.
func UnderDiskPressure(n *view.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeDiskPressure {
			return true
		}
	}
	return false
}

// Says tells it, behind what is said of the node.
func (o *Overfull) Says() string {
	whose := "its pod " + o.Pods[0].Name + " was"
	if len(o.Pods) > 1 {
		whose = fmt.Sprintf("%d pods of it were", len(o.Pods))
	}
	return fmt.Sprintf("%s evicted from it for what they write themselves: container %s was using %s of its disk, and asks for %s", whose, o.Container, o.Used.String(), o.asked)
}

// Evidence is what its kubelet said of each.
func (o *Overfull) Evidence() []diagnosis.Evidence {
	out := make([]diagnosis.Evidence, len(o.Pods))
	for i, p := range o.Pods {
		words := consumes.FindString(p.Status.Message)
		out[i] = diagnosis.Fact(view.PodRef(p), "Evicted: "+words, diagnosis.That("status.reason", "", diagnosis.Is, "Evicted"), diagnosis.That("status.message", "", diagnosis.Contains, words), diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName))
	}
	return out
}
