package kubelet

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Stop is what keeps pods from beginning on the nodes that they have, but for devices of claims that
// are not prepared, and what a person does about it.
type Stop struct {
	Hindrance
	Cause     diagnosis.CauseID
	Kind      diagnosis.FixKind
	Certainty diagnosis.Certainty
	Words     string        // in a headline
	Drained   []*corev1.Pod // who stops for it
}

// stopped is a pod with the words in which its kubelet says what stops it.
type stopped struct {
	w            *view.Cluster
	pod          *corev1.Pod
	reason, says string
}

// StopOf tells of the first of the pods that claims for devices do not stop; nil where there is none.
func StopOf(w *view.Cluster, unstarted []*corev1.Pod) *Stop {
	pods := slices.DeleteFunc(slices.Clone(unstarted), func(p *corev1.Pod) bool { return stoppedBy(w, p).reason == incident.FailedPrepare })
	if len(pods) == 0 {
		return nil
	}
	first := stoppedBy(w, pods[0])
	var s *Stop
	switch first.reason {
	case incident.FailedMount, incident.FailedAttach:
		s = first.volume()
	case incident.FailedSandbox:
		s = first.sandbox()
	case incident.Untaken:
		s = first.untaken()
	default:
		s = first.container()
	}
	for _, p := range pods {
		if of := stoppedBy(w, p); of.reason == first.reason {
			s.Evidence = append(of.evidence(), s.Evidence...)
		}
	}
	return s
}

func stoppedBy(w *view.Cluster, p *corev1.Pod) stopped {
	reason, says := incident.Hindrance(p)
	says = strings.TrimPrefix(strings.Join(strings.Fields(says), " "), "(combined from similar events): ")
	return stopped{w, p, reason, says}
}

// Told is the stop as a cause tells it.
func (s *Stop) Told() *view.Finding { return view.Found(s.Certainty, s.Says, s.Evidence...) }

// evidence is what every such pod shows: its node, and what is said of it.
func (s stopped) evidence() []diagnosis.Evidence {
	at := view.PodRef(s.pod)
	out := []diagnosis.Evidence{diagnosis.Fact(at, "is bound to "+s.pod.Spec.NodeName+" and "+phase(s.pod),
		diagnosis.That("spec.nodeName", "", diagnosis.Is, s.pod.Spec.NodeName), diagnosis.That("status.phase", "", diagnosis.Is, string(s.pod.Status.Phase)))}
	if c := incident.FailingContainer(s.pod.Status); c != nil && !incident.Hinders(s.reason) {
		return append(out, diagnosis.Fact(at, c.Name+": "+s.reason+": "+s.says, diagnosis.That("status", "", diagnosis.Contains, s.reason), diagnosis.That("status", "", diagnosis.Contains, c.State.Waiting.Message)))
	}
	if s.reason == incident.Untaken {
		return append(out, diagnosis.Fact(at, "has no start time: its kubelet has not begun with it", diagnosis.That("status.startTime", "", diagnosis.Absent, "")))
	}
	return append(out, diagnosis.Fact(at, s.reason+": "+s.says, diagnosis.Says(s.says)))
}

// stop begins what is told: which part fails on which node, and the words.
func (s stopped) stop(cause diagnosis.CauseID, kind diagnosis.FixKind, says string) *Stop {
	return &Stop{Cause: cause, Kind: kind, Certainty: diagnosis.Proven, Hindrance: Hindrance{Says: says + "; it said: " + view.Told(s.quote(), 200), Risk: diagnosis.NoRisk}}
}

// quote is the end of a chain of errors, where it says what the matter was.
func (s stopped) quote() string {
	says := s.says
	for _, prefix := range []string{"Failed to create pod sandbox: ", "rpc error: code = Unknown desc = ", "failed to create containerd task: ", "failed to create shim task: "} {
		says = strings.TrimPrefix(says, prefix)
	}
	return says
}

// describe shows what is said of the pod.
func (s stopped) describe() string {
	return "kubectl -n " + s.pod.Namespace + " describe pod " + s.pod.Name
}
