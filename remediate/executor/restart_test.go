package executor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// plugin is the DaemonSet of the device plugin, on the node of this cell.
func (c *cell) plugin(t *testing.T, node string) corev1.Pod {
	t.Helper()
	labels := map[string]string{"app": "nvidia-device-plugin-daemonset"}
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: labels["app"]}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: on(node, spec("", ""))}}}
	if _, err := c.Client().AppsV1().DaemonSets(c.ns).Create(t.Context(), ds, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return c.running(t, labels["app"], 1)[0]
}

// pluginDown is a node that has two whole GPUs and, with its device plugin, offers none,
// and a pod that waits for one.
func (c *cell) pluginDown(t *testing.T) (node string, plugin corev1.Pod, d diagnosis.Diagnosis, f diagnosis.Fix) {
	t.Helper()
	node = c.gpuNode(t, 1, func(n *sim.Node) { n.GPUs, n.MIGOff, n.Layouts, n.Config = 2, []int{0, 1}, nil, "all-disabled" })
	plugin = c.plugin(t, node)
	controlplane.Eventually(t, 10*time.Second, "the kubelet knows the plugin", func() (bool, string) {
		return c.stack.Registered(node) == plugin.UID, ""
	})
	c.offering(t, node, "0", true)
	s := spec("", "")
	s.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	c.job(t, s)
	d, f = c.offers(t, diagnosis.Waits, diagnosis.RestartDevicePlugin)
	return node, plugin, d, f
}

// The device plugin's pod is evicted, and nothing else written; its DaemonSet makes it
// again, the node offers its GPUs again, and the pod runs. By the executor also where it
// crashes before and after each write.
func TestRestartDevicePlugin(t *testing.T) {
	for name, crashes := range map[string]bool{"one executor": false, "crashes at every write": true} {
		t.Run(name, func(t *testing.T) {
			c := newCell(t)
			node, plugin, d, f := c.pluginDown(t)
			if !f.Automatic || len(f.Cost.Evictions) != 0 || !slices.Equal(f.Cost.Nodes, []string{node}) {
				t.Errorf("%+v", f)
			}
			c.crash.always = crashes
			rem := c.recorded(t, d, f)
			c.decide(t, rem, "alice", v1alpha1.Approve)
			rem = c.carriedOut(t, rem.Name, c.executor)
			c.crash.always = false
			ended(t, rem, v1alpha1.Succeeded, c.ns+"/training-", " runs")
			var steps []string
			for _, e := range rem.Status.Journal {
				steps = append(steps, string(e.Step))
			}
			if want := []string{fmt.Sprintf("0/evict/%s/%s", c.ns, plugin.Name), "0/registered", "run"}; !slices.Equal(steps, want) || rem.Status.Evicted != 1 {
				t.Errorf("%d evicted by %q, want %q", rem.Status.Evicted, steps, want)
			}
			if again := c.running(t, plugin.Labels["app"], 1)[0]; again.UID == plugin.UID {
				t.Error("the plugin's pod is the same")
			}
			n := c.node(t, node)
			if q := n.Status.Allocatable["nvidia.com/gpu"]; q.Value() != 2 || n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
				t.Errorf("offers %s, unschedulable %v, mark %q", q.String(), n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
			}
			c.wrote(t, []write{{"create", "pods/eviction", "", 201}})
		})
	}
}

// A plugin that starts again and sees nothing ends the plan, which says so; nobody says
// that the pod runs.
func TestPluginDoesNotRegister(t *testing.T) {
	c := newCell(t)
	c.deps.Deadlines.Run = 4 * time.Second
	node, plugin, d, f := c.pluginDown(t)
	c.stack.SetFaults(node, sim.Faults{Mute: true})
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	rem = c.carriedOut(t, rem.Name, c.executor)
	ended(t, rem, v1alpha1.Failed, "wait until the device plugin of "+node+" has registered its devices again: not within 4s: node "+node+" offers 0 of nvidia.com/gpu, it has 2", "(done before, and left so: pod "+c.ns+"/"+plugin.Name+" was evicted)")
	if n := c.node(t, node); n.Spec.Unschedulable || n.Annotations[diagnosis.OperationAnnotation] != "" {
		t.Errorf("unschedulable %v, mark %q", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation])
	}
	c.wrote(t, []write{{"create", "pods/eviction", "", 201}})
}

// A plugin's pod that no DaemonSet would make again is not evicted.
func TestPluginOfNobody(t *testing.T) {
	c := newCell(t)
	node := c.gpuNode(t, 1, func(n *sim.Node) { n.MIGOff, n.Layouts, n.Config = []int{0}, nil, "all-disabled" })
	c.pod(t, "nvidia-device-plugin", on(node, spec("", "")))
	c.offering(t, node, "0", true)
	s := spec("", "")
	s.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}
	c.job(t, s)
	d, f := c.offers(t, diagnosis.Waits, diagnosis.RestartDevicePlugin)
	if f.Automatic || len(f.Actions) != 0 || !strings.Contains(f.Commands[0], "grep device-plugin") {
		t.Errorf("%+v", f)
	}
	if _, err := Apply(t.Context(), c.deps, d.Incident, f.ID, "", func(journal.Progress) {}); err == nil || !strings.Contains(err.Error(), "is for a person to do") {
		t.Error(err)
	}
	c.wrote(t, nil)
}
