package acceptance

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/v1alpha1"
	"github.com/unpend/unpend/testdata/controlplane"
)

// kill9 is one case: a terminal that carries a plan out is killed at a write.
type kill9 struct {
	write string
	after bool
	again bool // the way out is another approve, else release
}

func (k kill9) String() string {
	when, out := "before", "release"
	if k.after {
		when = "after"
	}
	if k.again {
		out = "approve"
	}
	return strings.NewReplacer(" ", "-", "/", "-", "#", "").Replace(k.write) + "/" + when + "/" + out
}

// A terminal that carries a plan out, where no executor leads, is killed before and after
// each of its writes: who may gets out of it by release or by another approve, and no node
// is left with a mark that nobody owns.
func TestTerminalKilled(t *testing.T) {
	needsControlPlane(t)
	var s tally
	cases := make(chan kill9, 1000)
	listed := make(chan struct{})
	var running sync.WaitGroup
	for lane := range controlplane.Of(1, 2) {
		running.Go(func() {
			t.Run(fmt.Sprintf("lane %d", lane), func(t *testing.T) {
				l := newLane(t)
				l.carriesOut(t, approver)
				if lane == 0 {
					func() {
						defer close(listed)
						defer close(cases)
						var writes []string
						t.Run("undisturbed", func(t *testing.T) { writes = l.undisturbed(t) })
						var all []kill9
						for i, w := range writes {
							all = append(all, kill9{w, false, i%2 == 0}, kill9{w, true, i%2 != 0})
						}
						for _, k := range controlplane.Some(all, everyKill) {
							cases <- k
						}
					}()
				}
				<-listed
				for k := range cases {
					t.Run(k.String(), func(t *testing.T) {
						out, made := l.kill9(t, k)
						if made {
							s.took("out", out)
							s.add(!t.Failed())
						}
					})
				}
			})
		})
	}
	running.Wait()
	t.Logf("%d/%d, worst way out %.1f s", s.passed, s.of, s.worst["out"].Seconds())
	if s.passed != s.of || s.of < controlplane.Of(5, 30) {
		t.Errorf("%d of %d", s.passed, s.of)
	}
}

// carriesOut gives a person what carrying out at a terminal takes beside the chart's role
// for approvers: to read, and to write nodes.
func (l *lane) carriesOut(t *testing.T, who string) {
	t.Helper()
	l.readsAll(t, who)
	meta := metav1.ObjectMeta{Name: who + "-nodes"}
	_, err := l.Client().RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}}}}, metav1.CreateOptions{})
	must(t, err)
	_, err = l.Client().RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: who}}}, metav1.CreateOptions{})
	must(t, err)
}

// atTerminal is the approval of a cell's fix by a process of its own, which carries it out.
func (c *cell) atTerminal(t *testing.T) (*process, *faultProxy) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.KubeconfigFor(t, approver))
	must(t, err)
	config.QPS = -1
	proxy := proxyTo(t, config, "terminal-"+c.ns)
	return newProcess(t, nil, "unpend", "approve", fmt.Sprintf("%s#%d", c.rem.Spec.Incident, c.rem.Spec.Fix), "--yes", "--executor-namespace", c.ns, "--kubeconfig", proxy.kubeconfig), proxy
}

// undisturbed has a plan carried out at a terminal with nothing in its way, and returns its
// writes. The journal is in the API, and the executor's lease nowhere.
func (l *lane) undisturbed(t *testing.T) []string {
	t.Helper()
	c := l.newCell(t)
	x, proxy := c.atTerminal(t)
	x.start(t)
	if code := x.exits(t, 2*time.Minute); code != exitDone {
		t.Fatalf("exit code %d: %s", code, strings.Join(x.out.all(), "\n"))
	}
	now, err := c.store().Get(t.Context(), c.rem.Name)
	must(t, err)
	st := now.Status
	if now.Spec.Carrier != v1alpha1.Terminal || now.Spec.Requester != approver || st.Phase != v1alpha1.Succeeded || len(st.Journal) < 9 || fmt.Sprint(st.ApprovedBy) != "["+approver+"]" {
		t.Errorf("carrier %q, by %q, %s, %d steps, approved by %v", now.Spec.Carrier, now.Spec.Requester, st.Phase, len(st.Journal), st.ApprovedBy)
	}
	c.rem = now
	c.settled(t)
	var writes []string
	for _, w := range proxy.made() {
		if strings.HasPrefix(w, "DELETE approvals") { // there are none
			continue
		}
		if n := 0; strings.HasPrefix(w, "PUT remediations/status") {
			if fmt.Sscanf(w, "PUT remediations/status #%d", &n); n > len(st.Journal)+1 { // signs of life between them are chance
				continue
			}
		}
		writes = append(writes, w)
	}
	t.Logf("%d writes: %s", len(writes), strings.Join(writes, ", "))
	return writes
}

// kill9 plays a case, and says how long the way out took; false: the write was not made.
func (l *lane) kill9(t *testing.T, k kill9) (time.Duration, bool) {
	t.Helper()
	c := l.newCell(t)
	x, proxy := c.atTerminal(t)
	started, killed := make(chan struct{}), make(chan struct{})
	proxy.set(proxy.killAt(k.write, k.after, func() {
		<-started
		proxy.set(nil)
		x.kill()
		close(killed)
	}))
	x.start(t)
	close(started)
	select {
	case <-killed:
	case <-x.ended:
		select {
		case <-killed: // by the very last write
		case <-time.After(time.Second):
			return 0, false
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the moment has not come")
	}
	began := time.Now()
	config := []string{"--executor-namespace", c.ns, "--kubeconfig", c.KubeconfigFor(t, approver)}
	args := []string{"release", c.node, "--yes"}
	if k.again {
		args = []string{"approve", fmt.Sprintf("%s#%d", c.rem.Spec.Incident, c.rem.Spec.Fix), "--yes"}
	}
	code, out, errs := call(t, append(args, config...)...)
	took := time.Since(began)
	t.Logf("%.1f s, exit %d: %s%s", took.Seconds(), code, out, errs)
	// Another approve proves what is best now, which may be another fix, or none.
	if code != exitDone && (!k.again || code != exitStale && code != exitRefused) {
		t.Errorf("exit code %d", code)
	}
	c.open(t)
	if now, err := c.store().Get(t.Context(), c.rem.Name); err == nil {
		c.rem = now
	}
	return took, true
}

// open wants the node open, without a mark, and its config in force.
func (c *cell) open(t *testing.T) {
	t.Helper()
	controlplane.Eventually(t, 5*time.Second, "the node is given back", func() (bool, string) {
		n, err := c.Client().CoreV1().Nodes().Get(t.Context(), c.node, metav1.GetOptions{})
		must(t, err)
		says := fmt.Sprintf("unschedulable %v, mark %q, config %s, state %s", n.Spec.Unschedulable, n.Annotations[diagnosis.OperationAnnotation], n.Labels[migConfig], n.Labels[migState])
		return !n.Spec.Unschedulable && n.Annotations[diagnosis.OperationAnnotation] == "" && n.Labels[migState] == "success", says
	})
	plans, err := c.store().List(t.Context())
	must(t, err)
	for _, p := range plans {
		if p.Status.Phase.Begun() {
			t.Errorf("plan %.12s is %s still", p.Name, p.Status.Phase)
		}
	}
	s, err := executor.Stand(t.Context(), executor.Deps{Client: c.Client(), Dynamic: c.Dynamic(), Now: time.Now}, c.ns)
	must(t, err)
	if len(s.Orphans) > 0 || len(s.Figures.InFlight) > 0 {
		t.Errorf("orphans %v, in flight %v", s.Orphans, s.Figures.InFlight)
	}
}
