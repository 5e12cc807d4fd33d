package kubelet

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/homes"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// hookItself is where NVIDIA's hook runs, has found the GPUs, and cannot give them to a container (NVIDIA/libnvidia-container): the
// runtime is configured.
var hookItself = regexp.MustCompile(`nvidia-container-cli: (mount|ldcache|container) error`)

// kind is the label of what kind a machine is.
const kind = corev1.LabelInstanceTypeStable

// hook: to configure a runtime that calls its hook is no cure. Where a pod of the same owner runs on another machine of the same
// kind, that has what this one lacks: the image of that one is gone back to, where the two differ in it.
func (s stopped) hook() *Stop {
	node := s.pod.Spec.NodeName
	says, title := "NVIDIA's container runtime is configured on "+node+", and its hook fails", "see why the hook of NVIDIA's container runtime fails on "+node
	unproven, machine := "what NVIDIA's hook finds on the machine is in no object", homes.Hook
	var evidence []diagnosis.Evidence
	var drained []*corev1.Pod
	if n, as := s.w.Nodes[node], s.runsOn(); n != nil && as != nil {
		like := s.w.Nodes[as.Spec.NodeName]
		with := ""
		evidence = append(evidence, diagnosis.Fact(view.PodRef(as), "runs on "+like.Name, diagnosis.That("spec.nodeName", "", diagnosis.Is, like.Name), diagnosis.That("status.phase", "", diagnosis.Is, string(corev1.PodRunning))))
		for _, of := range []*view.Node{n, like} {
			evidence = append(evidence, diagnosis.Fact(of.Ref(), "is a "+of.Labels[kind], of.Labelled(kind)...))
		}
		title = fmt.Sprintf("see what the hook of NVIDIA's container runtime finds on %s that it does not on %s", node, like.Name)
		if was, facts := imagesOf(s.w, n, like); was != "" {
			with = " with another image (" + was + ")"
			evidence = append(evidence, facts...)
			title = fmt.Sprintf("give %s the image of %s, on which it works (%s): have it made again with that", node, like.Name, was)
			unproven, machine = "which of what differs between the two images the hook fails at is in no object", func(n *view.Node) []string { return homes.Again(s.w, n, like) }
			drained = slices.DeleteFunc(view.Drained(n), func(p *corev1.Pod) bool {
				return p.Status.Phase == corev1.PodPending || incident.FailingContainer(p.Status) != nil
			})
		}
		says += fmt.Sprintf("; on %s, a machine of the same kind%s, another pod of its owner runs", like.Name, with)
	}
	stop := s.stop(diagnosis.RuntimeNotConfigured, diagnosis.RepairDeviceStack, says)
	stop.Title, stop.Words, stop.Evidence, stop.Drained = title, "NVIDIA's runtime fails", evidence, drained
	stop.mended(s, machine, unproven)
	return stop
}

// runsOn is a pod of the same owner that runs with its GPUs on another machine of the same kind; nil for none.
func (s stopped) runsOn() *corev1.Pod {
	by, n := metav1.GetControllerOfNoCopy(s.pod), s.w.Nodes[s.pod.Spec.NodeName]
	if by == nil || n == nil || n.Labels[kind] == "" {
		return nil
	}
	for _, p := range s.w.State.Pods {
		like := s.w.Nodes[p.Spec.NodeName]
		if like == nil || like == n || !metav1.IsControlledBy(p, &metav1.ObjectMeta{UID: by.UID}) || p.Status.Phase != corev1.PodRunning || !parts.Ready(p) {
			continue
		}
		if like.Labels[kind] == n.Labels[kind] {
			return p
		}
	}
	return nil
}

// imagesOf tells in what the images of two machines differ, as they say or who made them does: that of the second, and of both what
// shows it. Empty where nothing tells them apart.
func imagesOf(w *view.Cluster, n, like *view.Node) (was string, facts []diagnosis.Evidence) {
	fact := func(ref, field, value string) {
		facts = append(facts, diagnosis.Fact(ref, field+" is "+value, diagnosis.That(field, "", diagnosis.Is, value)))
	}
	mine, theirs := w.Outlook().ClaimOf(n.Name), w.Outlook().ClaimOf(like.Name)
	if mine != nil && theirs != nil && mine.Image != theirs.Image && mine.Image != "" && theirs.Image != "" {
		fact("NodeClaim/"+mine.Name, "status.imageID", mine.Image)
		fact("NodeClaim/"+theirs.Name, "status.imageID", theirs.Image)
		return theirs.Image, facts
	}
	for _, by := range []struct{ field, mine, theirs string }{
		{"status.nodeInfo.osImage", n.Status.NodeInfo.OSImage, like.Status.NodeInfo.OSImage},
		{"status.nodeInfo.kernelVersion", n.Status.NodeInfo.KernelVersion, like.Status.NodeInfo.KernelVersion},
	} {
		if by.mine != by.theirs && by.mine != "" && by.theirs != "" {
			fact(n.Ref(), by.field, by.mine)
			fact(like.Ref(), by.field, by.theirs)
			return by.theirs, facts
		}
	}
	return "", nil
}
