package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Approval is a person's word on a plan. It is created as that person, so that RBAC
// decides who may; an admission policy holds spec.approver and spec.groups to the
// caller and denies every change. Its name is the plan's hash, a second person's has
// "-2" behind it: a second click meets one that exists. A no to what has been approved
// already has "-no": it stops the plan, also under way.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=unpend
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.plan || self.metadata.name == self.spec.plan + '-2' || self.metadata.name == self.spec.plan + '-no' && self.spec.decision == 'Reject'",message="the name is the plan, a second person's with -2 behind it, and of a no to what was approved with -no"
// +kubebuilder:printcolumn:name="Decision",type=string,JSONPath=`.spec.decision`
// +kubebuilder:printcolumn:name="Approver",type=string,JSONPath=`.spec.approver`
// +kubebuilder:printcolumn:name="Via",type=string,JSONPath=`.spec.via`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Approval struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a decision does not change"
	Spec ApprovalSpec `json:"spec"`
}

// The ends of an approval's name, behind its plan's.
const (
	Second = "-2"  // of a second person's
	No     = "-no" // of a no to what has been approved
)

// PlanOf is the plan that an approval of this name is about.
func PlanOf(approval string) string {
	return strings.TrimSuffix(strings.TrimSuffix(approval, Second), No)
}

// ApprovalSpec is the decision.
type ApprovalSpec struct {
	// Plan is the hash of what is decided on.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	Plan string `json:"plan"`
	// Remediation is the uid of the object that was read.
	// +kubebuilder:validation:MinLength=1
	Remediation string `json:"remediation"`
	// Decision of the person.
	Decision Decision `json:"decision"`
	// Approver is the Kubernetes user who creates it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Approver string `json:"approver"`
	// Groups of the approver that the fix is carried out with.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Groups []string `json:"groups,omitempty"`
	// Via is where the decision was made: kubectl, slack, web, pagerduty.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Via string `json:"via,omitempty"`
	// Reason a person gave.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
}

// Decision is a yes or a no.
// +kubebuilder:validation:Enum=Approve;Reject
type Decision string

// The decisions.
const (
	Approve Decision = "Approve"
	Reject  Decision = "Reject"
)

// ApprovalList is a list of them.
//
// +kubebuilder:object:root=true
type ApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Approval `json:"items"`
}
