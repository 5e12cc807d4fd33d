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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// The probe's part of the chart, installed on a real control plane with two GPU
// nodes and one without the label, run by the real DaemonSet controller, spoken for
// by the tokens that the API server gives its pods.
func TestProbeOnARealControlPlane(t *testing.T) {
	t.Parallel() // it waits for a control plane of its own
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
	t.Run("the fence holds what RBAC would let by", func(t *testing.T) { deletesItsOwn(t, cp) })
	t.Run("MIG manager's pause takes the probe away", func(t *testing.T) { pauses(t, cp) })
}

func install(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	objs := probeOnly(t, nil)
	send := chart.To(cp)
	for _, o := range objs {
		if err := send.Create(t, o); err != nil {
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
