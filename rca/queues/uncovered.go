package queues

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Uncovered is what a Workload asks for and no resource group of its ClusterQueue covers: Kueue admits it
// never, and names one of them at a time (pkg/scheduler/flavorassigner).
type Uncovered struct {
	Queue string
	// Names are the resources, Amounts what all of its pods ask of each together.
	Names   []corev1.ResourceName
	Amounts corev1.ResourceList
	// Flavors are those of the queue's first resource group, each of which has to have a quota of it.
	Flavors []string
}

// NotCovered finds it; nil where its queue was not read, or covers all.
func NotCovered(c *Case, w *unstructured.Unstructured) *Uncovered {
	queue := c.ClusterQueue(w)
	if queue == nil {
		return nil
	}
	groups := nested(queue, "spec", "resourceGroups")
	if len(groups) == 0 {
		return nil
	}
	u := &Uncovered{Queue: queue.GetName(), Amounts: corev1.ResourceList{}}
	var covered []string
	for _, group := range groups {
		names, _, err := unstructured.NestedStringSlice(group, "coveredResources")
		if err != nil {
			return nil
		}
		covered = append(covered, names...)
	}
	for _, set := range nested(w, "spec", "podSets") {
		for name, q := range asksOfSet(set) {
			if slices.Contains(covered, string(name)) {
				continue
			}
			sum := u.Amounts[name]
			sum.Add(q)
			u.Amounts[name] = sum
		}
	}
	for _, of := range list(groups[0], "flavors") {
		u.Flavors = append(u.Flavors, wordOf(of, "name"))
	}
	if u.Names = view.SortedNames(u.Amounts); len(u.Names) == 0 {
		return nil
	}
	return u
}

// asksOfSet is what all pods of a pod set ask for together.
func asksOfSet(set map[string]any) corev1.ResourceList {
	var of struct {
		Template corev1.PodTemplateSpec `json:"template"`
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(set, &of) != nil {
		return nil
	}
	out := corev1.ResourceList{}
	for name, q := range view.PodRequests(&corev1.Pod{Spec: of.Template.Spec}) {
		q = q.DeepCopy()
		q.Mul(int64(view.AsInt(set["count"])))
		if !q.IsZero() {
			out[name] = q
		}
	}
	return out
}

// Text is what is not covered, for people.
func (u *Uncovered) Text() string {
	names := make([]string, len(u.Names))
	for i, name := range u.Names {
		names[i] = string(name)
	}
	return strings.Join(names, ", ")
}

// says is that, with the queue that it is so of.
func (u *Uncovered) says() (string, diagnosis.Evidence) {
	claims := make([]diagnosis.Claim, len(u.Names))
	for i, name := range u.Names {
		claims[i] = diagnosis.That("spec.resourceGroups[*].coveredResources", "", diagnosis.ContainsNot, string(name))
	}
	return fmt.Sprintf("ClusterQueue %s covers no %s, which it asks for", u.Queue, u.Text()),
		diagnosis.Fact("ClusterQueue/"+u.Queue, "spec.resourceGroups[].coveredResources has no "+u.Text(), claims...)
}

// uncovered says whether a Workload's condition is that no flavor has a resource.
func uncovered(why string) bool { return strings.Contains(why, "unavailable in ClusterQueue") }
