// Package v1alpha1 holds the API kinds of a fix that somebody decides on: the
// Remediation, whose spec is the plan and whose status is the journal of carrying it
// out, and the Approval, which a person creates as themselves. The CRDs and the
// copies are generated from here: make generate.
//
// +kubebuilder:object:generate=true
// +groupName=unpend.dev
// +versionName=v1alpha1
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds.
var GroupVersion = schema.GroupVersion{Group: "unpend.dev", Version: "v1alpha1"}

// The API resources of the kinds.
var (
	Remediations = GroupVersion.WithResource("remediations")
	Approvals    = GroupVersion.WithResource("approvals")
)

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Remediation{}, &RemediationList{}, &Approval{}, &ApprovalList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
