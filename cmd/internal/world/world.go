// Package world is a cluster in memory: client-go's fake clientset made to keep
// an API server's promises, the real scheduler, simulated GPUs, and controllers
// that re-create pods. The demo plays in it.
package world

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/whatif/insitu"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Options of a World.
type Options struct {
	Now    func() time.Time
	Logger *slog.Logger
	// Apply is how long the simulated MIG manager takes.
	Apply time.Duration
	// Spread: see sim.Options.
	Spread bool
	// Token of the world's one user, for who comes by one.
	Token string
}

// Person is the world's one user.
const Person = "you"

// World is a cluster in memory.
type World struct {
	token  string
	client *fake.Clientset
	custom *dynamicfake.FakeDynamicClient
	stack  *sim.Stack
	stores []*store
	stop   context.CancelFunc
	done   sync.WaitGroup
	mu     sync.Mutex
	err    error
}

// The world's mig-parted config is this ConfigMap.
const (
	ConfigNamespace = "gpu-operator"
	ConfigName      = "custom-mig-config"
)

// New starts a world without nodes; Close ends it.
func New(ctx context.Context, opts Options) (*World, error) {
	w := newStores(opts.Now)
	w.token = opts.Token
	ctx, w.stop = context.WithCancel(ctx)
	w.stack = sim.New(w.client, w.custom, sim.Options{Now: opts.Now, Logger: opts.Logger, Apply: opts.Apply, Kubelet: true, Spread: opts.Spread,
		Namespace: ConfigNamespace, ConfigMap: ConfigName})
	ready := make(chan struct{})
	w.run(func() error { return insitu.Run(ctx, w.client, ready) })
	w.run(func() error { return w.stack.Run(ctx) })
	w.run(func() error { return (&controllers{client: w.client}).run(ctx) })
	select {
	case <-ready:
		return w, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("start the world: %w", ctx.Err())
	}
}

// newStores makes the two clients over trackers that number every write.
func newStores(now func() time.Time) *World {
	v := &versions{now: now}
	w := &World{client: fake.NewSimpleClientset()} //nolint:staticcheck // NewClientset tracks field ownership, which nothing here reads
	scheme := runtime.NewScheme()
	w.custom = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{
		nodeprobe.Resource:    "NodeGeometryList",
		v1alpha1.Remediations: "RemediationList",
		v1alpha1.Approvals:    "ApprovalList",
		{Group: "nvidia.com", Version: "v1", Resource: "clusterpolicies"}: "ClusterPolicyList",
	})
	w.stores = []*store{newStore(v, w.client.Tracker()), newStore(v, w.custom.Tracker())}
	keep(&w.client.Fake, w.stores[0])
	keep(&w.custom.Fake, w.stores[1])
	w.client.PrependReactor("create", "selfsubjectaccessreviews", allow)
	w.client.PrependReactor("create", "selfsubjectreviews", known)
	return w
}

// known tells the world's one user who they are.
func known(a k8stesting.Action) (bool, runtime.Object, error) {
	review := a.(k8stesting.CreateAction).GetObject().(*authenticationv1.SelfSubjectReview).DeepCopy()
	review.Status.UserInfo.Username = Person
	return true, review, nil
}

// As are the clients of who has a token; with another than the user's they are let in to
// nothing.
func (w *World) As(token string) (kubernetes.Interface, dynamic.Interface, error) {
	if token == w.token {
		return w.client, w.custom, nil
	}
	refuse := func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewUnauthorized("this token is nobody's")
	}
	client, custom := fake.NewSimpleClientset(), dynamicfake.NewSimpleDynamicClient(runtime.NewScheme()) //nolint:staticcheck // they track nothing
	client.PrependReactor("*", "*", refuse)
	custom.PrependReactor("*", "*", refuse)
	return client, custom, nil
}

// allow answers who asks what they may do: the world has one user, who may do everything.
func allow(a k8stesting.Action) (bool, runtime.Object, error) {
	review := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
	review.Status.Allowed = true
	return true, review, nil
}

func keep(f *k8stesting.Fake, s *store) {
	f.PrependReactor("*", "*", s.react)
	f.PrependWatchReactor("*", s.watch)
}

func (w *World) run(part func() error) {
	w.done.Go(func() {
		if err := part(); err != nil {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			w.stop()
		}
	})
}

// Client speaks to the world.
func (w *World) Client() kubernetes.Interface { return w.client }

// Dynamic speaks to the world about custom resources.
func (w *World) Dynamic() dynamic.Interface { return w.custom }

// Close ends everything in the world and waits for it; the error is what a part
// of it failed with.
func (w *World) Close() error {
	w.stop()
	w.done.Wait()
	for _, s := range w.stores {
		s.close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// AddNode creates a simulated GPU node and its report.
func (w *World) AddNode(ctx context.Context, n sim.Node, now time.Time) error {
	u, err := sim.Unstructured(n.Geometry(now))
	if err != nil {
		return err
	}
	if _, err := w.custom.Resource(nodeprobe.Resource).Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the report of %s: %w", n.Name, err)
	}
	if _, err := w.client.CoreV1().Nodes().Create(ctx, n.Object(now), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create node %s: %w", n.Name, err)
	}
	return nil
}
