package acceptance

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
	"github.com/unpend/unpend/watcher/incident"
)

// A race of R13 is two clicks of one person, from two processes, and one of another,
// and each process tries three times; where the plan is recorded as Slack does that tries
// again. Two executors are up.
const (
	wholeRaces = 1000
	fewRaces   = 30
	tries      = 3
	fewAtOnce  = 8 // plans under way, each with a node of its own
	allAtOnce  = 25
	rounds     = 4 // as a whole; of plans that are carried out
)

// clicker is the command of a process that approves what it is told to: a plan and
// its uid a line. It answers with the uid of the decision that each of its tries came to.
func clicker() {
	if err := click(os.Args[1], os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitError)
	}
}

func click(who, kubeconfig string, in io.Reader, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	known, err := plan.NewIdentities([]plan.Identity{{Slack: "U0" + who, User: who}})
	if err != nil {
		return err
	}
	one := func(context.Context, *v1alpha1.Remediation) (int, string, error) { return 1, "", nil }
	slack := plan.Decider{Identities: known, Dynamic: custom, Persons: one, ActAs: func(string, []string) (dynamic.Interface, error) { return custom, nil }}
	store, lines := plan.Store{Dynamic: custom}, bufio.NewScanner(in)
	for lines.Scan() {
		var rem v1alpha1.Remediation
		name, uid, _ := strings.Cut(lines.Text(), " ")
		rem.Name, rem.UID = name, types.UID(uid)
		var answers []string
		for range tries {
			var a *v1alpha1.Approval
			var err error
			if uid == nobody {
				a, err = store.Decide(context.Background(), plan.NewApproval(&rem, who, nil, v1alpha1.Approve))
			} else {
				a, err = slack.Decide(context.Background(), plan.Word{Caller: plan.Caller{Via: plan.ViaSlack, ID: "U0" + who}, Plan: name, Remediation: rem.UID, Decision: v1alpha1.Approve})
			}
			if err != nil {
				return err
			}
			answers = append(answers, string(a.UID))
		}
		fmt.Fprintln(out, strings.Join(answers, " "))
	}
	return lines.Err()
}

// promiseR13: however many approve at once, a plan is carried out once.
func promiseR13(t *testing.T) {
	needsControlPlane(t)
	r := newRacecourse(t)
	began, passed := time.Now(), 0
	races, rounds := controlplane.Of(fewRaces, wholeRaces), controlplane.Of(1, rounds)
	carried := rounds * len(r.nodes)
	for n := range rounds {
		passed += r.round(t, n)
	}
	for n := range races - carried {
		passed += r.clicks(t, n)
	}
	passed -= r.once(t)
	report(t, passed, races, fmt.Sprintf("of 9 clicks by 2 people from 3 processes one decision of each is taken; the %d plans that are carried out, with 2 executors up, evict each pod uid once; the other %d are races for the API server alone; %.0f s",
		carried, races-carried, time.Since(began).Seconds()))
}

// nobody is the uid of plans that are not recorded.
const nobody = "nobody"

// clicks is a race for a plan that no executor knows.
func (r *racecourse) clicks(t *testing.T, n int) int {
	t.Helper()
	rem := v1alpha1.Remediation{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, n))), UID: nobody}}
	if r.race(t, rem) {
		return 1
	}
	return 0
}

// racecourse is a control plane with nodes that are each filled by one pod, the people
// who approve, and the executors.
type racecourse struct {
	*lane
	ns       string
	nodes    []string
	clickers []*clicking
	victims  map[string]bool // namespace/name of the pods that were to be evicted
	// decisions are the names of the approvals: one of each person for each plan.
	decisions map[string]bool
	executors plan.Store // nobody else may delete what was carried out
}

// clicking is a clicker's process.
type clicking struct {
	who string
	in  io.Writer
	out *bufio.Scanner
}

func newRacecourse(t *testing.T) *racecourse {
	t.Helper()
	r := &racecourse{lane: newLane(t), victims: map[string]bool{}, decisions: map[string]bool{}}
	r.ns = r.Namespace(t)
	r.install(t, r.ns, "alice", "bob", requester)
	r.executors = storeOf(t, r.asExecutor(t, r.ns))
	r.permit(t, "alice", "bob")
	r.unlimited(t)
	for i := range controlplane.Of(fewAtOnce, allAtOnce) {
		node := all1g(fmt.Sprintf("gpu-%02d", i))
		node.CPU = "2"
		r.AddNode(t, node)
		r.nodes = append(r.nodes, node.Name)
		labels, one := map[string]string{"app": "holder", "node": node.Name}, int32(1)
		_, err := r.Client().AppsV1().Deployments(r.ns).Create(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "holder-" + node.Name},
			Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: onNode(node.Name, "2", labels)}}, metav1.CreateOptions{})
		must(t, err)
	}
	config := executorConfig(t, r.ns, unhurried)
	for _, pod := range []string{"executor-0", "executor-1"} {
		startExecutor(t, pod, config, newFaultProxy(t, r.lane, r.ns, pod))
	}
	for _, who := range []string{"alice", "alice", "bob"} {
		r.clickers = append(r.clickers, startClicker(t, who, r.KubeconfigFor(t, who)))
	}
	return r
}

// onNode is a pod of a node that asks for so much CPU.
func onNode(node, cpu string, labels map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{NodeSelector: map[string]string{"kubernetes.io/hostname": node},
		Containers: []corev1.Container{{Name: "main", Image: "registry.example/x", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
}

func startClicker(t *testing.T, who, kubeconfig string) *clicking {
	t.Helper()
	theirs, in, err := os.Pipe()
	must(t, err)
	out, answers, err := os.Pipe()
	must(t, err)
	p := newProcess(t, nil, "clicker", who, kubeconfig)
	p.cmd.Stdin, p.cmd.Stdout = theirs, answers
	p.start(t)
	theirs.Close()
	answers.Close()
	t.Cleanup(func() {
		in.Close()
		out.Close()
	})
	return &clicking{who, in, bufio.NewScanner(out)}
}

// permit gives people the rights of an approver.
func (r *racecourse) permit(t *testing.T, people ...string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "racer"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}}}}
	_, err := r.Client().RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	must(t, err)
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "racer"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "racer"}}
	for _, who := range people {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who})
	}
	_, err = r.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	must(t, err)
}

// unlimited takes the guard-rails off that would keep a thousand plans apart.
func (r *racecourse) unlimited(t *testing.T) {
	t.Helper()
	limits := "nodesInFlight: 1000\npoolUnavailablePercent: 100\nevictionsPerHour: 100000\ncoolDown: 0s\noppositeWithin: 0s\nbreaker: {percent: 100, failures: 1000}\n"
	setGuards(t, r.lane, r.ns, limits)
}

// round has a pod wait for each node, and every plan raced for. It returns how many
// plans came to a good end after one approval.
func (r *racecourse) round(t *testing.T, n int) int {
	t.Helper()
	r.filled(t)
	jobs := r.Client().BatchV1().Jobs(r.ns)
	for _, node := range r.nodes {
		waits := onNode(node, "1", map[string]string{"app": "waits"})
		waits.Spec.RestartPolicy = corev1.RestartPolicyNever
		_, err := jobs.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("wait-%s-%d", node, n)}, Spec: batchv1.JobSpec{Template: waits}}, metav1.CreateOptions{})
		must(t, err)
	}
	plans := r.record(t)
	won := map[string]bool{}
	for _, rem := range plans {
		won[rem.Name] = r.race(t, rem)
	}
	good := 0
	for _, rem := range r.carriedOut(t, plans) {
		switch {
		case rem.Status.Phase != v1alpha1.Succeeded || rem.Status.Evicted != 1:
			t.Errorf("%s: %s, %d evicted", rem.Status.Phase, rem.Status.Message, rem.Status.Evicted)
		case won[rem.Name]:
			good++
		}
		must(t, r.executors.Forget(t.Context(), &rem))
	}
	must(t, jobs.DeleteCollection(t.Context(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}, metav1.ListOptions{}))
	return good
}

// filled waits until every node is full again.
func (r *racecourse) filled(t *testing.T) {
	t.Helper()
	controlplane.Eventually(t, time.Minute, "the nodes are full", func() (bool, string) {
		list, err := r.Client().CoreV1().Pods(r.ns).List(t.Context(), metav1.ListOptions{})
		must(t, err)
		full := 0
		for _, p := range list.Items {
			if p.Labels["app"] == "holder" && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				full++
			}
		}
		return full == len(r.nodes) && len(list.Items) == full, fmt.Sprintf("%d of %d pods hold", full, len(list.Items))
	})
}

// record finds and records the plan for each pod that waits.
func (r *racecourse) record(t *testing.T) []v1alpha1.Remediation {
	t.Helper()
	var st *cluster.State
	controlplane.Eventually(t, time.Minute, "the pods are refused", func() (bool, string) {
		list, err := r.Client().CoreV1().Pods(r.ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=waits"})
		must(t, err)
		refused := 0
		for _, p := range list.Items {
			if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonUnschedulable }) {
				refused++
			}
		}
		return refused == len(r.nodes), fmt.Sprint(refused, " refused")
	})
	st, err := live.Read(t.Context(), r.Client(), r.Dynamic(), time.Now)
	must(t, err)
	found, err := rca.Diagnose(t.Context(), st, rca.Options{Only: func(i incident.Incident) bool { return i.Workload.Kind == "Job" }})
	must(t, err)
	var out []v1alpha1.Remediation
	for _, d := range found {
		i := slices.IndexFunc(d.Fixes, func(f diagnosis.Fix) bool {
			return slices.Equal(f.Kinds, []diagnosis.FixKind{diagnosis.EvictPods}) && f.Proof.Verdict == diagnosis.Schedules && len(f.Cost.Evictions) == 1
		})
		if i < 0 {
			t.Fatalf("no eviction among %+v", d.Fixes)
		}
		rem, err := r.recorder.Record(t.Context(), plan.Propose(plan.Found{State: st, Diagnosis: d, Fix: d.Fixes[i]}, requester, time.Now()))
		must(t, err)
		v := d.Fixes[i].Cost.Evictions[0]
		r.victims[v.Namespace+"/"+v.Name] = true
		out = append(out, *rem)
	}
	if len(out) != len(r.nodes) {
		t.Fatalf("%d plans for %d nodes", len(out), len(r.nodes))
	}
	return out
}

// race has everybody approve a plan at once: each person is heard once.
func (r *racecourse) race(t *testing.T, rem v1alpha1.Remediation) bool {
	t.Helper()
	r.decisions[rem.Name], r.decisions[rem.Name+"-2"] = true, true
	var writing sync.WaitGroup
	for _, c := range r.clickers {
		writing.Go(func() { fmt.Fprintln(c.in, rem.Name, rem.UID) })
	}
	writing.Wait()
	heard := map[string]map[string]int{"alice": {}, "bob": {}}
	for _, c := range r.clickers {
		if !c.out.Scan() {
			t.Fatalf("a clicker has ended: %v", c.out.Err())
		}
		for uid := range strings.FieldsSeq(c.out.Text()) {
			heard[c.who][uid]++
		}
	}
	alice, bob := slices.Collect(maps.Keys(heard["alice"])), slices.Collect(maps.Keys(heard["bob"]))
	if len(alice) != 1 || len(bob) != 1 || alice[0] == bob[0] || heard["alice"][alice[0]] != 2*tries || heard["bob"][bob[0]] != tries {
		t.Errorf("the decisions are %v", heard)
		return false
	}
	return true
}

// carriedOut waits until the plans have ended.
func (r *racecourse) carriedOut(t *testing.T, plans []v1alpha1.Remediation) []v1alpha1.Remediation {
	t.Helper()
	var now []v1alpha1.Remediation
	controlplane.Eventually(t, 4*time.Minute, "the plans have ended", func() (bool, string) {
		var err error
		now, err = r.store().List(t.Context())
		must(t, err)
		phases := map[v1alpha1.Phase]int{}
		ended := 0
		for _, rem := range now {
			phases[rem.Status.Phase]++
			if rem.Status.Phase.Ended() {
				ended++
			}
		}
		text, err := json.Marshal(phases)
		must(t, err)
		return ended == len(plans) && len(now) == ended, string(text)
	})
	return now
}

// once holds the audit log to one eviction of each victim, none of others, and one
// approval of each plan and person. It returns how often that is not so.
func (r *racecourse) once(t *testing.T) int {
	t.Helper()
	evicted, approved := map[string]int{}, map[string]int{}
	for _, e := range r.AuditEvents(t) {
		switch {
		case e.ResponseStatus.Code != 201:
		case e.ObjectRef.Subresource == "eviction":
			evicted[e.ObjectRef.Namespace+"/"+e.ObjectRef.Name]++
		case e.ObjectRef.Resource == "approvals":
			approved[e.ObjectRef.Name]++
		}
	}
	wrong := 0
	hold := func(what string, want map[string]bool, is map[string]int) {
		for _, name := range slices.Sorted(maps.Keys(is)) {
			if !want[name] || is[name] != 1 {
				t.Errorf("%s %s %d times", what, name, is[name])
				wrong++
			}
		}
		if len(is) != len(want) {
			t.Errorf("%s %d, want %d", what, len(is), len(want))
			wrong++
		}
	}
	hold("evicted", r.victims, evicted)
	hold("approved", r.decisions, approved)
	return wrong
}
