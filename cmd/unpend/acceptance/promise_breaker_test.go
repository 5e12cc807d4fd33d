package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/remediate/guard"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR22: a quarter of the GPU nodes become NotReady at once. The breaker opens,
// nothing is begun, a kill -9 does not close it, nor do the nodes when they are back:
// a person does, by the command that is shown. Nodes that we cordoned never count.
func promiseR22(t *testing.T) {
	needsControlPlane(t)
	const rounds = 3
	p := newPool(t, 9)
	p.guards(t, "{nodesInFlight: 4, poolUnavailablePercent: 100}")                                                    // so that own cordons are many
	must(t, p.Client().CoreV1().ConfigMaps(p.ns).Delete(t.Context(), guard.BreakerConfigMap, metav1.DeleteOptions{})) // somebody has
	proxy := newFaultProxy(t, p.lane, p.ns, "executor-"+p.ns)
	config := executorConfig(t, p.ns, "")
	x := startExecutor(t, "executor-0", config, proxy)
	own := p.ownCordons(t)

	fragile := p.withoutKubelet(t, 3)
	var opened []time.Duration
	for range rounds {
		opened = append(opened, p.lose(t, fragile))
		if len(opened) < rounds {
			p.back(t, fragile)
			p.reset(t, p.resetCommand(t))
		}
	}
	node := p.nodes[8]
	p.waits(t, node, "2g.10gb", 1)
	plans := p.plans(t, node)
	p.approve(t, plans)
	p.queued(t, plans[node].Name, p.resetCommand(t))
	x.kill()
	p.back(t, fragile)
	before := len(proxy.made())
	startExecutor(t, "executor-0", config, proxy)
	p.stillQueued(t, plans[node].Name, 12*time.Second)
	if made := proxy.made()[before:]; len(made) != 0 {
		t.Errorf("written while the breaker is open: %v", made)
	}
	command := p.resetCommand(t)
	p.reset(t, command)
	p.end(t, time.Minute, plans)
	phases(t, plans, v1alpha1.Succeeded)
	worst, held := slices.Max(opened), 0
	for _, d := range opened {
		if d <= 5*time.Second {
			held++
		}
	}
	report(t, held, rounds, fmt.Sprintf("3 of 12 nodes lost: open within %.1f s at worst; after kill -9, with the nodes back, nothing begun in 12 s; reset by `%.46s…`; %d of 9 nodes cordoned by ourselves did not open it", worst.Seconds(), command, own))
}

// ownCordons has four plans carried out at once and wants the breaker closed at the
// end. It returns how many nodes were cordoned by us at one time.
func (p *pool) ownCordons(t *testing.T) int {
	t.Helper()
	few := p.nodes[:4]
	for _, node := range few {
		p.stack.SetFaults(node, sim.Faults{Slow: 5 * time.Second})
		p.waits(t, node, "2g.10gb", 1)
	}
	plans := p.plans(t, few...)
	seen := p.census(t)
	p.approve(t, plans)
	p.end(t, time.Minute, plans)
	phases(t, plans, v1alpha1.Succeeded)
	_, _, worked, _ := seen.seen(t)
	if worked < 3 {
		t.Errorf("only %d nodes were cordoned at once: that opens no breaker anyway", worked)
	}
	if open, why := p.breaker(t); open {
		t.Errorf("our own cordons have opened the breaker: %s", why)
	}
	return worked
}

// withoutKubelet makes nodes that nobody keeps Ready: they are what the test says.
func (p *pool) withoutKubelet(t *testing.T, n int) []string {
	t.Helper()
	var out []string
	for i := range n {
		node := all1g(fmt.Sprintf("gpu-fragile-%d", i+1)).Object(time.Now())
		maps.DeleteFunc(node.Annotations, func(k, _ string) bool { return strings.HasPrefix(k, "kwok") })
		p.add(t, node)
		out = append(out, node.Name)
	}
	p.open(t)
	return out
}

func (p *pool) setReady(t *testing.T, node string, is corev1.ConditionStatus) {
	t.Helper()
	p.status(t, node, func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
				c.Status, c.LastTransitionTime, c.LastHeartbeatTime = is, metav1.Now(), metav1.Now()
			}
		}
	})
}

// lose has nodes become NotReady, and says how long the breaker took to open.
func (p *pool) lose(t *testing.T, nodes []string) time.Duration {
	t.Helper()
	// Conditions have whole seconds: not in the one in which a node was made, or the
	// breaker was reset.
	<-time.After(2 * time.Second)
	for _, node := range nodes {
		p.setReady(t, node, corev1.ConditionFalse)
	}
	lost := time.Now()
	controlplane.Eventually(t, 30*time.Second, "the breaker opens", func() (bool, string) { return p.breaker(t) })
	return time.Since(lost)
}

func (p *pool) back(t *testing.T, nodes []string) {
	t.Helper()
	for _, node := range nodes {
		p.setReady(t, node, corev1.ConditionTrue)
	}
}

// breaker reads it in the API.
func (p *pool) breaker(t *testing.T) (open bool, why string) {
	t.Helper()
	cm, err := p.Client().CoreV1().ConfigMaps(p.ns).Get(t.Context(), guard.BreakerConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, "never written"
	}
	must(t, err)
	return cm.Data["open"] == "true", cm.Data["why"]
}

// queued waits until the plan says that it is held back, and by which command a person
// ends that.
func (p *pool) queued(t *testing.T, plan, command string) {
	t.Helper()
	controlplane.Eventually(t, 30*time.Second, "the plan is held back by the breaker", func() (bool, string) {
		rem, err := p.store().Get(t.Context(), plan)
		must(t, err)
		held := rem.Status.Phase == v1alpha1.Queued && strings.Contains(rem.Status.Message, "the breaker is open") && strings.Contains(rem.Status.Message, "3 of 12 GPU nodes") && strings.HasSuffix(rem.Status.Message, command)
		return held, fmt.Sprintf("%s %s", rem.Status.Phase, rem.Status.Message)
	})
}

// stillQueued wants a plan not begun, at any look for so long.
func (p *pool) stillQueued(t *testing.T, plan string, long time.Duration) {
	t.Helper()
	end := time.Now().Add(long)
	controlplane.Eventually(t, 2*long, "a while passes", func() (bool, string) {
		rem, err := p.store().Get(t.Context(), plan)
		must(t, err)
		if rem.Status.Phase != v1alpha1.Queued || len(rem.Status.Journal) != 0 {
			t.Fatalf("%s: %s", rem.Status.Phase, rem.Status.Message)
		}
		return time.Now().After(end), ""
	})
}

// resetCommand is what `unpend status` tells a person to type.
func (p *pool) resetCommand(t *testing.T) string {
	t.Helper()
	code, out, errs := call(t, "status", "--executor-namespace", p.ns, "--kubeconfig", p.Kubeconfig())
	_, command, shown := strings.Cut(out, "close it: ")
	if code != 0 || !shown || !strings.Contains(out, "OPEN since") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	command, _, _ = strings.Cut(command, "\n")
	return strings.TrimSpace(command)
}

// reset has a shell run the command. A function stands in for kubectl: it gives back
// what kubectl would be called with, and that is done.
func (p *pool) reset(t *testing.T, command string) {
	t.Helper()
	out, err := exec.Command("sh", "-c", `kubectl() { printf '%s\n' "$@"; }; `+command).Output()
	must(t, err)
	args := strings.Split(strings.TrimSpace(string(out)), "\n")
	want := []string{"patch", "configmap", guard.BreakerConfigMap, "--type", "merge", "-p", "", "-n", p.ns}
	if len(args) != len(want) || !json.Valid([]byte(args[6])) {
		t.Fatalf("%s would call kubectl with %q", command, args)
	}
	patch := args[6]
	if want[6] = patch; !slices.Equal(args, want) {
		t.Fatalf("kubectl would be called with %q", args)
	}
	_, err = p.Client().CoreV1().ConfigMaps(p.ns).Patch(t.Context(), guard.BreakerConfigMap, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	must(t, err)
}
