package queues

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// Intolerance is what keeps one pod set of a Workload from a flavor: taints that the flavor says its
// nodes have, and that neither the pods tolerate nor the flavor has them tolerate. All pod sets of a
// Workload are admitted together, so one is enough.
type Intolerance struct {
	Set, Flavor string
	Taints      []corev1.Taint
	// Tolerates: the flavor has tolerations of its own already, which it gives the pods that it takes.
	Tolerates bool
	// Alone: Kueue names no flavor that the pod set could have later.
	Alone bool

	workload *unstructured.Unstructured
}

// Kueue's words for one pod set, and for a flavor whose taint it does not tolerate
// (pkg/scheduler/flavorassigner).
var (
	ofPodSet  = regexp.MustCompile(`couldn't assign flavors to pod set (\S+): `)
	untolerat = regexp.MustCompile(`untolerated taint \{[^}]*\} in flavor ([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)`)
)

// Intolerant is the pod set that Kueue says does not tolerate a flavor, by its Workload and the flavor
// themselves; nil where it says no such thing, where they are not read, or have changed since.
func (c *Case) Intolerant(w *unstructured.Unstructured) *Intolerance {
	why, _ := Why(w)
	at := ofPodSet.FindAllStringSubmatchIndex(why, -1)
	for i, m := range at {
		set, end := why[m[2]:m[3]], len(why)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		words := why[m[1]:end]
		for _, f := range untolerat.FindAllStringSubmatch(words, -1) {
			if t := intolerant(c.Cluster, w, set, f[1]); t != nil {
				t.Alone = !strings.Contains(words, "insufficient unused quota")
				return t
			}
		}
	}
	return nil
}

func intolerant(cl *view.Cluster, w *unstructured.Unstructured, set, flavor string) *Intolerance {
	o := objectOf(cl.State.Queues.Flavors, "", flavor)
	if o == nil {
		return nil
	}
	pods, known := tolerationsOf(w, set)
	if !known {
		return nil
	}
	var of struct {
		Spec struct {
			NodeTaints  []corev1.Taint      `json:"nodeTaints"`
			Tolerations []corev1.Toleration `json:"tolerations"`
		} `json:"spec"`
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &of) != nil {
		return nil
	}
	t := &Intolerance{Set: set, Flavor: flavor, Tolerates: len(of.Spec.Tolerations) > 0, workload: w}
	all := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: slices.Concat(pods, of.Spec.Tolerations)}}
	for _, taint := range of.Spec.NodeTaints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !scaling.Tolerates(all, []corev1.Taint{taint}) {
			t.Taints = append(t.Taints, taint)
		}
	}
	if len(t.Taints) == 0 {
		return nil
	}
	return t
}

// tolerationsOf are those of the pods of one pod set.
func tolerationsOf(w *unstructured.Unstructured, name string) ([]corev1.Toleration, bool) {
	for _, set := range nested(w, "spec", "podSets") {
		if wordOf(set, "name") != name {
			continue
		}
		var of struct {
			Template corev1.PodTemplateSpec `json:"template"`
		}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(set, &of) != nil {
			return nil, false
		}
		return of.Template.Spec.Tolerations, true
	}
	return nil, false
}

// Wants are the taints for people.
func (t *Intolerance) Wants() string {
	names := make([]string, len(t.Taints))
	for i := range t.Taints {
		names[i] = t.Taints[i].ToString()
	}
	return strings.Join(names, ", ")
}

func (t *Intolerance) says() (string, []diagnosis.Evidence) {
	flavored, fact := "ResourceFlavor/"+t.Flavor, "spec.nodeTaints: "+t.Wants()
	var claims []diagnosis.Claim
	for _, taint := range t.Taints {
		claims = append(claims, diagnosis.That(fmt.Sprintf("spec.nodeTaints[key=%s,effect=%s]", taint.Key, taint.Effect), "", diagnosis.Exists, ""))
	}
	return fmt.Sprintf("pod set %s of it does not tolerate %s, which flavor %s has", t.Set, t.Wants(), t.Flavor), []diagnosis.Evidence{
		diagnosis.Fact(flavored, fact, claims...),
		diagnosis.Fact(view.ObjectRef("Workload", t.workload.GetNamespace(), t.workload.GetName()), "pod set "+t.Set+" does not tolerate that", diagnosis.That("spec.podSets[*].name", "", diagnosis.Contains, t.Set))}
}
