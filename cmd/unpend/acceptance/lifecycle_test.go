package acceptance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/slack/fakeslack"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/chart"
	"github.com/unpend/unpend/testdata/controlplane"
)

// previously is the chart as it was at its last version.
const previously = "../../../deploy/testdata/unpend-0.1.0.tgz"

// A release from its beginning to its end, by helm itself and by the real program in the place
// of its pods: the previous version of the chart is installed where only the restricted standard is
// admitted, a pod waits, its fix is approved and begun; helm uninstall is refused, and names the
// plan and the node; the upgrade, under way, to this version and to a pod for each changes nothing
// of the operation, which ends well and once; people are told by the notifier alone; and helm
// uninstall leaves nothing of the release, and no mark.
func TestReleaseFromItsBeginningToItsEnd(t *testing.T) {
	needsControlPlane(t)
	l := newLane(t)
	l.readsAll(t, approver)
	l.AddNode(t, all1g("gpu-1"))
	l.AddNode(t, all1g("gpu-2"))
	l.WaitForServiceAccount(t, "default")
	deploy("inference", "1g.5gb", 6)(t, l.ControlPlane)
	waitHolders(t, l.ControlPlane)
	const ns = "gpu-fixes"
	restricted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	_, err := l.Client().CoreV1().Namespaces().Create(t.Context(), restricted, metav1.CreateOptions{})
	must(t, err)
	l.WaitForServiceAccount(t, ns)
	l.secret(t, ns, "slack", "token", fakeslack.Token)
	l.secret(t, ns, "nats", "token", "let me in")
	before := l.everything(t)

	was, err := loader.Load(previously)
	must(t, err)
	h := l.helm(t, ns, controlplane.FreeAddress(t))
	values := chart.Values{"mode": "approve", "probe": chart.Values{"enabled": false}, "gpuOperator": chart.Values{"namespace": ""}, "config": chart.Values{"remediate": chart.Values{"poll": "200ms"}},
		"remediate": chart.Values{"approvers": chart.Values{"users": []any{approver}}, "kinds": chart.Values{"nominate": true}}}
	h.install(t, was, values)
	proxy := newFaultProxy(t, l, ns, "executor-before")
	proxy.set(laterThanCordoned)
	h.kubeconfigs["unpend-executor"] = proxy.kubeconfig
	h.ready(t)

	job("2g.10gb", "")(t, l.ControlPlane)
	waitRefused(t, l.ControlPlane, "")
	d := why(t, "-n", "default", "--kubeconfig", l.Kubeconfig())
	approval := newProcess(t, nil, "unpend", "approve", d.Incident+"#1", "--yes", "--executor-namespace", ns, "--kubeconfig", l.KubeconfigFor(t, approver))
	approval.start(t)
	plan, node := l.underWay(t)
	if err := h.uninstall(t); err == nil || !strings.Contains(h.hooked(), fmt.Sprintf("plan %.12s", plan)) || !strings.Contains(h.hooked(), node) {
		t.Errorf("helm uninstall: %v; its Job says %s", err, h.hooked())
	}
	if got := slices.Sorted(maps.Keys(h.pods(t))); !slices.Equal(got, []string{"unpend", "unpend-executor"}) {
		t.Errorf("of the release there are left %q", got)
	}

	h.stays(t)
	collector := newCollector(t)
	channel := fakeslack.New(time.Now)
	t.Cleanup(channel.Close)
	way := forwardTo(t, "slack.com:443", channel.URL())
	values["config"] = chart.Values{"remediate": chart.Values{"poll": "200ms"}, "traces": chart.Values{"url": collector.URL + "/v1/traces"}, "outbound": chart.Values{"allow": []any{"127.0.0.1"}}}
	maps.Copy(values, chart.Values{"layout": "separate", "nats": chart.Values{"existingSecret": "nats", "tokenKey": "token"}, "slack": chart.Values{"channel": someChannel, "cluster": "prod", "existingSecret": "slack"}})
	h.upgrade(t, chart.Load(t, "unpend"), values)
	h.stop(t)
	h.env["unpend-notifier"] = []string{"HTTPS_PROXY=" + way.address, "SSL_CERT_FILE=" + way.roots}
	h.ready(t)
	if got := slices.Sorted(maps.Keys(h.running)); !slices.Equal(got, []string{"unpend", "unpend-executor", "unpend-notifier"}) {
		t.Errorf("of the release there run %q", got)
	}
	training := func(says string) func() (bool, string) {
		return func() (bool, string) {
			n := 0
			for _, m := range channel.Messages("") {
				if strings.Contains(m.Shown(), "default/training") && strings.Contains(m.Shown(), says) {
					n++
				}
			}
			return n == 1, fmt.Sprintf("%d messages say %q", n, says)
		}
	}
	controlplane.Eventually(t, time.Minute, "people are told that it waits", training(""))
	proxy.set(nil)
	if code := approval.exits(t, 2*time.Minute); code != 0 {
		t.Errorf("who approved is told %d:\n%s", code, strings.Join(approval.out.all(), "\n"))
	}
	controlplane.Eventually(t, 3*time.Minute, "people are told that it is done", training("approved by "+approver+" → done in "))
	l.carriedOutOnce(t, d.Fixes[0])

	h.stop(t)
	collector.oneTrace(t, d.Incident, "diagnose", "tell slack", "carry out")
	must(t, h.uninstall(t))
	l.leavesNothing(t, before)
}

func (l *lane) secret(t *testing.T, ns, name, key, text string) {
	t.Helper()
	_, err := l.Client().CoreV1().Secrets(ns).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: text}}, metav1.CreateOptions{})
	must(t, err)
}

// ready starts what the release has run, and waits until each says that it works.
func (h *helmed) ready(t *testing.T) {
	t.Helper()
	for name, at := range h.start(t) {
		controlplane.Eventually(t, time.Minute, name+" is ready", func() (bool, string) { return answers(at, "/readyz", "ok") })
	}
}

// underWay waits until the one plan there is has cordoned its node, and names both.
func (l *lane) underWay(t *testing.T) (plan, node string) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, "the plan is under way", func() (bool, string) {
		nodes, err := l.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		for i := range nodes.Items {
			if mark, err := diagnosis.OperationOn(&nodes.Items[i]); err == nil && mark != nil {
				plan, node = mark.Plan, nodes.Items[i].Name
			}
		}
		return plan != "", "no node is marked"
	})
	return plan, node
}

// carriedOutOnce wants one plan, which has succeeded, and each of its victims evicted once.
func (l *lane) carriedOutOnce(t *testing.T, fix diagnosis.Fix) {
	t.Helper()
	plans, err := l.store().List(t.Context())
	must(t, err)
	if len(plans) != 1 || plans[0].Status.Phase != v1alpha1.Succeeded {
		t.Errorf("%d plans, the first %s %s", len(plans), plans[0].Status.Phase, plans[0].Status.Message)
	}
	evicted, want := map[string]int{}, map[string]int{}
	for _, e := range l.AuditEvents(t) {
		if e.ObjectRef.Subresource == "eviction" && e.ResponseStatus.Code == 201 {
			evicted[e.ObjectRef.Namespace+"/"+e.ObjectRef.Name]++
		}
	}
	for _, p := range fix.Cost.Evictions {
		want[p.Namespace+"/"+p.Name] = 1
	}
	if !maps.Equal(evicted, want) {
		t.Errorf("evicted %v, want %v", evicted, want)
	}
}

// everything is what the API server holds, but what comes and goes by itself.
func (l *lane) everything(t *testing.T) map[string]bool {
	t.Helper()
	lists, err := discovery.ServerPreferredResources(l.Client().Discovery())
	must(t, err)
	out := map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains([]string{"events", "endpointslices", "endpoints", "controllerrevisions", "ipaddresses"}, r.Name) {
				continue
			}
			all, err := l.Dynamic().Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			for _, o := range all.Items {
				out[strings.Join([]string{r.Name, o.GetNamespace(), o.GetName()}, "/")] = true
			}
		}
	}
	return out
}

// leavesNothing wants what was there before and, of what has come since, the pods and the Job of
// tenants and what people have recorded. No mark is on anything.
func (l *lane) leavesNothing(t *testing.T, before map[string]bool) {
	t.Helper()
	stays := func(name string) bool {
		return before[name] || strings.HasPrefix(name, "pods/default/") || strings.HasPrefix(name, "jobs/default/") || strings.HasPrefix(name, "leases/kube-") ||
			strings.HasPrefix(name, "remediations//") || strings.HasPrefix(name, "approvals//")
	}
	controlplane.Eventually(t, time.Minute, "nothing of the release is left", func() (bool, string) {
		var left []string
		for name := range l.everything(t) {
			if !stays(name) {
				left = append(left, name)
			}
		}
		slices.Sort(left)
		return len(left) == 0, fmt.Sprintf("%q", left)
	})
	nodes, err := l.Client().CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, n := range nodes.Items {
		marks := slices.Sorted(maps.Keys(n.Annotations))
		marks = append(marks, slices.Sorted(maps.Keys(n.Labels))...)
		for _, taint := range n.Spec.Taints {
			marks = append(marks, taint.Key)
		}
		if n.Spec.Unschedulable || slices.ContainsFunc(marks, func(k string) bool { return strings.HasPrefix(k, "unpend.dev/") }) {
			t.Errorf("node %s: unschedulable %v, %q", n.Name, n.Spec.Unschedulable, marks)
		}
	}
}
