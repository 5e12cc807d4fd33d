package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

// R1 in its short form, with UNPEND_ALL=1 of a larger storm, and with UNPEND_SOAK=1 as it is
// promised.
const (
	calmNodes     = 8
	stormOwners   = 12
	stormPods     = 500
	largePods     = 2_000
	stormEvents   = 2_500
	largeEvents   = 10_000
	soakEvents    = 100_000
	drainedWithin = time.Minute
	callsASecond  = 20
	callsOver     = 10 * time.Second // that they are counted over
	mostMemory    = 256 << 20
	// eventsASecond is what a processor of its own suffices the service for. How many come a
	// second here is for the API server to say, and for who makes them.
	eventsASecond = 1_500
)

// soak says whether the long form of a promise is asked for.
func soak() bool { return os.Getenv("UNPEND_SOAK") == "1" }

// promiseR01: a scheduler says no to hundreds or thousands of pods of 12 owners, over and over.
func promiseR01(t *testing.T) {
	needsControlPlane(t)
	many, events := controlplane.Of(stormPods, largePods), controlplane.Of(stormEvents, largeEvents)
	if soak() {
		many, events = largePods, soakEvents
	}
	c := start(t, controlplane.Extras{Alone: true})
	s := newStorm(t, c)
	ready := time.Now()
	pods := s.pods(many)
	began := time.Now()
	ours, theirs := controlplane.ProcessorOf(t, s.service.cmd.Process.Pid), c.Processor(t, "kube-apiserver")
	s.events(pods, events)
	ended := time.Now()
	drained := s.drained(ended)
	ours, theirs = controlplane.ProcessorOf(t, s.service.cmd.Process.Pid)-ours, c.Processor(t, "kube-apiserver")-theirs
	could := float64(events) / ours.Seconds()
	_, most := controlplane.MemoryOf(t, s.service.cmd.Process.Pid)
	calls := busiest(t, c, ready)
	rate := float64(events) / ended.Sub(began).Seconds()

	held := countHeld(t, map[string]bool{
		fmt.Sprintf("%d incidents, %d are right", len(s.known()), stormOwners): len(s.known()) == stormOwners,
		fmt.Sprintf("drained after %s, not %s", drained, drainedWithin):        drained <= drainedWithin,
		fmt.Sprintf("%d MiB", most>>20):                                        most <= mostMemory,
		fmt.Sprintf("%.1f requests a second", calls):                           calls <= callsASecond,
		fmt.Sprintf("%s of processor time for %d events", ours, events):        could >= eventsASecond,
	})
	report(t, held, 5, fmt.Sprintf("%d events on %d pods at %.0f/s: %d incidents, drained %.1f s after the last, RSS at most %d MiB, own requests at most %.1f/s over %s, "+
		"processor time %.1f s, and of the API server %.1f s: a processor suffices for %.0f/s",
		events, many, rate, len(s.known()), drained.Seconds(), most>>20, calls, callsOver, ours.Seconds(), theirs.Seconds(), could))
}

// storm is a service that watches a cluster without a scheduler, and who speaks for one.
type storm struct {
	*testing.T
	client  kubernetes.Interface
	ns      string
	service *process
}

func newStorm(t *testing.T, c *controlplane.ControlPlane) *storm {
	t.Helper()
	s := calm(t, c)
	s.service = startService(t, c)
	return s
}

// calm is a storm before it begins, and without the service.
func calm(t *testing.T, c *controlplane.ControlPlane) *storm {
	t.Helper()
	config := c.Config()
	config.QPS = -1
	s := &storm{T: t, client: kubernetes.NewForConfigOrDie(config), ns: "storm"}
	_, err := s.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}}, metav1.CreateOptions{})
	must(t, err)
	_, err = s.client.CoreV1().ServiceAccounts(s.ns).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	must(t, err)
	for i := range calmNodes {
		_, err := s.client.CoreV1().Nodes().Create(t.Context(), all1g(fmt.Sprintf("gpu-%d", i)).Object(time.Now()), metav1.CreateOptions{})
		must(t, err)
	}
	return s
}

// startService starts what the chart starts, and waits until it is ready.
func startService(t *testing.T, c *controlplane.ControlPlane) *process {
	t.Helper()
	address, path := controlplane.FreeAddress(t), filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(path, fmt.Appendf(nil, "bus: {storeDir: %s}\nweb: {metrics: %q}\n", t.TempDir(), address), 0o600))
	p := newProcess(t, nil, "unpend", "run", "--config", path, "--kubeconfig", c.Kubeconfig())
	p.start(t)
	controlplane.Eventually(t, 2*time.Minute, "the service is ready", func() (bool, string) { return answers(address, "/readyz", "ok") })
	return p
}

// inParallel does something for each of some numbers, many at a time.
func inParallel(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 24 {
		workers.Go(func() {
			for i := int(next.Add(1) - 1); i < n && !t.Failed(); i = int(next.Add(1) - 1) {
				if err := do(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if workers.Wait(); t.Failed() {
		t.FailNow()
	}
}

// pods are so many, made by their owners, and refused.
func (s *storm) pods(n int) []*corev1.Pod {
	s.Helper()
	owners := make([]*appsv1.ReplicaSet, stormOwners)
	for i := range owners {
		labels := map[string]string{"app": fmt.Sprint(i)}
		rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("serve-%d", i)}, Spec: appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: wants2g()}}}
		var err error
		owners[i], err = s.client.AppsV1().ReplicaSets(s.ns).Create(s.Context(), rs, metav1.CreateOptions{})
		must(s.T, err)
	}
	out := make([]*corev1.Pod, n)
	inParallel(s.T, n, func(i int) (err error) {
		o := owners[i%stormOwners]
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", o.Name, i), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}}, Spec: wants2g()}
		if out[i], err = s.client.CoreV1().Pods(s.ns).Create(s.Context(), pod, metav1.CreateOptions{}); err != nil {
			return err
		}
		status := `{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/8 nodes are available: 8 Insufficient nvidia.com/mig-2g.10gb."}]}}`
		_, err = s.client.CoreV1().Pods(s.ns).Patch(s.Context(), out[i].Name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
		return err
	})
	return out
}

func wants2g() corev1.PodSpec {
	zero := int64(0)
	return corev1.PodSpec{TerminationGracePeriodSeconds: &zero, AutomountServiceAccountToken: new(bool), Containers: []corev1.Container{{Name: "main", Image: "registry.example/x",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/mig-2g.10gb": resource.MustParse("1")}}}}}
}

// events are the scheduler's, on each pod in turn.
func (s *storm) events(pods []*corev1.Pod, n int) {
	s.Helper()
	inParallel(s.T, n, func(i int) error {
		p, now := pods[i%len(pods)], metav1.Now()
		_, err := s.client.CoreV1().Events(s.ns).Create(s.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", p.Name, i)},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}, Reason: "FailedScheduling", Type: corev1.EventTypeWarning,
			Message: "0/8 nodes are available: 8 Insufficient nvidia.com/mig-2g.10gb. no new claims to deallocate, preemption: 0/8 nodes are available: 8 No preemption victims found for incoming pod.",
			Source:  corev1.EventSource{Component: corev1.DefaultSchedulerName}, ReportingController: corev1.DefaultSchedulerName, Count: 1, FirstTimestamp: now, LastTimestamp: now}, metav1.CreateOptions{})
		return err
	})
}

// known is how many pods each incident had in its last diagnosis.
func (s *storm) known() map[string]int {
	out := map[string]int{}
	for _, line := range s.service.out.all() {
		var d diagnosis.Diagnosis
		if json.Unmarshal([]byte(line), &d) == nil && d.Incident != "" {
			out[d.Incident] = d.Pods.Waiting
		}
	}
	return out
}

// drained waits until every pod that a List has is in an incident's diagnosis, and says
// how long that took.
func (s *storm) drained(since time.Time) time.Duration {
	s.Helper()
	list, err := s.client.CoreV1().Pods(metav1.NamespaceAll).List(s.Context(), metav1.ListOptions{ResourceVersion: "0"})
	must(s.T, err)
	controlplane.Eventually(s.T, 2*drainedWithin, "every pod is accounted for", func() (bool, string) {
		sum := 0
		for _, n := range s.known() {
			sum += n
		}
		return sum == len(list.Items), fmt.Sprintf("%d pods of %d in %d incidents", sum, len(list.Items), len(s.known()))
	})
	return time.Since(since)
}

// busiest is how many requests the service made a second, over the worst stretch since
// some moment.
func busiest(t *testing.T, c *controlplane.ControlPlane, since time.Time) float64 {
	t.Helper()
	var at []time.Time
	for _, e := range c.AuditEvents(t) {
		if strings.HasPrefix(e.UserAgent, "unpend/") && e.Received.After(since) {
			at = append(at, e.Received)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	most := 0
	for i, from := 0, 0; i < len(at); i++ {
		for at[i].Sub(at[from]) > callsOver {
			from++
		}
		most = max(most, i-from+1)
	}
	return float64(most) / callsOver.Seconds()
}
