package deploy_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/unpend/unpend/testdata/controlplane"
)

const mark = `"unpend.dev/operation":"{}"`

// makeNode makes a node of which every part that a patch may touch is there.
func makeNode(t *testing.T, cp *controlplane.ControlPlane, name string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{"example.com/mine"},
		Labels:      map[string]string{"nvidia.com/mig.config": "all-1g.5gb", "team": "ml"},
		Annotations: map[string]string{"owner": "ops"}},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}}}
	if name == "canary" {
		n.Finalizers = nil
	}
	if _, err := cp.Client().CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func patchNode(t *testing.T, config *rest.Config, name, patch string, opts metav1.PatchOptions) error {
	t.Helper()
	_, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().Patch(t.Context(), name, types.MergePatchType, []byte(patch), opts)
	return err
}

// looks is the part of a node that somebody else may not have changed: without the
// taints that the node controller adds.
func looks(t *testing.T, cp *controlplane.ControlPlane) string {
	t.Helper()
	n, err := cp.Client().CoreV1().Nodes().Get(t.Context(), "fenced", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var taints []string
	for _, taint := range n.Spec.Taints {
		if taint.Key == "nvidia.com/gpu" || taint.Key == "mine" {
			taints = append(taints, taint.Key)
		}
	}
	var notes []string
	for _, k := range slices.Sorted(maps.Keys(n.Annotations)) {
		if k != "node.alpha.kubernetes.io/ttl" {
			notes = append(notes, k+"="+n.Annotations[k])
		}
	}
	return fmt.Sprintf("cordoned %t %v%v%v%v%v%s", n.Spec.Unschedulable, n.Labels, notes, taints, n.Finalizers, n.OwnerReferences, n.Spec.ProviderID)
}

const (
	asMade     = "cordoned false map[nvidia.com/mig.config:all-1g.5gb team:ml][owner=ops][nvidia.com/gpu][example.com/mine][]"
	worked     = "cordoned true map[nvidia.com/mig.config:all-2g.10gb team:ml][owner=ops unpend.dev/operation={}][nvidia.com/gpu][example.com/mine][]"
	unlabelled = "cordoned true map[team:ml][owner=ops unpend.dev/operation={}][nvidia.com/gpu][example.com/mine][]"
)

// nodeWrites are judged by the policy: what an operation does is allowed step by
// step, and everything else refused in each state of the node.
func nodeWrites(t *testing.T, n *tally, cp *controlplane.ControlPlane, its *rest.Config) {
	t.Helper()
	makeNode(t, cp, "fenced")
	only := func(what, which string) string {
		return "policy: of a node's " + what + " the executor may change " + which + " only"
	}
	spec, labels, notes, meta := only("spec", "unschedulable"), only("labels", "nvidia.com/mig.config"), only("annotations", "unpend.dev/operation"), only("metadata", "labels and annotations")
	never := []struct{ what, patch, want string }{
		{"a taint more", `{"spec":{"taints":[{"key":"nvidia.com/gpu","effect":"NoSchedule"},{"key":"mine","effect":"NoSchedule"}]}}`, spec},
		{"no taints", `{"spec":{"taints":null}}`, spec},
		{"a taint with a cordon and the mark", `{"metadata":{"annotations":{` + mark + `}},"spec":{"unschedulable":true,"taints":[]}}`, spec},
		{"the provider's id", `{"spec":{"providerID":"mine://1"}}`, spec},
		{"another label", `{"metadata":{"labels":{"mine":"1"}}}`, labels},
		{"a label's value", `{"metadata":{"labels":{"team":"web"}}}`, labels},
		{"a label removed", `{"metadata":{"labels":{"team":null}}}`, labels},
		{"a label beside the layout", `{"metadata":{"labels":{"nvidia.com/mig.config":"x","nvidia.com/mig.config.state":"success"},"annotations":{` + mark + `}}}`, labels},
		{"all labels removed", `{"metadata":{"labels":null,"annotations":{` + mark + `}}}`, labels},
		{"another annotation", `{"metadata":{"annotations":{"mine":"1"}}}`, notes},
		{"an annotation's value", `{"metadata":{"annotations":{"owner":"me"}}}`, notes},
		{"an annotation removed", `{"metadata":{"annotations":{"owner":null}}}`, notes},
		{"a finalizer", `{"metadata":{"finalizers":["example.com/mine","example.com/other"]}}`, meta},
		{"no finalizers", `{"metadata":{"finalizers":null}}`, meta},
		{"an owner", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"1"}]}}`, meta},
	}
	refuse := func(state, seen string) {
		t.Helper()
		for _, c := range never {
			n.check(t, state+", "+c.what, answer(patchNode(t, its, "fenced", c.patch, metav1.PatchOptions{})), c.want)
		}
		n.check(t, state+": the node", looks(t, cp), seen)
	}
	step := func(what, patch, want, seen string) {
		t.Helper()
		n.check(t, what, answer(patchNode(t, its, "fenced", patch, metav1.PatchOptions{})), want)
		n.check(t, what+": the node", looks(t, cp), seen)
	}
	const alone, unmarked = "policy: a cordon comes with the annotation unpend.dev/operation in the same write", "policy: nvidia.com/mig.config changes only on a node with the annotation unpend.dev/operation"
	refuse("at rest", asMade)
	step("a cordon without the mark", `{"spec":{"unschedulable":true}}`, alone, asMade)
	step("a cordon with an empty mark", `{"metadata":{"annotations":{"unpend.dev/operation":""}},"spec":{"unschedulable":true}}`, alone, asMade)
	step("a layout without the mark", `{"metadata":{"labels":{"nvidia.com/mig.config":"all-7g.40gb"}}}`, unmarked, asMade)
	step("no layout without the mark", `{"metadata":{"labels":{"nvidia.com/mig.config":null}}}`, unmarked, asMade)
	step("cordon and mark", `{"metadata":{"annotations":{`+mark+`}},"spec":{"unschedulable":true}}`, "yes", "cordoned true map[nvidia.com/mig.config:all-1g.5gb team:ml][owner=ops unpend.dev/operation={}][nvidia.com/gpu][example.com/mine][]")
	step("the layout under the mark", `{"metadata":{"labels":{"nvidia.com/mig.config":"all-2g.10gb"},"annotations":{`+mark+`}}}`, "yes", worked)
	refuse("at work", worked)
	step("the mark goes with a layout", `{"metadata":{"labels":{"nvidia.com/mig.config":"all-7g.40gb"},"annotations":{"unpend.dev/operation":null}}}`, unmarked, worked)
	step("back to no layout", `{"metadata":{"labels":{"nvidia.com/mig.config":null},"annotations":{`+mark+`}}}`, "yes", unlabelled)
	step("back to the layout before", `{"metadata":{"labels":{"nvidia.com/mig.config":"all-1g.5gb"},"annotations":{`+mark+`}}}`, "yes", "cordoned true map[nvidia.com/mig.config:all-1g.5gb team:ml][owner=ops unpend.dev/operation={}][nvidia.com/gpu][example.com/mine][]")
	step("uncordon without the mark", `{"metadata":{"annotations":{"unpend.dev/operation":null}},"spec":{"unschedulable":null}}`, "yes", asMade)
	peoplesCordon(t, n, cp, step)
	notByRBAC(t, n, cp, its)
	typesChecked(t, n, cp)
}

// peoplesCordon: a person's cordon is there before and after; and opened where that
// is the plan. Nobody but the executor is fenced.
func peoplesCordon(t *testing.T, n *tally, cp *controlplane.ControlPlane, step func(what, patch, want, seen string)) {
	t.Helper()
	const closed = "cordoned true map[nvidia.com/mig.config:all-1g.5gb team:ml][owner=ops][nvidia.com/gpu mine][example.com/mine][]"
	const marked = "cordoned true map[nvidia.com/mig.config:all-1g.5gb team:ml][owner=ops unpend.dev/operation={}][nvidia.com/gpu mine][example.com/mine][]"
	err := patchNode(t, cp.Config(), "fenced", `{"spec":{"unschedulable":true,"taints":[{"key":"nvidia.com/gpu","effect":"NoSchedule"},{"key":"mine","effect":"NoSchedule"}]}}`, metav1.PatchOptions{})
	n.check(t, "a person cordons and taints", answer(err), "yes")
	step("the mark on a person's cordon", `{"metadata":{"annotations":{`+mark+`}},"spec":{"unschedulable":true}}`, "yes", marked)
	step("the mark taken off it", `{"metadata":{"annotations":{"unpend.dev/operation":null}}}`, "yes", closed)
	step("a person's cordon opened", `{"spec":{"unschedulable":null}}`, "yes", "cordoned false map[nvidia.com/mig.config:all-1g.5gb team:ml][owner=ops][nvidia.com/gpu mine][example.com/mine][]")
}

// notByRBAC: other verbs and subresources; and the policy refuses by itself what
// RBAC would let by if somebody gave the executor more.
func notByRBAC(t *testing.T, n *tally, cp *controlplane.ControlPlane, its *rest.Config) {
	t.Helper()
	nodes := kubernetes.NewForConfigOrDie(its).CoreV1().Nodes()
	there, err := nodes.Get(t.Context(), "fenced", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	there.ResourceVersion, there.Labels["mine"] = "", "1" // whatever it has become since
	tries := map[string]func() error{
		"update": func() error {
			_, err := nodes.Update(t.Context(), there, metav1.UpdateOptions{})
			return err
		},
		"create": func() error {
			_, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, metav1.CreateOptions{})
			return err
		},
		"delete": func() error { return nodes.Delete(t.Context(), "fenced", metav1.DeleteOptions{}) },
	}
	for verb, try := range tries {
		n.check(t, verb+" a node", answer(try()), "RBAC: "+itself+" cannot "+verb+" nodes")
	}
	_, err = nodes.Patch(t.Context(), "fenced", types.MergePatchType, []byte(`{"status":{"capacity":{"nvidia.com/gpu":"8"}}}`), metav1.PatchOptions{}, "status")
	n.check(t, "a node's status", answer(err), "RBAC: "+itself+" cannot patch nodes/status")
	_, err = nodes.Patch(t.Context(), "fenced", types.ApplyPatchType, []byte(`{"apiVersion":"v1","kind":"Node","metadata":{"name":"fenced","labels":{"mine":"1"}}}`), metav1.PatchOptions{FieldManager: "mine"})
	n.check(t, "a label by an apply", kind(answer(err)), "policy")
	_, err = nodes.Patch(t.Context(), "fenced", types.JSONPatchType, []byte(`[{"op":"remove","path":"/metadata/labels/team"}]`), metav1.PatchOptions{})
	n.check(t, "a label by a JSON patch", kind(answer(err)), "policy")

	roles := cp.Client().RbacV1()
	grant(t, cp, "", "too-much-of-nodes", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: executor}, rule("", []string{"create", "update", "delete"}, "nodes"))
	for verb, try := range tries {
		controlplane.Eventually(t, 10*time.Second, "only the fence refuses to "+verb, func() (bool, string) {
			got := kind(answer(try()))
			return got == "policy", got
		})
		n.held++
	}
	if err := roles.ClusterRoleBindings().Delete(t.Context(), "too-much-of-nodes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	controlplane.Eventually(t, 10*time.Second, "the right is taken back", func() (bool, string) {
		got := kind(answer(tries["create"]()))
		return got == "RBAC", got
	})
}

// typesChecked: the API server knows the types in every expression of the policies,
// and has no word of warning.
func typesChecked(t *testing.T, n *tally, cp *controlplane.ControlPlane) {
	t.Helper()
	for _, name := range []string{"unpend.unpend-executor-nodes", "unpend.unpend-approvals", "unpend.unpend-remediations", "unpend.unpend-probe"} {
		controlplane.Eventually(t, 20*time.Second, "the types in "+name, func() (bool, string) {
			p, err := cp.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if p.Status.TypeChecking == nil || p.Status.ObservedGeneration != p.Generation {
				return false, "not checked yet"
			}
			n.same(t, "types in "+name, len(p.Status.TypeChecking.ExpressionWarnings), 0)
			if len(p.Status.TypeChecking.ExpressionWarnings) > 0 {
				t.Error(p.Status.TypeChecking.ExpressionWarnings)
			}
			return true, ""
		})
	}
}
