package parts

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// asked is the only DaemonSet of a cluster, and its only node.
func asked(ds *appsv1.DaemonSet, labels map[string]string, taints ...corev1.Taint) (*Set, *view.Node) {
	w := view.New(&cluster.State{DaemonSets: []*appsv1.DaemonSet{ds}, Nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}, Spec: corev1.NodeSpec{Taints: taints}}}})
	return Of(w).Named(ds.Namespace, ds.Name), w.Nodes["n"]
}

// required is an affinity for nodes that meet one of the terms.
func required(terms ...[]corev1.NodeSelectorRequirement) *corev1.Affinity {
	of := &corev1.NodeSelector{}
	for _, all := range terms {
		of.NodeSelectorTerms = append(of.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: all})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: of}}
}

// What keeps a DaemonSet off a node is each label of its selector, its affinity and each taint;
// preferences, and taints that come and go with the node's state, keep nobody off.
func TestWhatKeepsADaemonSetOff(t *testing.T) {
	need := func(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
	}
	type terms = [][]corev1.NodeSelectorRequirement
	const in = corev1.NodeSelectorOpIn
	for name, k := range map[string]struct {
		selector map[string]string
		terms    terms
		taints   []corev1.Taint
		count    int
		text     string
	}{
		"nothing":            {map[string]string{"pool": "gpu"}, terms{{need("zone", in, "a")}}, nil, 0, ""},
		"a label":            {map[string]string{"pool": "gpu", "team": "ml"}, nil, nil, 1, "it selects nodes by label team=ml, which is absent"},
		"another value":      {map[string]string{"pool": "cpu"}, nil, nil, 1, `it selects nodes by label pool=cpu, here it is "gpu"`},
		"an empty value":     {map[string]string{"none": ""}, nil, nil, 1, "it selects nodes by label none=, which is absent"},
		"two labels":         {map[string]string{"x": "1", "pool": "cpu"}, nil, nil, 2, `it selects nodes by label pool=cpu, here it is "gpu"; it selects nodes by label x=1, which is absent`},
		"its affinity":       {nil, terms{{need("zone", in, "b", "c"), need("x", corev1.NodeSelectorOpExists)}, {need("zone", corev1.NodeSelectorOpDoesNotExist)}, {need("zone", corev1.NodeSelectorOpNotIn, "a")}}, nil, 1, "its node affinity wants zone=b|c and x, or no zone, or zone NotIn a"},
		"both":               {map[string]string{"x": "1"}, terms{{need("zone", in, "b")}}, nil, 2, "it selects nodes by label x=1, which is absent; its node affinity wants zone=b"},
		"the selector alone": {map[string]string{"x": "1"}, terms{{need("zone", in, "a")}}, nil, 1, "it selects nodes by label x=1, which is absent"},
		"a taint":            {nil, nil, []corev1.Taint{{Key: "team", Value: "ml", Effect: corev1.TaintEffectNoSchedule}, {Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}, 1, "it does not tolerate taint team=ml:NoSchedule"},
		"all of it":          {map[string]string{"x": "1"}, terms{{need("zone", in, "b")}}, []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoExecute}}, 3, "it selects nodes by label x=1, which is absent; its node affinity wants zone=b; it does not tolerate taint team:NoExecute"},
		"a preference":       {nil, nil, []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectPreferNoSchedule}}, 0, ""},
		"the node's state":   {nil, nil, []corev1.Taint{{Key: "node.kubernetes.io/network-unavailable", Effect: corev1.TaintEffectNoSchedule}}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "nfd"}}
			ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "nfd-worker"}}
			ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}}
			ds.Spec.Template.Spec.NodeSelector = k.selector
			if k.terms != nil {
				ds.Spec.Template.Spec.Affinity = required(k.terms...)
			}
			d, n := asked(ds, map[string]string{"pool": "gpu", "zone": "a"}, k.taints...)
			m := d.Misses(n)
			if m.Count() != k.count || m.None() != (k.count == 0) || d.Text(n, m) != k.text {
				t.Errorf("%d, none %v: %s", m.Count(), m.None(), d.Text(n, m))
			}
			if claims := d.Claims(n, m); (len(claims) > 0) != (k.count > 0) {
				t.Errorf("claims %v", claims)
			}
		})
	}
}

// One more label may be all that an affinity wants.
func TestWhatAnAffinityAccepts(t *testing.T) {
	const gpuPresent = "nvidia.com/gpu.present"
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: "plugin"}}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: view.PluginName}}
	ds.Spec.Template.Spec.Affinity = required([]corev1.NodeSelectorRequirement{{Key: gpuPresent, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"}}})
	d, n := asked(ds, nil)
	for _, k := range []struct {
		key, value string
		want       bool
	}{{gpuPresent, "true", true}, {gpuPresent, "false", false}, {"team", "true", false}} {
		if got := d.Accepts(n, k.key, k.value); got != k.want {
			t.Errorf("%s=%s: %v", k.key, k.value, got)
		}
	}
	if n.Labels != nil {
		t.Errorf("the node was labelled: %v", n.Labels)
	}
}

// Of what containers say, what a person can find in the pod's status is claimed.
func TestClaimsAboutContainers(t *testing.T) {
	terminated := func(code int32, message string) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, Message: message}
	}
	const at, init = "status.containerStatuses[name=c]", "status.initContainerStatuses[name=c]"
	for name, k := range map[string]struct {
		status corev1.ContainerStatus
		init   bool
		want   []diagnosis.Claim
	}{
		"waits":            {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no  such"}}}, false, []diagnosis.Claim{{Path: at + ".state.waiting.reason", Op: diagnosis.Is, Value: "ErrImagePull"}, {Path: at + ".state.waiting", Op: diagnosis.Contains, Value: "no such"}}},
		"waits, no words":  {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}}, true, []diagnosis.Claim{{Path: init + ".state.waiting.reason", Op: diagnosis.Is, Value: "PodInitializing"}}},
		"waits, no reason": {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}, false, []diagnosis.Claim{{Path: at, Op: diagnosis.Exists}}},
		"has ended":        {corev1.ContainerStatus{State: corev1.ContainerState{Terminated: terminated(2, "x")}}, false, []diagnosis.Claim{{Path: at + ".state.terminated.exitCode", Op: diagnosis.Is, Value: "2"}}},
		"runs again": {corev1.ContainerStatus{RestartCount: 3, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: corev1.ContainerState{Terminated: terminated(1, "no  card")}}, false,
			[]diagnosis.Claim{{Path: at + ".state.running", Op: diagnosis.Exists}, {Path: at + ".restartCount", Op: diagnosis.Is, Value: "3"}, {Path: at + ".lastState.terminated.exitCode", Op: diagnosis.Is, Value: "1"}, {Path: at + ".lastState.terminated", Op: diagnosis.Contains, Value: "no card"}}},
		"ran, no words": {corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{Terminated: terminated(1, "")}}, false, []diagnosis.Claim{{Path: at, Op: diagnosis.Exists}, {Path: at + ".restartCount", Op: diagnosis.Is, Value: "0"}, {Path: at + ".lastState.terminated.exitCode", Op: diagnosis.Is, Value: "1"}}},
	} {
		k.status.Name = "c"
		if got := containerClaims(k.status, k.init); fmt.Sprint(got) != fmt.Sprint(k.want) {
			t.Errorf("%s: %v, want %v", name, got, k.want)
		}
	}
}
