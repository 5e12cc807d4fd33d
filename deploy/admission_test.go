package deploy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/controlplane"
)

// The probe's part of the chart, installed on a real control plane with two GPU
// nodes and one that has none, run by the real DaemonSet controller, spoken for
// by the tokens that the API server gives its pods.
func TestProbeOnARealControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the real control plane")
	}
	cp := controlplane.Start(t)
	makeRuntimeClass(t, cp.Client())
	install(t, cp)
	for _, n := range []sim.Node{
		{Name: "gpu-a", Model: "A100-40GB", Labels: map[string]string{deployLabel: "true"}, Cordoned: true,
			Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoExecute}}},
		{Name: "gpu-b", Model: "A100-40GB", Labels: map[string]string{deployLabel: "true"},
			Taints: []corev1.Taint{{Key: "team", Value: "ml", Effect: corev1.TaintEffectNoSchedule}}},
		{Name: "plain"},
	} {
		cp.AddNode(t, n)
	}
	waitForProbes(t, cp, "gpu-a", "gpu-b")
	waitForTheFence(t, cp)

	t.Run("a probe writes its own report only", func(t *testing.T) { writesItsOwn(t, cp) })
	t.Run("a token of no pod writes nothing", func(t *testing.T) {
		geo := reports(t, tokenOf(t, cp, nil))
		wantForbidden(t, write(t, geo, "gpu-a", 1), "the probe's token is not bound to a pod on a node")
	})
	t.Run("the fence is for probes", func(t *testing.T) { othersAreFree(t, cp) })
	t.Run("what a probe may", func(t *testing.T) { mayDo(t, cp) })
	t.Run("MIG manager's pause takes the probe away", func(t *testing.T) { pauses(t, cp) })
}

func install(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	objs := probeOnly(t, nil)
	namespacesFirst(objs)
	send := newSender(cp)
	for _, o := range objs {
		if err := send.create(t, o, nil); err != nil {
			t.Fatalf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
}

// probes are the probe's pods that are there to stay, by node.
func probes(t *testing.T, cp *controlplane.ControlPlane) map[string]corev1.Pod {
	t.Helper()
	list, err := cp.Client().CoreV1().Pods(probe).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]corev1.Pod{}
	for _, p := range list.Items {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			out[p.Spec.NodeName] = p
		}
	}
	return out
}

func waitForProbes(t *testing.T, cp *controlplane.ControlPlane, nodes ...string) {
	t.Helper()
	controlplane.Eventually(t, 30*time.Second, "probes on "+strings.Join(nodes, " "), func() (bool, string) {
		var got []string
		for node := range probes(t, cp) {
			got = append(got, node)
		}
		slices.Sort(got)
		set, err := cp.Client().AppsV1().DaemonSets(probe).Get(t.Context(), probe, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return slices.Equal(nodes, got) && int(set.Status.DesiredNumberScheduled) == len(nodes), fmt.Sprint(got, set.Status)
	})
}

// tokenOf is a client with a token of the probe, bound to a pod or to nothing.
func tokenOf(t *testing.T, cp *controlplane.ControlPlane, pod *corev1.Pod) *rest.Config {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	got, err := cp.Client().CoreV1().ServiceAccounts(probe).CreateToken(t.Context(), probe, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cp.Config())
	config.BearerToken = got.Status.Token
	return config
}

func probeOn(t *testing.T, cp *controlplane.ControlPlane, node string) *rest.Config {
	t.Helper()
	pod, ok := probes(t, cp)[node]
	if !ok {
		t.Fatalf("no probe on %s", node)
	}
	return tokenOf(t, cp, &pod)
}

func reports(t *testing.T, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(nodeprobe.Resource)
}

// geometry is a report that can be told from others by its number of GPUs.
func geometry(t *testing.T, node string, gpus int) *unstructured.Unstructured {
	t.Helper()
	u, err := sim.Unstructured(sim.Node{Name: node, Model: "A100-40GB", GPUs: gpus}.Geometry(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// write creates or updates, as the probe's publisher does.
func write(t *testing.T, geo dynamic.ResourceInterface, node string, gpus int) error {
	t.Helper()
	next := geometry(t, node, gpus)
	there, err := geo.Get(t.Context(), node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = geo.Create(t.Context(), next, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	next.SetResourceVersion(there.GetResourceVersion())
	_, err = geo.Update(t.Context(), next, metav1.UpdateOptions{})
	return err
}

// inPlace is what is reported: the number of GPUs by node.
func inPlace(t *testing.T, cp *controlplane.ControlPlane) string {
	t.Helper()
	list, err := cp.Dynamic().Resource(nodeprobe.Resource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range list.Items {
		gpus, _, err := unstructured.NestedSlice(o.Object, "report", "gpus")
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%s:%d", o.GetName(), len(gpus)))
	}
	return strings.Join(out, " ")
}

func wantInPlace(t *testing.T, cp *controlplane.ControlPlane, want string) {
	t.Helper()
	if got := inPlace(t, cp); got != want {
		t.Errorf("reported: %s; want %s", got, want)
	}
}

func wantForbidden(t *testing.T, err error, because string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), because) {
		t.Errorf("answered with %v; want: forbidden, %s", err, because)
	}
}

const notYours = "the probe on node gpu-a may not write the NodeGeometry "

// waitForTheFence waits for admission to know the policy, which it follows by a watch.
func waitForTheFence(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	geo := reports(t, probeOn(t, cp, "gpu-a"))
	controlplane.Eventually(t, 20*time.Second, "the policy holds", func() (bool, string) {
		_, err := geo.Create(t.Context(), geometry(t, "nowhere", 1), metav1.CreateOptions{DryRun: dryRun})
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), notYours+"nowhere"), fmt.Sprint(err)
	})
}

func writesItsOwn(t *testing.T, cp *controlplane.ControlPlane) {
	a, b := reports(t, probeOn(t, cp, "gpu-a")), reports(t, probeOn(t, cp, "gpu-b"))
	admin := cp.Dynamic().Resource(nodeprobe.Resource)
	if err := admin.Delete(t.Context(), "gpu-a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantInPlace(t, cp, "gpu-b:1 plain:1")

	for _, gpus := range []int{2, 3} { // created, then updated
		if err := write(t, a, "gpu-a", gpus); err != nil {
			t.Errorf("its own report: %v", err)
		}
	}
	if err := write(t, b, "gpu-b", 4); err != nil {
		t.Errorf("its own report: %v", err)
	}
	wantForbidden(t, write(t, a, "gpu-b", 5), notYours+"gpu-b")
	wantForbidden(t, write(t, a, "new", 5), notYours+"new")
	unnamed := geometry(t, "", 5)
	unnamed.SetGenerateName("gpu-")
	_, err := a.Create(t.Context(), unnamed, metav1.CreateOptions{})
	wantForbidden(t, err, notYours)
	data, err := geometry(t, "gpu-a", 5).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []types.PatchType{types.MergePatchType, types.ApplyPatchType} {
		_, err = a.Patch(t.Context(), "gpu-a", kind, data, metav1.PatchOptions{FieldManager: "test"})
		wantForbidden(t, err, `cannot patch resource "nodegeometries"`)
	}
	wantForbidden(t, a.Delete(t.Context(), "gpu-a", metav1.DeleteOptions{}), `cannot delete resource "nodegeometries"`)
	_, err = a.List(t.Context(), metav1.ListOptions{})
	wantForbidden(t, err, `cannot list resource "nodegeometries"`)
	wantInPlace(t, cp, "gpu-a:3 gpu-b:4 plain:1")
}

// Who is not the probe is under RBAC alone: one with the same right writes any
// report, one without writes none, and none of it asks for a node.
func othersAreFree(t *testing.T, cp *controlplane.ControlPlane) {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "same-right"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "unpend:unpend-probe"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "importer"}}}
	if _, err := cp.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	importer := reports(t, userConfig(t, cp, "importer"))
	controlplane.Eventually(t, 10*time.Second, "importer may read reports", func() (bool, string) {
		_, err := importer.Get(t.Context(), "gpu-a", metav1.GetOptions{})
		return err == nil, fmt.Sprint(err)
	})
	if err := write(t, importer, "gpu-b", 6); err != nil {
		t.Errorf("who has the right and is not the probe: %v", err)
	}
	if err := write(t, cp.Dynamic().Resource(nodeprobe.Resource), "plain", 7); err != nil {
		t.Errorf("an admin: %v", err)
	}
	_, err := reports(t, userConfig(t, cp, "mallory")).Create(t.Context(), geometry(t, "gpu-c", 8), metav1.CreateOptions{})
	wantForbidden(t, err, `User "mallory" cannot create resource "nodegeometries"`)
	wantInPlace(t, cp, "gpu-a:3 gpu-b:6 plain:7")
}

func userConfig(t *testing.T, cp *controlplane.ControlPlane, user string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", cp.KubeconfigFor(t, user))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// mayDo is `kubectl auth can-i --list` with the token of a probe (S13).
func mayDo(t *testing.T, cp *controlplane.ControlPlane) {
	client, err := kubernetes.NewForConfig(probeOn(t, cp, "gpu-a"))
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: probe}}
	got, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil || got.Status.Incomplete {
		t.Fatal(got, err)
	}
	rules := got.Status.ResourceRules
	slices.SortFunc(rules, func(a, b authorizationv1.ResourceRule) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	data, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "probe-can-i.yaml", data)
}

// pauses does to the label what MIG manager does around a change of mode.
func pauses(t *testing.T, cp *controlplane.ControlPlane) {
	before := probes(t, cp)
	label := func(value string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, deployLabel, value)
		if _, err := cp.Client().CoreV1().Nodes().Patch(t.Context(), "gpu-a", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	label("paused-for-mig-change")
	waitForProbes(t, cp, "gpu-b")
	label("true")
	waitForProbes(t, cp, "gpu-a", "gpu-b")
	after := probes(t, cp)
	if after["gpu-a"].UID == before["gpu-a"].UID || after["gpu-b"].UID != before["gpu-b"].UID {
		t.Error("not the probe of gpu-a alone was taken away")
	}
}
