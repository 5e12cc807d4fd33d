package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/watcher/incident"
)

// Remediation is one plan and what became of it. Its name is the plan's hash: 64 hex
// of sha256 over the canonical JSON of spec.incident, spec.since and spec.actions.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=rem,categories=unpend
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[0-9a-f]{64}$')",message="the name is the plan: 64 hex"
// +kubebuilder:printcolumn:name="Incident",type=string,JSONPath=`.spec.incident`
// +kubebuilder:printcolumn:name="Fix",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodes[0]`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Remediation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a plan does not change: make another"
	Spec   RemediationSpec   `json:"spec"`
	Status RemediationStatus `json:"status,omitzero"`
}

// Schema is what plans and journals mean that this program writes, and the newest that it
// knows. It is raised when a program that knows the one before must leave them alone: a
// field that such a program may pass over, and keeps, is no reason.
const Schema = 1

// Written is the schema it was written by; 0 of one from before schemas were numbered,
// which says the same as 1.
func (r *Remediation) Written() int { return max(r.Spec.Schema, r.Status.Schema) }

// Newer says that a newer unpend has written it: it is left alone.
func (r *Remediation) Newer() bool { return r.Written() > Schema }

// RemediationSpec is the plan, as it was proved.
type RemediationSpec struct {
	// Schema of the plan.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Schema int `json:"schema,omitempty"`
	// Incident the plan is for.
	// +kubebuilder:validation:Pattern=`^gpu-[0-9a-f]{10}$`
	Incident string `json:"incident"`
	// Since when the incident waits: the same actions for another wait are another plan.
	// +optional
	Since metav1.Time `json:"since,omitzero"`
	// Workload that waits.
	Workload incident.Ref `json:"workload"`
	// Waiting are its pods that wait.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Waiting []Pod `json:"waiting,omitempty"`
	// Headline of the diagnosis.
	// +kubebuilder:validation:MaxLength=400
	Headline string `json:"headline"`
	// Cause that the plan removes.
	Cause diagnosis.CauseID `json:"cause"`
	// Fix is its number in the diagnosis.
	// +kubebuilder:validation:Minimum=1
	Fix int `json:"fix"`
	// Kind is the most disruptive of Kinds.
	Kind diagnosis.FixKind `json:"kind"`
	// Kinds are all that it takes, in order.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Kinds []diagnosis.FixKind `json:"kinds"`
	// Title says what is done.
	// +kubebuilder:validation:MaxLength=400
	Title string `json:"title"`
	// Nodes that are changed.
	// +kubebuilder:validation:MaxItems=100
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// Node that the pod was proved to fit afterwards.
	// +optional
	Node string `json:"node,omitempty"`
	// Priority of the pods that wait.
	Priority int32 `json:"priority"`
	// VictimPriority is the highest of the pods that stop.
	// +optional
	VictimPriority int32 `json:"victimPriority,omitempty"`
	// Requester is who recorded the plan. An admission policy holds it to the caller.
	// +kubebuilder:validation:MinLength=1
	Requester string `json:"requester"`
	// Expires is when it can no longer be begun.
	Expires metav1.Time `json:"expires"`
	// Carrier is who carries it out: the executor without it. One of a terminal is never
	// begun by the executor, and its requester writes the journal.
	// +optional
	Carrier Carrier `json:"carrier,omitempty"`
	// Actions are what is written, in order, each bound to its object by uid.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:XValidation:rule="self.all(a, a.target.name != '' && a.target.uid != '')",message="every target has a name and a uid"
	Actions []diagnosis.Action `json:"actions"`
}

// Carrier is who carries a plan out, where that is not the executor.
// +kubebuilder:validation:Enum=terminal
type Carrier string

// Terminal is the process of a person who has approved a plan where no executor leads.
const Terminal Carrier = "terminal"

// Pod is a pod and its uid.
type Pod struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	// Node is where it was proved to run; empty where that is not told pod by pod.
	Node string `json:"node,omitempty"`
}

// Phase is where a Remediation stands.
// +kubebuilder:validation:Enum=Pending;Queued;Running;Undoing;Succeeded;Failed;Stopped;Parked;Stale;Expired;Refused;Rejected;Superseded
type Phase string

// The phases.
const (
	Pending    Phase = "Pending"    // nobody has decided yet
	Queued     Phase = "Queued"     // approved; a guard-rail says wait
	Running    Phase = "Running"    // being carried out
	Undoing    Phase = "Undoing"    // something went wrong: what was begun is taken back
	Succeeded  Phase = "Succeeded"  // the pod runs, or what schedules none was done
	Failed     Phase = "Failed"     // what was begun is taken back, or message names what stays
	Stopped    Phase = "Stopped"    // a person said stop under way; what was begun is taken back, or message names what stays
	Parked     Phase = "Parked"     // could not be taken back: a node is left cordoned on purpose
	Stale      Phase = "Stale"      // the world had changed; nothing was written
	Expired    Phase = "Expired"    // nobody decided in time
	Refused    Phase = "Refused"    // a guard-rail, or the approver's rights, say no
	Rejected   Phase = "Rejected"   // a person said no
	Superseded Phase = "Superseded" // a newer plan for the same node took its place
)

// Phases are all of them, in the order of a plan's life.
func Phases() []Phase {
	return []Phase{Pending, Queued, Running, Undoing, Succeeded, Failed, Stopped, Parked, Stale, Expired, Refused, Rejected, Superseded}
}

// Told is the condition that says whether the end of a plan was handed to those who
// notify people. A plan that has not ended, and one of an executor without a bus, has none.
const Told = "Told"

// Ended says whether nothing more will happen.
func (p Phase) Ended() bool {
	switch p {
	case "", Pending, Queued, Running, Undoing:
		return false
	}
	return true
}

// Begun says whether writes may have been made that are not settled yet.
func (p Phase) Begun() bool { return p == Running || p == Undoing }

// RemediationStatus is the journal.
type RemediationStatus struct {
	// Schema of the journal. A program that does not know it writes nothing here.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Schema int `json:"schema,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Progress is "3/9": the step under way, of how many.
	// +optional
	Progress string `json:"progress,omitempty"`
	// Message is one sentence for a person.
	// +optional
	Message string `json:"message,omitempty"`
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ApprovedBy are those whose approvals it rests on.
	// +optional
	ApprovedBy []string `json:"approvedBy,omitempty"`
	// +optional
	Began *metav1.MicroTime `json:"began,omitempty"`
	// Renewed is when a terminal that waits has last shown that it still carries the plan out.
	// +optional
	Renewed *metav1.MicroTime `json:"renewed,omitempty"`
	// +optional
	Ended *metav1.MicroTime `json:"ended,omitempty"`
	// Failure is what made it turn back.
	// +optional
	Failure string `json:"failure,omitempty"`
	// EndsAs is the phase it ends in once the way back is gone.
	// +optional
	EndsAs Phase `json:"endsAs,omitempty"`
	// Parking names the step of the way back that failed: the node stays as it is.
	// +optional
	Parking StepID `json:"parking,omitempty"`
	// Proved are the targets as they were when the plan was proved again.
	// +optional
	Proved []Proved `json:"proved,omitempty"`
	// Present are the workload's pods that were made in the very second it began:
	// creation times are whole seconds.
	// +optional
	Present []types.UID `json:"present,omitempty"`
	// Journal has an entry for each step, written before it acts.
	// +optional
	Journal []Entry `json:"journal,omitempty"`
	// Evicted pods.
	// +optional
	Evicted int `json:"evicted,omitempty"`
	// Restarted are the pods that stopped in another way: their workload was made again or
	// rolled.
	// +optional
	Restarted []Pod `json:"restarted,omitempty"`
	// Before is what the plan is held to once it has ended.
	// +optional
	Before *Before `json:"before,omitempty"`
	// After is what came of it.
	// +optional
	After *After `json:"after,omitempty"`
	// Pod that runs now, namespace/name.
	// +optional
	Pod string `json:"pod,omitempty"`
	// AuditHead is the hash of the last line of the audit trail about it.
	// +optional
	AuditHead string `json:"auditHead,omitempty"`
}

// Before is who waited and who ran when a plan began.
type Before struct {
	// Waiting are the workload's pods that wait for a node.
	Waiting int `json:"waiting"`
	// Workloads that have a part in it: the one that waits, and those whose pods it stops.
	// +optional
	Workloads []incident.Ref `json:"workloads,omitempty"`
	// Announced is how many of their pods were said to wait afterwards, with those that wait
	// already and are none of the incident's; absent where that was not proved.
	// +optional
	Announced *int `json:"announced,omitempty"`
	// Running are pods that the plan does not stop, on the nodes that it touches and of its
	// workload.
	// +kubebuilder:validation:MaxItems=1000
	// +optional
	Running []Watched `json:"running,omitempty"`
}

// Watched is a pod that is to go on running, and what controls it.
type Watched struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
	// +optional
	OwnerKind string `json:"ownerKind,omitempty"`
	// +optional
	Owner string `json:"owner,omitempty"`
}

// After is what a plan that has ended is held to.
type After struct {
	// Waiting are the workload's pods that wait for a node.
	Waiting int `json:"waiting"`
	// AllWaiting are those and the ones of all workloads that have a part in it.
	AllWaiting int `json:"allWaiting"`
	// Stopped are pods that ran when it began, that it did not name, and that were stopped.
	// +optional
	Stopped []diagnosis.PodName `json:"stopped,omitempty"`
}

// Proved is what was read of a target when the plan was proved again.
type Proved struct {
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	// Node of a pod.
	// +optional
	Node string `json:"node,omitempty"`
}

// Entry is one step of the journal.
type Entry struct {
	// Step is its stable name, e.g. "0/cordon", "0/evict/ml/web-1", "undo/0/release".
	Step StepID `json:"step"`
	// Text for a person.
	Text string `json:"text"`
	// Began is when it was journaled, before it acted.
	Began metav1.MicroTime `json:"began"`
	// Ended is absent while it is under way.
	// +optional
	Ended *metav1.MicroTime `json:"ended,omitempty"`
	// Deadline after which it counts as failed.
	Deadline metav1.MicroTime `json:"deadline"`
	// Leader that journaled it, and the generation of its lease.
	// +optional
	Leader string `json:"leader,omitempty"`
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// Note is what the step has to remember.
	// +optional
	Note string `json:"note,omitempty"`
	// Grace is until when the step is tried that an executor took over past its deadline
	// from one that had ended.
	// +optional
	Grace *metav1.MicroTime `json:"grace,omitempty"`
	// Error it ended with.
	// +optional
	Error string `json:"error,omitempty"`
}

// RemediationList is a list of them.
//
// +kubebuilder:object:root=true
type RemediationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Remediation `json:"items"`
}
