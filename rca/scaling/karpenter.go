package scaling

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// LabelPool is what Karpenter puts on its nodes and NodeClaims.
const LabelPool = "karpenter.sh/nodepool"

// Condition is one of a NodePool or NodeClaim. Unknown is Karpenter's word for "waiting".
type Condition struct {
	Status, Reason, Message string
	Since                   time.Time
}

// Met says whether it is true.
func (k Condition) Met() bool { return k.Status == string(corev1.ConditionTrue) }

// Words are reason and message, as they stand there.
func (k Condition) Words() string {
	if k.Message == "" || k.Message == k.Reason {
		return k.Reason
	}
	return k.Reason + ": " + strings.Join(strings.Fields(k.Message), " ")
}

// Of is the type of a condition whose reason begins with it, as those do that stand behind another.
func (k Condition) Of() string {
	kind, _, _ := strings.Cut(k.Reason, "=")
	return kind
}

// Claim is a NodeClaim: one machine that Karpenter asked for.
type Claim struct {
	Name, Pool, Node, Type            string // Type: the instance type, where it is known
	ProviderID                        string // the machine's own name in the cloud, once it is launched
	Image                             string // that the machine was made with, where that is told
	Created                           time.Time
	Leaving                           bool
	Left                              time.Time // when it was deleted; zero: it was not
	Launched, Registered, Initialized Condition
	Requests, Capacity                corev1.ResourceList
	Labels                            map[string]string
	Requirements                      []corev1.NodeSelectorRequirement
	Taints                            []corev1.Taint
	// Startup are the taints that somebody takes off once the node can be used.
	Startup []corev1.Taint
}

// Doubled says whether Karpenter has found several nodes with the claim's machine: it takes none of them for it, however
// long that lasts (pkg/controllers/nodeclaim/lifecycle/registration.go).
func (k *Claim) Doubled() bool { return k.Registered.Reason == "MultipleNodesFound" }

// Pool is a NodePool.
type Pool struct {
	Name         string
	Limits, Used corev1.ResourceList
	Ready        Condition
	Why          Condition // the other condition that is not met, where Ready is not
	Labels       map[string]string
	Requirements []corev1.NodeSelectorRequirement
	Taints       []corev1.Taint
	// Startup are the taints that somebody takes off once the node can be used.
	Startup []corev1.Taint
	// Class says how its machines are made.
	Class Class
	// Registers says whether machines that were launched for it have joined of late.
	Registers Condition
}

// ReadClaim reads a NodeClaim; what it does not say is empty.
func ReadClaim(u *unstructured.Unstructured) Claim {
	c := Claim{Name: u.GetName(), Pool: u.GetLabels()[LabelPool], Created: u.GetCreationTimestamp().Time, Leaving: u.GetDeletionTimestamp() != nil, Labels: u.GetLabels(),
		Node: text(u, "status", "nodeName"), Launched: ConditionOf(u, "Launched"), Registered: ConditionOf(u, "Registered"), Initialized: ConditionOf(u, "Initialized"),
		Requests: quantities(u, "spec", "resources", "requests"), Capacity: quantities(u, "status", "capacity")}
	c.Requirements, c.Taints = requirements(u, "spec", "requirements"), taints(u, "spec", "taints")
	c.Startup = taints(u, "spec", "startupTaints")
	if at := u.GetDeletionTimestamp(); at != nil {
		c.Left = at.Time
	}
	c.Type, c.ProviderID = c.Labels[corev1.LabelInstanceTypeStable], text(u, "status", "providerID")
	c.Image = text(u, "status", "imageID")
	return c
}

// ReadPool reads a NodePool.
func ReadPool(u *unstructured.Unstructured) Pool {
	p := Pool{Name: u.GetName(), Limits: quantities(u, "spec", "limits"), Used: quantities(u, "status", "resources"), Ready: ConditionOf(u, "Ready"), Registers: ConditionOf(u, "NodeRegistrationHealthy"),
		Requirements: requirements(u, "spec", "template", "spec", "requirements"), Taints: taints(u, "spec", "template", "spec", "taints"), Startup: taints(u, "spec", "template", "spec", "startupTaints")}
	p.Labels, _, _ = unstructured.NestedStringMap(u.Object, "spec", "template", "metadata", "labels") //nolint:errcheck // other than strings is no label
	p.Class = Class{Kind: text(u, "spec", "template", "spec", "nodeClassRef", "kind"), Name: text(u, "spec", "template", "spec", "nodeClassRef", "name")}
	for _, kind := range []string{"NodeClassReady", "ValidationSucceeded"} {
		if k := ConditionOf(u, kind); k.Status != "" && !k.Met() && p.Why.Status == "" {
			p.Why = k
			p.Why.Reason = kind + "=" + k.Status + " " + k.Reason
		}
	}
	return p
}

func text(u *unstructured.Unstructured, path ...string) string {
	s, _, err := unstructured.NestedString(u.Object, path...)
	if err != nil {
		return ""
	}
	return s
}

func list(u *unstructured.Unstructured, path ...string) []any {
	l, _, err := unstructured.NestedSlice(u.Object, path...)
	if err != nil {
		return nil
	}
	return l
}

// ConditionOf reads one condition of an object; empty where it has none of that type.
func ConditionOf(u *unstructured.Unstructured, kind string) Condition {
	for _, item := range list(u, "status", "conditions") {
		k, ok := item.(map[string]any)
		if !ok || k["type"] != kind {
			continue
		}
		word := func(key string) string { s, _ := k[key].(string); return s }
		at, err := time.Parse(time.RFC3339, word("lastTransitionTime"))
		if err != nil {
			at = time.Time{}
		}
		return Condition{Status: word("status"), Reason: word("reason"), Message: word("message"), Since: at}
	}
	return Condition{}
}

func quantities(u *unstructured.Unstructured, path ...string) corev1.ResourceList {
	m, _, err := unstructured.NestedMap(u.Object, path...)
	if err != nil {
		return nil
	}
	out := corev1.ResourceList{}
	for name, v := range m {
		var q resource.Quantity
		switch v := v.(type) {
		case string:
			if q, err = resource.ParseQuantity(v); err != nil {
				continue
			}
		case int64:
			q = *resource.NewQuantity(v, resource.DecimalSI)
		case float64:
			q = *resource.NewQuantity(int64(v), resource.DecimalSI)
		default:
			continue
		}
		out[corev1.ResourceName(name)] = q
	}
	return out
}

func requirements(u *unstructured.Unstructured, path ...string) []corev1.NodeSelectorRequirement {
	return listOf[corev1.NodeSelectorRequirement](u, path...)
}

func taints(u *unstructured.Unstructured, path ...string) []corev1.Taint {
	return listOf[corev1.Taint](u, path...)
}

func listOf[T any](u *unstructured.Unstructured, path ...string) []T {
	var out []T
	for _, item := range list(u, path...) {
		m, ok := item.(map[string]any)
		var t T
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &t) == nil {
			out = append(out, t)
		}
	}
	return out
}

// Usable says whether Karpenter makes machines of the pool: where it or its class is not Ready
// none, without a word. known: the pool says anything of it.
func (p *Pool) Usable() (usable, known bool) {
	if k := p.Class.Ready; k.Status != "" && !k.Met() {
		return false, true
	}
	return p.Ready.Met(), p.Ready.Status != ""
}

// Left is what a limit of the pool leaves of a resource.
func (p *Pool) Left(name corev1.ResourceName) (left resource.Quantity, limited bool) {
	limit, limited := p.Limits[name]
	left = limit.DeepCopy()
	left.Sub(p.Used[name])
	return left, limited
}

// Exhausted names, in order, the limits of the pool that leave less than a pod asks for.
func (p *Pool) Exhausted(asks corev1.ResourceList) []corev1.ResourceName {
	var out []corev1.ResourceName
	for name := range p.Limits {
		left, _ := p.Left(name)
		asked, wanted := asks[name]
		if left.Sign() <= 0 || wanted && left.Cmp(asked) < 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
