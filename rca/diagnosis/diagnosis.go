package diagnosis

import (
	"encoding/json"
	"time"

	"github.com/unpend/unpend/knowledge"
	"github.com/unpend/unpend/watcher/incident"
)

// APIVersion and ListKind mark a list of diagnoses when it is printed.
const (
	APIVersion = "unpend.dev/v1alpha1"
	ListKind   = "DiagnosisList"
)

// List is what `unpend why -o json` prints.
type List struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Items      []Diagnosis `json:"items"`
}

// Diagnosis explains one incident, as a whole; its Summary is what travels (rca → remediate).
type Diagnosis struct {
	Incident  string            `json:"incident"`
	Alike     string            `json:"alike,omitempty"` // the incident whose causes these are: its fixes are not repeated here
	Workload  incident.Ref      `json:"workload"`
	Pods      WaitingPods       `json:"pods"`
	Requests  map[string]string `json:"requests"`         // of one pod
	Claims    []ClaimedDevices  `json:"claims,omitempty"` // of one pod: devices of drivers
	Headline  string            `json:"headline"`         // at most 80 characters
	Drawing   *Drawing          `json:"drawing,omitempty"`
	Causes    []Cause           `json:"causes"` // causes[0] is the root cause
	Nodes     []NodeBlockers    `json:"nodes"`  // every node of the cluster, by name
	Fixes     []Fix             `json:"fixes"`  // best first
	Knowledge []knowledge.Hit   `json:"knowledge"`
	Unread    []string          `json:"unread"` // what could not be read, and what that leaves open
}

// WaitingPods are the pods an incident is about.
type WaitingPods struct {
	Waiting int       `json:"waiting"`
	Names   []string  `json:"names"`
	Since   time.Time `json:"since"`
	// Priority is the highest of them; nil: it could not be told.
	Priority *int32 `json:"priority,omitempty"`
	// Placed: they have their nodes, and are not begun there.
	Placed bool `json:"placed,omitempty"`
}

// AtLeast says whether some of them may be of so high a priority: one that nobody can tell may
// be.
func (p WaitingPods) AtLeast(priority int32) bool {
	return p.Priority == nil || *p.Priority >= priority
}

// Drawing shows the one GPU that matters, before and after the best fix. Sinks
// only render it.
type Drawing struct {
	Node    string      `json:"node"`
	GPU     int         `json:"gpu"`
	Product string      `json:"product"`
	Slices  int         `json:"slices"` // memory slices of the GPU
	Before  []DrawnSlot `json:"before"`
	After   []DrawnSlot `json:"after,omitempty"`
	Note    string      `json:"note,omitempty"` // what the picture shows, one line
}

// DrawnSlot is an instance in a drawing. Start and Size are memory slices.
type DrawnSlot struct {
	Profile string `json:"profile"`
	Start   int    `json:"start"`
	Size    int    `json:"size"`
	Holder  string `json:"holder,omitempty"` // "ns/pod"; "?" when it could not be told
}

// Certainty says how well a cause is founded.
type Certainty string

// The certainties, strongest first.
const (
	Proven   Certainty = "proven"   // live objects and fresh geometry
	Likely   Certainty = "likely"   // one inferred source
	Possible Certainty = "possible" // texts, counts only, or stale data
)

// Cause is one root cause of the catalogue and where it holds.
type Cause struct {
	ID        CauseID    `json:"id"`
	Certainty Certainty  `json:"certainty"`
	Says      string     `json:"says"`
	Nodes     []string   `json:"nodes"`
	Evidence  []Evidence `json:"evidence"`
}

// Evidence is a fact and the object it was read from.
type Evidence struct {
	Ref  string `json:"ref"` // "Node/gpu-1", "Pod/ns/name"
	Fact string `json:"fact"`
	// Claims are what the fact is made from. They stay where it was found: what travels has
	// the sentences alone.
	Claims []Claim `json:"claims,omitempty" cut:"out"`
}

// NodeBlockers lists what keeps the pod from one node; empty when nothing does.
type NodeBlockers struct {
	Name     string    `json:"name"`
	Blockers []Blocker `json:"blockers"`
	// Says is what causes say of this node that they do not say of all of theirs.
	Says map[CauseID]string `json:"says,omitempty"`
}

// Blocker is one reason of one scheduler plugin, and its cause.
type Blocker struct {
	Plugin string  `json:"plugin"`
	Reason string  `json:"reason"`
	Cause  CauseID `json:"cause"`
}

// Verdict is what became of trying a fix on a copy of the cluster.
type Verdict string

// The verdicts.
const (
	Schedules Verdict = "schedules" // the scheduler's own code accepted it
	Waits     Verdict = "waits"     // right, but a named event must come first
	Refuted   Verdict = "refuted"   // tried and rejected
	Unproven  Verdict = "unproven"  // cannot be tested; why says why
)

// Mechanism says who re-makes GPU instances; it decides who must leave.
type Mechanism string

// The mechanisms.
const (
	MIGManager Mechanism = "mig-manager"
	DRADynamic Mechanism = "dra-dynamic"
	None       Mechanism = "none"
)

// Risk is how much a fix puts at stake.
type Risk string

// The risks, least first.
const (
	NoRisk     Risk = "none"
	LowRisk    Risk = "low"
	MediumRisk Risk = "medium"
	HighRisk   Risk = "high"
)

// With is the greater of two risks; one that is not known is the greatest.
func (r Risk) With(other Risk) Risk {
	for _, most := range []Risk{NoRisk, LowRisk, MediumRisk} {
		if r == most {
			return other
		}
		if other == most {
			return r
		}
	}
	return HighRisk
}

// Victims says what became, on the copy, of the pods that a fix evicts; empty where it
// evicts none.
type Victims string

// What may become of them.
const (
	VictimsLand Victims = "land" // each was placed again
	VictimsWait Victims = "wait" // some will be Pending
	VictimsGone Victims = "gone" // some have no controller that makes them again
)

// Fix is something that can be done about an incident.
type Fix struct {
	ID                int       `json:"id"`
	Kind              FixKind   `json:"kind"`
	Kinds             []FixKind `json:"kinds"`
	Title             string    `json:"title"`
	Automatic         bool      `json:"automatic"`
	Class             Class     `json:"class"`
	Held              string    `json:"held,omitempty"` // why guard-rails keep it from being begun now
	Cost              Cost      `json:"cost"`
	Effect            *Effect   `json:"effect"`              // only of a fix that schedules
	Conflicts         []string  `json:"conflicts,omitempty"` // fixes of other incidents that want the same room: gpu-11aa22bb33#1
	Record            *Record   `json:"record,omitempty"`    // how its kind turned out here; none where it was never carried out
	Risk              Risk      `json:"risk"`
	Mechanism         Mechanism `json:"mechanism"`
	HardwareEvictions *int      `json:"hardwareEvictions,omitempty"`
	Proof             Proof     `json:"proof"`
	Steps             []string  `json:"steps"`
	Commands          []string  `json:"commands"`
	Actions           []Action  `json:"actions,omitempty"` // what Plan is the hash of, with the incident and since when it waits
	Plan              string    `json:"plan"`              // 64 hex
}

// Class says how much a fix that was tried helps, the best first; fixes are in that order.
type Class string

// The classes.
const (
	StopsNobody  Class = "A" // all of the incident runs as it asked, or a node is on its way, and nobody is stopped
	HarmsNobody  Class = "B" // nobody waits for it afterwards
	HarmsLess    Class = "C" // who then waits matters less, or is fewer, than who runs
	WaitsForMore Class = "D" // something else has to happen first
	MusicalChair Class = "E" // as many wait afterwards, as important
	NotProved    Class = "F" // it cannot be tried, or a person does it
)

// Helps says of a fix that it brings more than it takes, by a proof.
func (c Class) Helps() bool { return c <= HarmsLess }

// Cost is what a fix takes.
type Cost struct {
	Evictions []PodName `json:"evictions"`
	// Alternates may be taken in place of some of Evictions, as many as are named there: to the
	// scheduler they are the same, and nobody can say which it takes.
	Alternates []PodName `json:"alternates,omitempty" cut:"out"`
	// Restarts are the pods that stop in any other way: their workload is made again or
	// rolled, or a person drains their node.
	Restarts []PodName `json:"restarts"`
	// RestartsKnown is false where others may stop as well, and nobody can say who.
	RestartsKnown *bool    `json:"restartsKnown,omitempty"`
	Nodes         []string `json:"nodes"`
	Minutes       int      `json:"minutes"`
}

// Effect is what a fix brings, for the whole incident and for everybody it stops: proved
// pod after pod by the scheduler's code.
type Effect struct {
	// Runs of Of pods that are wanted and do not run, those not created yet included, run
	// afterwards. A gang counts whole or not at all.
	Runs int `json:"runs"`
	Of   int `json:"of"`
	// WaitingBefore and WaitingAfter count those and everybody who is stopped.
	WaitingBefore int `json:"waitingBefore"`
	WaitingAfter  int `json:"waitingAfter"`
	// ThenWait are the pods that are stopped and find no place again.
	ThenWait []PodName `json:"thenWait"`
}

// PodName names a pod.
//
// +kubebuilder:object:generate=true
type PodName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Proof says how a fix was tried and what came of it.
type Proof struct {
	Verdict Verdict `json:"verdict"`
	Node    string  `json:"node,omitempty"`
	GPU     *int    `json:"gpu,omitempty"`
	Start   *int    `json:"start,omitempty"` // memory slice; absent where the mechanism chooses
	Victims Victims `json:"victims,omitempty"`
	// Places are the nodes of the incident's pods, by name, where there are several and room
	// is made for them.
	Places map[string]string `json:"places,omitempty"`
	Why    string            `json:"why"`
}

// Target is an object an action writes.
//
// +kubebuilder:object:generate=true
type Target struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// RemadeBy is the key, among what the eviction of a device plugin's pod relies on, of the
// DaemonSet that makes it again: the eviction is for that.
const RemadeBy = "remadeBy"

// Action is one change a fix makes, bound to objects by uid.
//
// +kubebuilder:object:generate=true
type Action struct {
	Verb   string `json:"verb"`
	Target Target `json:"target"`
	// Patch is a strategic merge patch.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Patch    json.RawMessage `json:"patch,omitempty"`
	Relayout *Relayout       `json:"relayout,omitempty"`
	// Stops are the pods that stop because the target is made again or rolled, by uid: as
	// many as were shown, and no others.
	Stops []Target `json:"stops,omitempty"`
	// Note is what people are told about it where it was done: of a cordon, the text of
	// the hardware ticket.
	Note string `json:"note,omitempty"`
	// Relies are the facts about the target the proof rests on; when one has
	// changed the plan is stale.
	Relies map[string]string `json:"relies,omitempty"`
}

// Relayout gives a node another MIG layout through MIG manager.
//
// +kubebuilder:object:generate=true
type Relayout struct {
	Config string `json:"config"` // the value for nvidia.com/mig.config
	// First, when set, is asked for before Config, where the label is Config already: MIG
	// manager acts on a change of the label. It is the entry that the GPUs have, so that
	// nothing is re-made for it.
	First string `json:"first,omitempty"`
	// Entry, when set, is the mig-parted entry that must first be written under
	// Config into ConfigMap.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Entry     json.RawMessage `json:"entry,omitempty"`
	ConfigMap *Target         `json:"configMap,omitempty"`
	// Layouts wanted afterwards: GPU index → profile → count.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Layouts map[int]map[string]int `json:"layouts"`
	// GPUs that are re-made: nobody may hold them meanwhile. None where the GPUs have
	// the layouts, and the label alone is wrong.
	GPUs []int `json:"gpus"`
	// Victims are evicted before the label is set.
	Victims []Target `json:"victims,omitempty"`
}

// Shortage is the cause for which the node has too little of a resource; empty where
// NodeResourcesFit refuses nothing.
func (v NodeBlockers) Shortage() CauseID {
	for _, b := range v.Blockers {
		if b.Plugin == "NodeResourcesFit" {
			return b.Cause
		}
	}
	return ""
}
