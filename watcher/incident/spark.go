package incident

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// How the Spark operator names the pods of an application (spark-operator pkg/common).
const (
	sparkApp    = "sparkoperator.k8s.io/app-name"
	sparkRole   = "spark-role"
	sparkDriver = "driver"
)

// sparkUnmade are the states of a SparkApplication whose driver is to be made, and is not: it could not be submitted, or is
// to be submitted again (spark-operator api/v1beta2/sparkapplication_types.go).
var sparkUnmade = map[string]bool{"SUBMISSION_FAILED": true, "PENDING_RERUN": true}

type sparkSpec struct {
	Driver struct {
		Cores        *int32              `json:"cores,omitempty"`
		CoreRequest  string              `json:"coreRequest,omitempty"`
		Memory       string              `json:"memory,omitempty"`
		NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
		Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
		GPU          *struct {
			Name     string `json:"name"`
			Quantity int64  `json:"quantity"`
		} `json:"gpu,omitempty"`
	} `json:"driver"`
}

type sparkStatus struct {
	Submitted  metav1.Time `json:"lastSubmissionAttemptTime"`
	Terminated metav1.Time `json:"terminationTime"`
	State      struct {
		State string `json:"state"`
		Error string `json:"errorMessage,omitempty"`
	} `json:"applicationState"`
}

// ofSparkApplication reads what the driver of an application would be: its executors the driver makes itself.
func ofSparkApplication(o *unstructured.Unstructured, h *Held) {
	h.owner = &metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: h.Name, UID: h.UID, Controller: new(true)}
	var spec sparkSpec
	var status sparkStatus
	if !nestedInto(o, "spec", &spec) || !nestedInto(o, "status", &status) {
		return
	}
	h.makes, h.over = true, status.State.State == "COMPLETED" || status.State.State == "FAILED"
	if !sparkUnmade[status.State.State] {
		return
	}
	since := status.Submitted.Time
	if status.Terminated.After(since) {
		since = status.Terminated.Time
	}
	if since.IsZero() {
		since = h.CreationTimestamp.Time
	}
	h.lacks = &setback{since: since, says: status.State.Error}
	h.sets = []podSet{{Name: sparkDriver, Count: 1, Template: corev1.PodTemplateSpec{Spec: spec.ofDriver()}, Marks: map[string]string{sparkApp: h.Name, sparkRole: sparkDriver}, At: "spec." + sparkDriver, Sole: true}}
}

// ofDriver is the driver's pod as far as what it asks for goes. Memory is the JVM's own, in its units; what it is given
// beside that is left out.
func (s sparkSpec) ofDriver() corev1.PodSpec {
	asks, limits := corev1.ResourceList{}, corev1.ResourceList{}
	d := s.Driver
	if cpu, err := resource.ParseQuantity(d.CoreRequest); err == nil {
		asks[corev1.ResourceCPU] = cpu
	} else if d.Cores != nil {
		asks[corev1.ResourceCPU] = *resource.NewQuantity(int64(*d.Cores), resource.DecimalSI)
	}
	if number, unit := strings.TrimRight(d.Memory, "kmgtKMGTbBiI"), strings.ToUpper(strings.TrimLeft(d.Memory, "0123456789")); number != "" && unit != "" {
		if memory, err := resource.ParseQuantity(number + unit[:1] + "i"); err == nil {
			asks[corev1.ResourceMemory] = memory
		}
	}
	if d.GPU != nil && d.GPU.Quantity > 0 {
		limits[corev1.ResourceName(d.GPU.Name)] = *resource.NewQuantity(d.GPU.Quantity, resource.DecimalSI)
	}
	return corev1.PodSpec{NodeSelector: d.NodeSelector, Tolerations: d.Tolerations, Containers: []corev1.Container{{Name: "spark-kubernetes-driver", Resources: corev1.ResourceRequirements{Requests: asks, Limits: limits}}}}
}

// nestedInto reads a part of an object that is a map; an absent one reads as empty.
func nestedInto(o *unstructured.Unstructured, field string, into any) bool {
	from, _, err := unstructured.NestedMap(o.Object, field)
	return err == nil && runtime.DefaultUnstructuredConverter.FromUnstructured(from, into) == nil
}
