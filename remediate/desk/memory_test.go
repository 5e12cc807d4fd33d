package desk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// memory is the cluster of a scenario in memory, in which a Job waits for a repartition. RBAC
// and the admission policies are tested on a real API server (deploy).
type memory struct {
	client *fake.Clientset
	custom *dynamicfake.FakeDynamicClient
	desk   Desk
	best   diagnosis.Fix
	id     string // of the incident

	mu sync.Mutex
	as []string // who was acted as
}

func newMemory(t *testing.T, objects ...runtime.Object) *memory {
	t.Helper()
	folder := filepath.Join("..", "..", "testdata", "scenarios", "all-1g")
	st, err := dump.Read([]string{folder}, nil)
	must(t, err)
	typed, custom := objectsOf(t, folder)
	m := &memory{client: fake.NewClientset(append(typed, objects...)...),
		custom: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
			v1alpha1.Remediations: "RemediationList", v1alpha1.Approvals: "ApprovalList", nodeprobe.Resource: "NodeGeometryList", policies: "ClusterPolicyList"}, custom...)}
	m.numbered()
	m.desk = Desk{Deps: executor.Deps{Client: m.client, Dynamic: m.custom, Now: func() time.Time { return st.Now }}, Namespace: "unpend"}
	found, err := rca.Diagnose(t.Context(), m.state(t), rca.Options{})
	must(t, err)
	if len(found) != 1 || len(found[0].Fixes) == 0 || found[0].Fixes[0].Kind != diagnosis.RepartitionGPU {
		t.Fatalf("%d findings", len(found))
	}
	m.id, m.best = found[0].Incident, found[0].Fixes[0]
	return m
}

var policies = schema.GroupVersionResource{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}

// objectsOf are those of a dump.
func objectsOf(t *testing.T, folder string) (typed, custom []runtime.Object) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "cluster.yaml"))
	must(t, err)
	var list struct {
		Items []map[string]any `json:"items"`
	}
	must(t, yaml.Unmarshal(text, &list))
	for _, item := range list.Items {
		u := &unstructured.Unstructured{Object: item}
		o, err := scheme.Scheme.New(u.GroupVersionKind())
		if err != nil {
			custom = append(custom, u)
			continue
		}
		must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(item, o))
		typed = append(typed, o)
	}
	return typed, custom
}

// numbered gives what is created a uid, as an API server does.
func (m *memory) numbered() {
	n := 0
	m.custom.PrependReactor("create", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		n++
		u, ok := a.(clienttesting.CreateAction).GetObject().(*unstructured.Unstructured)
		if ok {
			u.SetUID(types.UID(u.GetKind() + "-" + string(rune('a'+n))))
		}
		return false, nil, nil
	})
}

func (m *memory) state(t *testing.T) *cluster.State {
	t.Helper()
	st, err := live.Read(t.Context(), m.client, m.custom, m.desk.Now)
	must(t, err)
	return st
}

// people are who Slack knows here.
func (m *memory) people(t *testing.T) plan.Decider {
	t.Helper()
	all, err := plan.NewIdentities([]plan.Identity{{Slack: "U0ADA", User: "ada", Groups: []string{"admins"}}, {Slack: "U0BOB", User: "bob"}, {Slack: "U0CAT", User: "cat"}})
	must(t, err)
	return plan.Decider{Identities: all, Dynamic: m.custom,
		ActAs: func(user string, _ []string) (dynamic.Interface, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.as = append(m.as, user)
			return m.custom, nil
		},
		Persons: func(ctx context.Context, rem *v1alpha1.Remediation) (int, string, error) {
			return executor.Persons(ctx, m.desk.Deps, m.desk.Namespace, rem)
		}}
}

func (m *memory) slack(t *testing.T, id string) Visitor {
	t.Helper()
	v, err := m.desk.Known(m.people(t), plan.Caller{Via: plan.ViaSlack, ID: id})
	must(t, err)
	return v
}

// web is somebody whose own client is at hand.
func (m *memory) web(t *testing.T, user string) Visitor {
	t.Helper()
	own := fake.NewClientset()
	own.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user, Groups: []string{"system:authenticated", "admins"}}}}, nil
	})
	v, err := m.desk.Self(t.Context(), own, m.custom, plan.ViaWeb)
	must(t, err)
	return v
}

// written are the writes of ours that the API took.
func (m *memory) written() []string {
	var out []string
	for _, a := range append(m.custom.Actions(), m.client.Actions()...) {
		c, is := a.(clienttesting.CreateAction)
		switch {
		case a.GetVerb() == "get", a.GetVerb() == "list", a.GetVerb() == "watch", strings.HasSuffix(a.GetResource().Resource, "reviews"): // questions
		case is:
			if u, ok := c.GetObject().(*unstructured.Unstructured); ok {
				out = append(out, a.GetVerb()+" "+u.GetKind()+" "+u.GetName()[len(u.GetName())-2:])
				continue
			}
			out = append(out, a.GetVerb()+" "+a.GetResource().Resource)
		default:
			out = append(out, a.GetVerb()+" "+a.GetResource().Resource)
		}
	}
	return out
}

// approvals are who said what by which place, in the order of their names.
func (m *memory) approvals(t *testing.T) []string {
	t.Helper()
	list, err := plan.Store{Dynamic: m.custom}.Approvals(t.Context(), m.best.Plan)
	must(t, err)
	out := []string{}
	for _, a := range list {
		out = append(out, a.Spec.Approver+" says "+string(a.Spec.Decision)+" by "+a.Spec.Via+a.Spec.Reason)
	}
	return out
}

func (m *memory) rem(t *testing.T) *v1alpha1.Remediation {
	t.Helper()
	rem, err := plan.Store{Dynamic: m.custom}.Get(t.Context(), m.best.Plan)
	must(t, err)
	return rem
}

// becomes puts the plan into a phase, as an executor does.
func (m *memory) becomes(t *testing.T, phase v1alpha1.Phase, message string) {
	t.Helper()
	rem := m.rem(t)
	rem.Status.Phase, rem.Status.Message = phase, message
	must(t, plan.Store{Dynamic: m.custom}.Save(t.Context(), rem))
}

func (m *memory) forbids(resource string) {
	m.custom.PrependReactor("create", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Group: "unpend.dev", Resource: resource}, "x", errors.New("no right"))
	})
}

// waiting is the pod that waits.
func (m *memory) waiting(t *testing.T) string {
	t.Helper()
	for _, p := range m.state(t).Pods {
		if p.Spec.NodeName == "" {
			return p.Name
		}
	}
	t.Fatal("nobody waits")
	return ""
}

// recorded is the plan as it stands after somebody has recorded it.
func (m *memory) recorded(t *testing.T, phase v1alpha1.Phase, message string) {
	t.Helper()
	found, err := executor.Find(t.Context(), m.desk.Deps, m.id, 0, m.best.Plan)
	must(t, err)
	_, err = plan.Store{Dynamic: m.custom}.Record(t.Context(), plan.Propose(found, "requester", m.desk.Now()))
	must(t, err)
	m.becomes(t, phase, message)
	m.custom.ClearActions()
}

func guards(text string, paused string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{Data: map[string]string{"limits.yaml": text, "paused": paused}}
	cm.Namespace, cm.Name = "unpend", "unpend-guards"
	return cm
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
