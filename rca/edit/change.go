package edit

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/evict"
	"github.com/unpend/unpend/rca/relayout"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// Change is one thing that could be done about one cause on one node. Several
// make a fix.
type Change struct {
	Kind    diagnosis.FixKind
	Cause   diagnosis.CauseID
	Victims []*corev1.Pod
	// Or may leave in place of some of the Victims: nobody can say which of them will.
	Or   []*corev1.Pod
	Cost *evict.Cost // of the victims, each named once; nil: not known
	// Pod and Node edit copies: what the cluster would hold afterwards.
	Pod  func(*corev1.Pod)
	Node func(*corev1.Node)
	// On is the node that Node edits, where a fix changes several; nil: the fix's own.
	On *view.Node

	// Hard is what quotas of the pod's namespace would allow instead, by name.
	Hard map[string]corev1.ResourceList

	// Detail fills in steps, commands, actions and hardware. Thousands of changes
	// are weighed for each that is shown, so it is asked for those alone.
	Detail func(*Change)

	// Below: who stops is of lower priority by the word of a queue that both are in, whatever the pods' own.
	Below bool
	// Settles: it takes other hardware than the pod asks for by name, though there is some of that.
	Settles bool
	// Adds: it only writes down what was left out, and takes nothing of what was asked.
	Adds bool
	// With is what is done after it, for what it would be no use without.
	With []Change
	// NeedlessOn says of a node that it brings a pod there nothing; nil: of none.
	NeedlessOn func(*view.Node) bool
	// Instead is what takes its place beside changes of the pod that leave it nothing to do; nil: nothing does.
	Instead func(*corev1.Pod) *Change
	// Not is a node on which the pod would be refused again: to be placed there is no proof.
	Not string

	// Less is how many devices of those asked the pod does without, or how many slices (of another board's profile: gigabytes),
	// or by how many pods its workload is less evenly spread.
	Less int64
	// Cut is how much less CPU, memory or disk is asked, in thousandths of what was; Halves: less than half of the memory or
	// disk, where less CPU only makes it slower.
	Cut    int64
	Halves bool

	Title    string
	Minutes  int
	Risk     diagnosis.Risk
	Steps    []string
	Commands []string
	Actions  []diagnosis.Action
	Manual   bool
	Relayout *relayout.Way
	Hardware *int
	// Untestable says why no copy can show what it brings.
	Untestable string
	// Rolling is how the workload replaces its pods for it; nil where it does not.
	Rolling *Rolling
	// Drained are the pods that a person stops for it, by hand.
	Drained []*corev1.Pod
	// StopsUnknown: others may stop for it, and nobody can say who.
	StopsUnknown bool
	// Claims replace those of the same name.
	Claims []*resourcev1.ResourceClaim
	// template is what is changed in the workload's pod spec; live: its pods may
	// take it without being recreated.
	template map[string]any
	live     bool
	// Until names what must happen first, for a fix that only waits.
	Until string
}

// Apply makes the change on a fork and returns the waiting pod as it would be.
func (ch Change) Apply(s *whatif.Snapshot, pod *corev1.Pod) (*corev1.Pod, error) {
	for _, claim := range ch.Claims {
		if err := s.SetClaim(claim); err != nil {
			return nil, err
		}
	}
	for _, v := range ch.Victims {
		s.DeletePod(v.Namespace, v.Name)
	}
	if ch.Pod != nil {
		pod = pod.DeepCopy()
		ch.Pod(pod)
	}
	return pod, nil
}

// AsksLess says how much less the pod asks, where it asks this in place of what it wants.
func (ch *Change) AsksLess(wants, asks corev1.ResourceList) {
	for name, q := range asks {
		was := wants[name]
		if was.MilliValue() <= 0 {
			continue
		}
		cut := 1000 - int64(1000*float64(q.MilliValue())/float64(was.MilliValue()))
		ch.Cut, ch.Halves = max(ch.Cut, cut), ch.Halves || cut > 500 && name != corev1.ResourceCPU
	}
}
