package admission

import (
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// hardIs claims how much the quota allows.
func (v *Quota) hardIs(name corev1.ResourceName) diagnosis.Claim {
	return diagnosis.That("status.hard", string(name), diagnosis.Is, view.QuantityText(v.Hard[name]))
}

// claims are what the quota allows, and what its status has as used; where that does not say,
// what was counted is nobody's claim.
func (v *Quota) claims(name corev1.ResourceName) []diagnosis.Claim {
	if v.Counted {
		out := []diagnosis.Claim{diagnosis.That("spec.hard", string(name), diagnosis.Is, view.QuantityText(v.Hard[name]))}
		if v.Spec.ScopeSelector == nil && len(v.Spec.Scopes) == 0 {
			out = append(out, diagnosis.That("counted", string(name), diagnosis.Is, view.QuantityText(v.used[name])))
		}
		return out
	}
	return []diagnosis.Claim{v.hardIs(name), diagnosis.That("status.used", string(name), diagnosis.Is, view.QuantityText(v.used[name]))}
}

// heldClaims are what a pod counts against it: of a request what it asks.
func heldClaims(name corev1.ResourceName, has resource.Quantity) []diagnosis.Claim {
	requested, ok := strings.CutPrefix(string(name), "requests.")
	if ok || name == corev1.ResourceCPU || name == corev1.ResourceMemory { // these two are requests by their bare names
		return []diagnosis.Claim{diagnosis.That(diagnosis.Requests, requested, diagnosis.Is, view.QuantityText(has))}
	}
	return []diagnosis.Claim{diagnosis.That("uses", string(name), diagnosis.Is, view.QuantityText(has))}
}

// templateClaims are what the template that pods are made from requests, and limits a container
// to; with no container's name all of them together. What a LimitRange or a webhook fills in is
// none of it.
func (c *Refused) templateClaims(container string, name corev1.ResourceName) []diagnosis.Claim {
	owner := c.All[0].Owner
	spec, at := c.Cluster.Template(owner), "spec"
	if set := c.All[0].Set; set != nil {
		owner, spec, at = set.Of, &set.Template.Spec, set.At
		if set.Within != "" {
			at += "." + set.Within
		}
	}
	if spec == nil {
		return nil
	}
	of, list := spec.Containers, "containers"
	if slices.ContainsFunc(spec.InitContainers, func(k corev1.Container) bool { return k.Name == container }) {
		of, list = spec.InitContainers, "initContainers"
	}
	at += ".template.spec." + list
	which := "[*]"
	if container != "" {
		which = "[name=" + container + "]"
	}
	claim := func(field string, list func(corev1.Container) corev1.ResourceList) []diagnosis.Claim {
		var sum resource.Quantity
		for _, k := range of {
			if container == "" || k.Name == container {
				sum.Add(list(k)[name])
			}
		}
		if sum.IsZero() {
			return nil
		}
		return []diagnosis.Claim{diagnosis.That("sum("+at+which+".resources."+field+"["+string(name)+"])", "", diagnosis.Is, sum.String()).Of(view.ObjectRef(owner.Kind, owner.Namespace, owner.Name))}
	}
	return append(claim("requests", func(k corev1.Container) corev1.ResourceList { return k.Resources.Requests }),
		claim("limits", func(k corev1.Container) corev1.ResourceList { return k.Resources.Limits })...)
}

// Asked claims what the template asks of a resource, or of what a quota limits by that name.
func (c *Refused) Asked(limited corev1.ResourceName) []diagnosis.Claim {
	name := strings.TrimPrefix(strings.TrimPrefix(string(limited), "requests."), "limits.")
	return c.templateClaims("", corev1.ResourceName(name))
}

// lacksClaims are how many pods an owner wants, and lacks, where its fields say so, and what it was
// told last.
func (c *Refused) lacksClaims(r incident.Refusal) []diagnosis.Claim {
	owner, known := c.Cluster.State.Owner(r.Owner.Kind, r.Owner.Namespace, r.Owner.Name)
	var out []diagnosis.Claim
	if wants, has := countedBy(owner); known && wants != "" {
		out = append(out, diagnosis.That(wants, "", diagnosis.Is, strconv.Itoa(r.Wants)), diagnosis.That(wants+" - "+has, "", diagnosis.Is, strconv.Itoa(r.Missing)))
	} else if r.Set != nil && r.Set.Wants != "" {
		out = append(out, setClaims(r.Set, r.Wants, r.Missing)...)
	}
	if r.Says != "" {
		out = append(out, diagnosis.Says(r.Says))
	}
	return out
}

// setClaims are how many pods of a set its object wants, and lacks.
func setClaims(s *incident.Set, wants, missing int) []diagnosis.Claim {
	ref := view.ObjectRef(s.Of.Kind, s.Of.Namespace, s.Of.Name)
	out := []diagnosis.Claim{diagnosis.That(s.Wants, "", diagnosis.Is, strconv.Itoa(wants)).Of(ref)}
	if s.Has != "" {
		out = append(out, diagnosis.That(s.Wants+" - "+s.Has, "", diagnosis.Is, strconv.Itoa(missing)).Of(ref))
	}
	return out
}

// countedBy are the fields by which an object says how many pods it wants and has; empty where one
// is left to its default, or more than these decides.
func countedBy(o metav1.Object) (wants, has string) {
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		return stated(o.Spec.Replicas != nil, "spec.replicas"), "status.replicas"
	case *appsv1.StatefulSet:
		return stated(o.Spec.Replicas != nil, "spec.replicas"), "status.replicas"
	case *appsv1.Deployment:
		return stated(o.Spec.Replicas != nil, "spec.replicas"), "status.replicas"
	case *appsv1.DaemonSet:
		return "status.desiredNumberScheduled", "status.currentNumberScheduled"
	case *batchv1.Job:
		s := o.Status
		alone := ptr.Deref(s.Terminating, 0) == 0 && (o.Spec.Completions == nil && s.Succeeded == 0 || o.Spec.Completions != nil && o.Spec.Parallelism != nil && *o.Spec.Completions-s.Succeeded >= *o.Spec.Parallelism)
		return stated(o.Spec.Parallelism != nil && alone, "spec.parallelism"), "status.active"
	}
	return "", ""
}

func stated(is bool, path string) string {
	if !is {
		return ""
	}
	return path
}
