package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/unpend/unpend/nodeprobe"
)

// Options of a Stack.
type Options struct {
	Now    func() time.Time
	Logger *slog.Logger
	// Apply is how long MIG manager takes for a layout.
	Apply time.Duration
	// Heartbeat is how often a report is written again unchanged; 2 min by default.
	Heartbeat time.Duration
	// Namespace and ConfigMap name the mig-parted config; the entries the operator
	// generates for the model when it is not there.
	Namespace, ConfigMap string
	// Spread gives out instances on the GPU with the fewest holders first (the
	// device plugin's "distributed" policy), instead of filling GPU after GPU.
	Spread bool
	// Kubelet makes bound pods run, for a cluster that has no kubelet.
	Kubelet bool
}

// Faults are what can go wrong with a node's MIG manager, and its device plugin.
type Faults struct {
	Slow  time.Duration // longer than Apply by this
	Fail  bool          // state failed, nothing changed
	Wedge bool          // pending and paused for ever, whatever the label
	Die   bool          // the label is never noticed
	Mute  bool          // a device plugin that starts again registers nothing
	// GiveUp: it fails without a word; pending and paused stay until the label changes
	// (mig-parted #485). What is pending when the stack starts it has given up already.
	GiveUp bool
}

// Stack runs the simulated software of every node that has a NodeGeometry.
type Stack struct {
	client kubernetes.Interface
	custom dynamic.Interface
	opts   Options
	queue  workqueue.TypedRateLimitingInterface[string]
	pods   cache.SharedIndexInformer
	nodes  cache.SharedIndexInformer

	mu      sync.Mutex
	faults  map[string]Faults
	first   map[string]*corev1.Node // node → as it was when its manager started
	applied map[string]string       // node → the config its manager has dealt with
	jobs    map[string]job
	plugins map[string]types.UID // node → the device plugin's pod that has registered; empty: it is gone
}

// job is a layout being applied.
type job struct {
	config string
	due    time.Time
	paused corev1.ResourceList // what was advertised before
}

// New makes a Stack; Run runs it.
func New(client kubernetes.Interface, custom dynamic.Interface, opts Options) *Stack {
	if opts.Heartbeat == 0 {
		opts.Heartbeat = 2 * time.Minute
	}
	return &Stack{client: client, custom: custom, opts: opts, faults: map[string]Faults{}, first: map[string]*corev1.Node{}, applied: map[string]string{}, jobs: map[string]job{}, plugins: map[string]types.UID{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, time.Second))}
}

// SetFaults switches the faults of a node's MIG manager.
func (s *Stack) SetFaults(node string, f Faults) {
	s.mu.Lock()
	s.faults[node] = f
	s.mu.Unlock()
	s.queue.Add(node)
}

const byNode = "node"

// Run works until ctx ends and then waits for everything it started.
func (s *Stack) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(s.client, 0)
	s.pods, s.nodes = factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
	if err := s.pods.AddIndexers(cache.Indexers{byNode: func(o any) ([]string, error) {
		return []string{o.(*corev1.Pod).Spec.NodeName}, nil
	}}); err != nil {
		return fmt.Errorf("index pods: %w", err)
	}
	wake := func(o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		switch t := o.(type) {
		case *corev1.Pod:
			if t.Spec.NodeName != "" {
				s.queue.Add(t.Spec.NodeName)
			}
		case *corev1.Node:
			s.queue.Add(t.Name)
		}
	}
	begins := func(o any) {
		if n, ok := o.(*corev1.Node); ok {
			s.mu.Lock()
			s.first[n.Name] = n
			s.mu.Unlock()
		}
		wake(o)
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: begins, UpdateFunc: func(_, o any) { wake(o) }, DeleteFunc: wake}
	for _, in := range []cache.SharedIndexInformer{s.pods, s.nodes} {
		if _, err := in.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch nodes and pods: %w", err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	stop := context.AfterFunc(ctx, s.queue.ShutDown)
	defer stop()
	for s.next(ctx) {
	}
	factory.Shutdown()
	return nil
}

func (s *Stack) next(ctx context.Context) bool {
	node, quit := s.queue.Get()
	if quit {
		return false
	}
	defer s.queue.Done(node)
	again, err := s.reconcile(ctx, node)
	switch {
	case err != nil && ctx.Err() == nil:
		if !apierrors.IsConflict(err) {
			s.opts.Logger.DebugContext(ctx, "simulated node is tried again", "node", node, "error", err)
		}
		s.queue.AddRateLimited(node)
	case again > 0:
		s.queue.Forget(node)
		s.queue.AddAfter(node, again)
	default:
		s.queue.Forget(node)
	}
	return true
}

// reconcile brings one node up to date; it returns when to look again.
func (s *Stack) reconcile(ctx context.Context, name string) (time.Duration, error) {
	node, err := s.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && node.Labels["nvidia.com/gpu.present"] != "true" {
		return 0, s.runPods(ctx, s.bound(name), nil)
	}
	if err != nil {
		return 0, err
	}
	geo, err := s.report(ctx, name)
	if err != nil || geo == nil {
		return 0, err
	}
	pods := s.bound(name)
	again, busy, err := s.manage(ctx, node, geo, pods)
	if err != nil || busy {
		return again, err
	}
	if err := s.register(ctx, node, geo, pods); err != nil {
		return 0, err
	}
	refused, changed := assign(geo, pods, node.Labels["nvidia.com/mig.strategy"], s.opts.Spread)
	if changed || s.opts.Now().Sub(geo.Report.ObservedAt.Time) >= s.opts.Heartbeat {
		if err := s.write(ctx, geo); err != nil {
			return 0, err
		}
	}
	if err := s.runPods(ctx, pods, refused); err != nil {
		return 0, err
	}
	if again == 0 {
		again = s.opts.Heartbeat
	}
	return again, nil
}

// bound lists the pods on a node that have not ended, oldest first.
func (s *Stack) bound(node string) []*corev1.Pod {
	objs, err := s.pods.GetIndexer().ByIndex(byNode, node)
	if err != nil {
		return nil // the index is ours: it exists
	}
	var out []*corev1.Pod
	for _, o := range objs {
		if p := o.(*corev1.Pod); p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out
}

func (s *Stack) report(ctx context.Context, node string) (*nodeprobe.NodeGeometry, error) {
	u, err := s.custom.Resource(nodeprobe.Resource).Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var geo nodeprobe.NodeGeometry
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &geo); err != nil {
		return nil, fmt.Errorf("read the report of %s: %w", node, err)
	}
	return &geo, nil
}

func (s *Stack) write(ctx context.Context, geo *nodeprobe.NodeGeometry) error {
	geo.Report.ObservedAt = metav1.NewTime(s.opts.Now())
	u, err := Unstructured(geo)
	if err != nil {
		return err
	}
	_, err = s.custom.Resource(nodeprobe.Resource).Update(ctx, u, metav1.UpdateOptions{})
	return err
}

// Unstructured is the report as the dynamic client takes it.
func Unstructured(geo *nodeprobe.NodeGeometry) (*unstructured.Unstructured, error) {
	geo.APIVersion, geo.Kind = nodeprobe.Kind.GroupVersion().String(), nodeprobe.Kind.Kind
	obj, err := runtime.DefaultUnstructuredConverter.ToUnstructured(geo)
	if err != nil {
		return nil, fmt.Errorf("write the report of %s: %w", geo.Name, err)
	}
	return &unstructured.Unstructured{Object: obj}, nil
}

// runPods does the kubelet's part: pods it must refuse fail, the others run when
// there is no other kubelet.
func (s *Stack) runPods(ctx context.Context, pods []*corev1.Pod, refused map[*corev1.Pod]string) error {
	for _, p := range pods {
		why, no := refused[p]
		if p.Status.Phase != corev1.PodPending && p.Status.Phase != "" || !no && !s.opts.Kubelet {
			continue
		}
		p = p.DeepCopy()
		if no {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "UnexpectedAdmissionError", "Pod was rejected: "+why
		} else {
			s.start(p)
		}
		if _, err := s.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (s *Stack) start(p *corev1.Pod) {
	now := metav1.NewTime(s.opts.Now())
	p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &now
	for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: true,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
}
