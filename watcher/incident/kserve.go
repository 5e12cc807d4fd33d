package incident

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// How KServe names the pods of an InferenceService, and tells that it could not make what makes them
// (kserve pkg/constants; pkg/controller/v1beta1/inferenceservice/controller.go).
const (
	kserveService   = "serving.kserve.io/inferenceservice"
	kserveComponent = "component"
	kserveFailure   = "InternalError"
)

// conflict is the API server's word for a write that somebody else's came before: it is made again at once.
const conflict = "the object has been modified"

// kserveComponents are the parts of an InferenceService, in the order in which KServe makes them.
var kserveComponents = []string{"predictor", "transformer", "explainer"}

// ofInferenceService reads what the pods of an InferenceService would be: the spec of a component is that of its pods, beside
// which stands the model that its runtime is to serve.
func ofInferenceService(o *unstructured.Unstructured, h *Held) {
	h.owner = &metav1.OwnerReference{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: h.Name, UID: h.UID, Controller: new(true)}
	h.makes, h.over = true, conditionMet(o, "Ready")
	for _, part := range kserveComponents {
		from, found, err := unstructured.NestedMap(o.Object, "spec", part)
		if err != nil || !found {
			continue
		}
		count, field := int64(1), ""
		if n, stated, err := unstructured.NestedInt64(from, "minReplicas"); err == nil && stated {
			count, field = n, "minReplicas"
		}
		var spec corev1.PodSpec
		if count < 1 || runtime.DefaultUnstructuredConverter.FromUnstructured(from, &spec) != nil {
			continue
		}
		if c, has := served(from); has {
			spec.Containers = append(spec.Containers, c)
		}
		h.sets = append(h.sets, podSet{Name: part, Count: int(count), Template: corev1.PodTemplateSpec{Spec: spec}, Marks: map[string]string{kserveService: h.Name, kserveComponent: part}, At: "spec." + part, Stated: field, Sole: field == ""})
	}
}

// served is the container of a component's model, which stands under its format's name, or under model.
func served(component map[string]any) (corev1.Container, bool) {
	for key, value := range component {
		from, is := value.(map[string]any)
		if _, has := from["resources"]; !is || !has || key == "workerSpec" {
			continue
		}
		var c corev1.Container
		if runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"resources": from["resources"]}, &c) == nil {
			c.Name = "kserve-container"
			return c, true
		}
	}
	return corev1.Container{}, false
}

// passes says whether what an event tells passes by itself at once.
func passes(e *corev1.Event) bool { return strings.Contains(e.Message, conflict) }
