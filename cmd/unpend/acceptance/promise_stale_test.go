package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/controlplane"
)

const staleWaits = 10 // pods, each for a node of its own

// change is what happens to a node, and what keeps a pod from it then.
type change struct {
	body   string
	cause  diagnosis.CauseID
	refuse string // in the scheduler's word
}

// changesOfCause come one after the other; each takes the one before back.
var changesOfCause = []change{
	{`{"spec":{"taints":[{"key":"team","value":"vision","effect":"NoSchedule"}]}}`, diagnosis.UntoleratedTaint, "untolerated taint"},
	{`{"spec":{"taints":null},"metadata":{"labels":{"nvidia.com/mig.config":"all-2g.10gb","nvidia.com/mig.config.state":"failed"}}}`, diagnosis.MIGConfigFailed, "Insufficient nvidia.com/mig-2g.10gb"},
	{`{"spec":{"unschedulable":true},"metadata":{"labels":{"nvidia.com/mig.config":"all-1g.5gb","nvidia.com/mig.config.state":"success"}}}`, diagnosis.NodeCordoned, "were unschedulable"},
	{`{"spec":{"unschedulable":null}}`, diagnosis.MIGLayoutMismatch, "Insufficient nvidia.com/mig-2g.10gb"},
}

// promiseR03: what keeps a pod changes, and the newest Event about it says what was before,
// in the scheduler's name. The diagnosis goes by the cluster as it is: before the scheduler
// itself does, who does not look again at a pod when a node gets a taint or is cordoned.
func promiseR03(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	for i := range staleWaits {
		c.AddNode(t, all1g(fmt.Sprintf("gpu-%d", i)))
	}
	c.WaitForServiceAccount(t, "default")
	s := serve(t, c)
	for i := range staleWaits {
		tpl := template("2g.10gb", nil)
		tpl.Spec.RestartPolicy, tpl.Spec.NodeSelector = corev1.RestartPolicyNever, map[string]string{corev1.LabelHostname: fmt.Sprintf("gpu-%d", i)}
		_, err := c.Client().BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("wait-%d", i)}, Spec: batchv1.JobSpec{Template: tpl}}, metav1.CreateOptions{})
		must(t, err)
	}
	before := change{cause: diagnosis.MIGLayoutMismatch, refuse: "Insufficient nvidia.com/mig-2g.10gb"}
	toldOfAll(t, s, before)
	held, stale, ahead := 0, 0, 0
	var worst time.Duration
	for _, now := range changesOfCause {
		for i := range staleWaits {
			_, err := c.Client().CoreV1().Nodes().Patch(t.Context(), fmt.Sprintf("gpu-%d", i), types.StrategicMergePatchType, []byte(now.body), metav1.PatchOptions{})
			must(t, err)
		}
		stale += saysAgain(t, c, before)
		began := time.Now()
		held += toldOfAll(t, s, now)
		worst = max(worst, time.Since(began))
		for _, says := range conditionsOf(t, c) {
			if !strings.Contains(says, now.refuse) {
				ahead++
			}
		}
		before = now
	}
	report(t, held, staleWaits*len(changesOfCause), fmt.Sprintf("changes of what keeps a pod, with %d Events that say what was before: each diagnosis is what its node says, at most %.1f s later, %d of them while the pod's condition was out of date too; no note of the scheduler's is quoted", stale, worst.Seconds(), ahead))
}

// staleMark is in every note that is out of date.
const staleMark = "said once more"

// saysAgain has an Event of each pod that waits say, in the scheduler's name and as the
// newest, what it said before.
func saysAgain(t *testing.T, c *controlplane.ControlPlane, before change) (n int) {
	t.Helper()
	pods, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, p := range pods.Items {
		later := metav1.NewTime(time.Now().Add(time.Hour))
		_, err := c.Client().CoreV1().Events("default").Create(t.Context(), &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: p.Name + "."},
			InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}, Reason: "FailedScheduling", Type: corev1.EventTypeWarning,
			Message: fmt.Sprintf("0/%d nodes are available: 1 %s (%s).", staleWaits, before.refuse, staleMark), Source: corev1.EventSource{Component: corev1.DefaultSchedulerName},
			ReportingController: corev1.DefaultSchedulerName, Count: 99, FirstTimestamp: later, LastTimestamp: later}, metav1.CreateOptions{})
		must(t, err)
		n++
	}
	return n
}

// toldOfAll waits until the last diagnosis of each names this cause, of its node, and not the
// one before. It counts them.
func toldOfAll(t *testing.T, o *observer, now change) (told int) {
	t.Helper()
	controlplane.Eventually(t, 30*time.Second, fmt.Sprintf("all are told by %s", now.cause), func() (bool, string) {
		o.lives(t)
		var not []string
		told = 0
		for i := range staleWaits {
			name, node := fmt.Sprintf("wait-%d", i), fmt.Sprintf("gpu-%d", i)
			causes := keeping(o.of("default", name), node)
			others := slices.DeleteFunc(slices.Clone(causes), func(id diagnosis.CauseID) bool { return id == now.cause || id == diagnosis.MIGLayoutMismatch })
			if !slices.Contains(causes, now.cause) || len(others) > 0 {
				not = append(not, fmt.Sprintf("%s: %s", name, causes))
				continue
			}
			told++
		}
		return told == staleWaits, strings.Join(not, "\n")
	})
	if n := o.told(staleMark); n > 0 {
		t.Errorf("%d lines quote a note that is out of date", n)
	}
	return told
}

// conditionsOf is what the scheduler says in the pod of each Job.
func conditionsOf(t *testing.T, c *controlplane.ControlPlane) map[string]string {
	t.Helper()
	pods, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	must(t, err)
	out := map[string]string{}
	for _, p := range pods.Items {
		for _, k := range p.Status.Conditions {
			if k.Type == corev1.PodScheduled {
				out[p.Labels[batchv1.JobNameLabel]] = k.Message
			}
		}
	}
	return out
}

// keeping are the causes that keep a node, as the last diagnosis has them.
func keeping(all []diagnosis.Summary, node string) (causes []diagnosis.CauseID) {
	if len(all) == 0 {
		return nil
	}
	for _, g := range all[len(all)-1].Nodes {
		for _, b := range g.Blockers {
			if slices.Contains(g.Names, node) {
				causes = append(causes, b.Cause)
			}
		}
	}
	return causes
}
