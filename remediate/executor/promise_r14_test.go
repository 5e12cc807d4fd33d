package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// change is one of the world between the approval of a plan and its begin.
type change struct {
	name   string
	world  func(*testing.T, *cell) // the main case, where it is nil
	kinds  []diagnosis.FixKind     // of the plan; a repartition, where there are none
	change func(*testing.T, *cell, string)
	says   string // what the message names, with NS and NODE for the names
	again  bool   // whether there is another plan then
}

// promiseR14: whatever a plan rests on and changes before it begins makes it stale. It
// writes nothing, names what has changed, and where the fix still exists its new plan is
// there to be approved, and is carried out. What changes later ends it, and it takes back
// what it had begun.
func promiseR14(t *testing.T, l lanes) {
	var again atomic.Int32
	var scenes []scene
	for _, k := range controlplane.Some(append(changesOfNode(), changesOfOthers()...), 3) {
		scenes = append(scenes, scene{k.name, func(t *testing.T, c *cell) { changedBefore(t, c, k, &again) }})
	}
	n := len(scenes)
	scenes = append(scenes, changesMeanwhile()...)
	l.play(t, scenes, func() string {
		return fmt.Sprintf("%d kinds of change before the begin: 0 writes, %d new plans carried out; %d between two writes", n, again.Load(), len(scenes)-n)
	})
}

func changedBefore(t *testing.T, c *cell, k change, again *atomic.Int32) {
	node, kinds := c.name(1), k.kinds
	if kinds == nil {
		kinds = []diagnosis.FixKind{diagnosis.RepartitionGPU}
	}
	if k.world == nil {
		repartition(t, c)
	} else {
		k.world(t, c)
	}
	d, f := c.finds(t, kinds...)
	rem := c.recorded(t, d, f)
	c.decide(t, rem, "alice", v1alpha1.Approve)
	k.change(t, c, node)
	rem = c.carriedOut(t, rem.Name, c.one())
	ended(t, rem, v1alpha1.Stale, strings.NewReplacer("NS", c.ns, "NODE", node).Replace(k.says))
	c.wrote(t, nil)
	plans, err := plan.Store{Dynamic: c.Dynamic()}.List(t.Context())
	if err != nil || (len(plans) == 2) != k.again || len(plans) > 2 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	for _, next := range plans {
		if next.Name == rem.Name {
			continue
		}
		if !strings.Contains(rem.Status.Message, next.Name) || next.Spec.Requester != "executor" {
			t.Errorf("the new plan is %s by %q, the message %s", next.Name, next.Spec.Requester, rem.Status.Message)
		}
		c.decide(t, &next, "alice", v1alpha1.Approve)
		ended(t, c.carriedOut(t, next.Name, c.one()), v1alpha1.Succeeded)
		again.Add(1)
	}
}

func taint(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule})
}

func cordoned(is bool) func(*corev1.Node) { return func(n *corev1.Node) { n.Spec.Unschedulable = is } }

// changesOfNode are of the node whose GPU is re-made.
func changesOfNode() []change {
	edit := func(edit func(*corev1.Node)) func(*testing.T, *cell, string) {
		return func(t *testing.T, c *cell, node string) { c.editNode(t, node, edit) }
	}
	// idle is a node that nobody uses, so that its layout is anybody's to change.
	idle := func(t *testing.T, c *cell) {
		c.gpuNode(t, 1)
		c.job(t, spec("2g.10gb", ""))
	}
	return []change{
		{name: "the node is relabelled", change: edit(func(n *corev1.Node) { n.Labels["nvidia.com/mig.strategy"] = "single" }), says: "node NODE has changed: mig"},
		{name: "tainted", change: edit(taint), says: `node NODE has changed: taints is "team=x:NoSchedule"`, again: true},
		{name: "cordoned", change: edit(cordoned(true)), says: "node NODE has changed: unschedulable", again: true},
		{name: "uncordoned", world: func(t *testing.T, c *cell) {
			c.gpuNode(t, 1, func(n *sim.Node) { n.Cordoned = true })
			c.job(t, spec("2g.10gb", ""))
		}, kinds: []diagnosis.FixKind{diagnosis.UncordonNode, diagnosis.RepartitionGPU}, change: edit(cordoned(false)), says: "node NODE has changed: unschedulable", again: true},
		{name: "it advertises less", change: lessOfIt, says: "node NODE has changed: allocatable", again: true},
		{name: "its layout changes", world: idle, change: func(t *testing.T, c *cell, node string) {
			c.editNode(t, node, func(n *corev1.Node) { // pending, or a MIG manager that has not seen the node before takes it for done
				n.Labels[nodeprobe.LabelMIGConfig], n.Labels[nodeprobe.LabelMIGConfigState] = "all-3g.20gb", "pending"
			})
			controlplane.Eventually(t, time.Minute, "MIG manager is done", func() (bool, string) {
				n := c.node(t, node)
				q := n.Status.Allocatable["nvidia.com/mig-3g.20gb"]
				return n.Labels[nodeprobe.LabelMIGConfigState] == "success" && q.Value() == 2, n.Labels[nodeprobe.LabelMIGConfigState]
			})
		}, says: "node NODE has changed: allocatable", again: true},
		{name: "its report is gone", change: func(t *testing.T, c *cell, node string) {
			if err := c.Dynamic().Resource(nodeprobe.Resource).Delete(t.Context(), node, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, says: "node NODE has changed: gpu0"},
		{name: "its GPU is sick", change: func(t *testing.T, c *cell, node string) { c.health(t, node, false) }, says: `node NODE has changed: gpu0/health is "unhealthy", the plan relies on ""`},
		{name: "a holder comes", change: intruder, says: "node NODE has changed: gpu0@", again: true},
	}
}

func lessOfIt(t *testing.T, c *cell, node string) {
	controlplane.Eventually(t, 10*time.Second, "the status is changed", func() (bool, string) {
		n := c.node(t, node)
		n.Status.Allocatable["nvidia.com/mig-1g.5gb"] = *n.Status.Allocatable.Pods()
		_, err := c.Client().CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		return err == nil, "conflict"
	})
}

func intruder(t *testing.T, c *cell, node string) {
	c.deployment(t, "intruder", 1, on(node, spec("1g.5gb", "")))
	c.running(t, "intruder", 1)
}

// changesOfOthers are of pods, workloads, budgets, quotas and configs.
func changesOfOthers() []change {
	wrong := func(product string) func(*testing.T, *cell) {
		return func(t *testing.T, c *cell) {
			c.gpuNode(t, 1)
			s := spec("1g.5gb", "")
			s.NodeSelector = map[string]string{"nvidia.com/gpu.product": product}
			c.deployment(t, "serving", 1, s)
		}
	}
	patch := func(deployment, text string) func(*testing.T, *cell, string) {
		return func(t *testing.T, c *cell, _ string) {
			if _, err := c.Client().AppsV1().Deployments(c.ns).Patch(t.Context(), deployment, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return []change{
		{name: "a pod is replaced", change: func(t *testing.T, c *cell, _ string) {
			old := c.running(t, "inference", 3)[0]
			if err := c.Client().CoreV1().Pods(c.ns).Delete(t.Context(), old.Name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			controlplane.Eventually(t, 20*time.Second, "another runs", func() (bool, string) {
				for _, p := range c.running(t, "inference", 3) {
					if p.UID == old.UID {
						return false, "the old one"
					}
				}
				return true, ""
			})
		}, says: "pod NS/inference-", again: true},
		{name: "pods have left", change: func(t *testing.T, c *cell, node string) {
			patch("inference", `{"spec":{"replicas":1}}`)(t, c, node)
			c.running(t, "inference", 1)
			c.freed(t, node, 1)
		}, says: "pod NS/inference-", again: true},
		{name: "a budget guards them", change: func(t *testing.T, c *cell, _ string) {
			none := intstr.FromInt32(0)
			c.guard(t, "keep-inference", "inference", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none})
		}, says: "keep-inference"},
		{name: "a quota is changed", world: func(t *testing.T, c *cell) {
			c.gpuNode(t, 1)
			c.quota(t, "1")
			c.deployment(t, "serving", 3, spec("1g.5gb", ""))
			c.running(t, "serving", 1)
		}, kinds: []diagnosis.FixKind{diagnosis.RaiseQuota}, change: func(t *testing.T, c *cell, _ string) { c.raise(t, "0") }, says: `resourcequota NS/mig has changed: requests.nvidia.com/mig-1g.5gb is "0"`, again: true},
		{name: "the spec of the workload", world: wrong("NVIDIA-A100-SXM4-80GB"), kinds: []diagnosis.FixKind{diagnosis.FixSelector},
			change: func(t *testing.T, c *cell, node string) {
				patch("serving", `{"spec":{"template":{"spec":{"nodeSelector":{"example.com/zone":"b"}}}}}`)(t, c, node)
				c.waitingIn(t, "b")
			}, says: "the template of deployment NS/serving was changed"},
		{name: "somebody mended the workload", world: wrong("NVIDIA-A100-SXM4-80GB"), kinds: []diagnosis.FixKind{diagnosis.FixSelector},
			change: func(t *testing.T, c *cell, node string) {
				patch("serving", `{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)(t, c, node)
				c.running(t, "serving", 1)
			}, says: "no pod of Deployment NS/serving waits"},
		{name: "the workload is gone", change: func(t *testing.T, c *cell, _ string) {
			background := metav1.DeletePropagationBackground
			if err := c.Client().BatchV1().Jobs(c.ns).Delete(t.Context(), "training", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
				t.Fatal(err)
			}
			controlplane.Eventually(t, 10*time.Second, "its pod is gone", func() (bool, string) { return len(c.pods(t)) == 3, "" })
		}, says: "no pod of Job NS/training waits"},
		{name: "the ConfigMap is edited", world: func(t *testing.T, c *cell) {
			c.configured(t)
			repartition(t, c)
		}, change: func(t *testing.T, c *cell, _ string) {
			c.editConfig(t, func(s string) string {
				i := strings.Index(s, "  all-balanced:") // its counts become others
				return s[:i] + strings.Replace(s[i:], "1g.5gb: 2", "1g.5gb: 1", 1)
			})
		}, says: "MIG config all-balanced makes another layout of node NODE", again: true},
	}
}

// raise changes the quota, and waits until that is in force.
func (c *cell) raise(t *testing.T, hard string) {
	t.Helper()
	quotas := c.Client().CoreV1().ResourceQuotas(c.ns)
	controlplane.Eventually(t, 10*time.Second, "somebody raises the quota", func() (bool, string) {
		q, err := quotas.Get(t.Context(), "mig", metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		want := resource.MustParse(hard)
		q.Spec.Hard["requests.nvidia.com/mig-1g.5gb"] = want
		_, err = quotas.Update(t.Context(), q, metav1.UpdateOptions{})
		is := q.Status.Hard["requests.nvidia.com/mig-1g.5gb"]
		return err == nil && is.Cmp(want) == 0, "not in force"
	})
}

// freed waits until the probe reports so many holders.
func (c *cell) freed(t *testing.T, node string, holders int) {
	t.Helper()
	controlplane.Eventually(t, 20*time.Second, "the others have left", func() (bool, string) {
		n := 0
		for key := range view.NodeFacts(c.state(t), node) {
			if strings.HasPrefix(key, diagnosis.HolderPrefix(0)) {
				n++
			}
		}
		return n == holders, fmt.Sprint(n)
	})
}

// waitingIn waits until a pod waits that asks for a zone.
func (c *cell) waitingIn(t *testing.T, zone string) {
	t.Helper()
	controlplane.Eventually(t, 20*time.Second, "the new pod waits", func() (bool, string) {
		return slices.ContainsFunc(c.pods(t), func(p corev1.Pod) bool {
			return p.Spec.NodeSelector["example.com/zone"] == zone && len(p.Status.Conditions) > 0
		}), ""
	})
}

// configured has the operator's ConfigMap for the node in this namespace, which MIG
// manager's pod is in.
func (c *cell) configured(t *testing.T) {
	t.Helper()
	cm := sim.ConfigMap(c.ns, c.name(1)+"-mig-config", a100)
	if _, err := c.Client().CoreV1().ConfigMaps(c.ns).Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	manager := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mig-manager", Labels: map[string]string{"app": "nvidia-mig-manager"}}, Spec: spec("", "")}
	manager.Spec.NodeName = c.name(1)
	if _, err := c.Client().CoreV1().Pods(c.ns).Create(t.Context(), manager, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cell) editConfig(t *testing.T, edit func(string) string) {
	t.Helper()
	maps := c.Client().CoreV1().ConfigMaps(c.ns)
	cm, err := maps.Get(t.Context(), c.name(1)+"-mig-config", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	was := cm.Data["config.yaml"]
	if cm.Data["config.yaml"] = edit(was); cm.Data["config.yaml"] == was {
		t.Fatal("nothing is edited: " + was)
	}
	if _, err := maps.Update(context.WithoutCancel(t.Context()), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// changesMeanwhile are of what a plan relies on, between two of its writes.
func changesMeanwhile() []scene {
	config := "set nvidia.com/mig.config="
	edit := func(edit func(*corev1.Node)) func(*testing.T, *cell, string) {
		return func(t *testing.T, c *cell, node string) { c.editNode(t, node, edit) }
	}
	var out []scene
	for _, k := range []struct {
		name, at string
		change   func(*testing.T, *cell, string)
		says     string
		evicted  int
	}{
		{"tainted before the cordon", "cordon", edit(taint), "taints", 0},
		{"a victim's spec before its eviction", "evict", func(t *testing.T, c *cell, _ string) {
			for _, p := range c.pods(t) {
				if _, err := c.Client().CoreV1().Pods(c.ns).Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"main","image":"registry.example/y"}]}}`), metav1.PatchOptions{}); err != nil {
					t.Error(err)
				}
			}
		}, "the spec of Pod", 0},
		{"tainted before the label", config, edit(taint), "taints", 3},
		{"opened before the label", config, edit(cordoned(false)), "opened", 3},
		{"another strategy before the label", config, edit(func(n *corev1.Node) { n.Labels["nvidia.com/mig.strategy"] = "single" }), "mig", 3},
		{"a new holder before the label", config, func(t *testing.T, c *cell, node string) {
			s := spec("1g.5gb", "")
			s.NodeName = node
			c.pod(t, "intruder", s)
			c.running(t, "intruder", 1)
		}, "GPU 0", 3},
		{"less of it before the label", config, lessOfIt, "allocatable", 3},
	} {
		out = append(out, scene{k.name, func(t *testing.T, c *cell) {
			node, rem := c.approved(t)
			holders := c.running(t, "inference", 3)
			c.on[k.at] = func() { k.change(t, c, node) }
			rem = c.carriedOut(t, rem.Name, c.one())
			if ended(t, rem, v1alpha1.Stale, k.says); rem.Status.Evicted != k.evicted {
				t.Errorf("%d evicted, want %d", rem.Status.Evicted, k.evicted)
			}
			c.asBefore(t, node)
			c.noLocks(t)
			if k.evicted == 0 {
				c.untouched(t, holders...)
			}
			c.evictions(t, diagnosis.Fix{}, k.evicted)
			if k.at == "cordon" {
				c.wrote(t, nil)
			}
		}})
	}
	return out
}
