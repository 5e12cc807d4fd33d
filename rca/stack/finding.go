package stack

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Link is one of those between the board and allocatable, from the hardware up.
type Link int

// The links, in the order in which one needs the other.
const (
	Installed    Link = iota + 1 // somebody announces GPUs at all
	Discovery                    // node feature discovery labels the node
	Labels                       // the GPU Operator labels it for its operands
	Driver                       // the kernel's driver is loaded
	Runtime                      // the container runtime hands GPUs to containers
	PluginOnNode                 // the device plugin's DaemonSet has a pod on the node
	Plugin                       // that pod runs
	Registration                 // it has announced the GPUs to the kubelet
)

// State is what is the matter with a link.
type State string

// The states of a broken link.
const (
	Missing  State = "missing"
	KeptOff  State = "kept off"
	Starting State = "starting" // within its normal time
	Waiting  State = "waiting"
	Paused   State = "paused"
	Failed   State = "failed"
	Unseen   State = "not seen" // what would tell could not be read
)

// Finding is the first broken link of a node.
type Finding struct {
	Link      Link
	State     State
	Cause     diagnosis.CauseID
	Certainty diagnosis.Certainty
	Says      string // completes "N nodes: …"
	Evidence  []diagnosis.Evidence
	Mends     []Mend // best first
	Unready   bool   // its pod waits to be started by a kubelet that is not Ready
}

// Mend is one thing that mends a link.
type Mend struct {
	Kind     diagnosis.FixKind
	Title    string
	Until    string // what must have happened before the GPUs are there
	Minutes  int
	Risk     diagnosis.Risk
	Steps    []string
	Commands []string
	Victims  []*corev1.Pod // who leaves for it
	Stops    []*corev1.Pod // who is made again for it, beside them
	Reboots  bool          // the machine starts again for it: all of its pods stop
	// StopsUnknown: others may stop for it, and nobody can say who.
	StopsUnknown bool
	Unproven     string // why nobody can say that it helps; empty where it does
	// Offers is what the node offers of devices once it is done, where what is written tells it.
	Offers corev1.ResourceList
}

// maxWords is the length of a quotation in a sentence, in characters.
const maxWords = 160

// How long links normally take. The driver's is that of its startup probe (60 s and 120
// times 10 s; gpu-operator assets/state-driver); the others are images to be pulled and
// labels to be written, and are generous.
const (
	driverTime  = 21 * time.Minute
	labelTime   = 5 * time.Minute
	podTime     = 5 * time.Minute
	kubeletTime = 2 * time.Minute
)
