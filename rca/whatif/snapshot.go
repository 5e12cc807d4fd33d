// Package whatif answers whether a pod would schedule if something changed. It
// runs the plugins of the real kube-scheduler (k8s.io/kubernetes v1.37.1) over a
// copy of the cluster that can be changed and taken back.
package whatif

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Objects is what a Snapshot is made of.
type Objects struct {
	Nodes []*corev1.Node
	Pods  []*corev1.Pod
	// Others are the objects that plugins read through listers: claims, volumes,
	// storage classes, CSI nodes, namespaces, resource claims and slices.
	Others []runtime.Object
}

// Snapshot is a copy of the cluster as the scheduler sees it. One goroutine at a
// time may use it; a Try lends it to its function.
type Snapshot struct {
	plugins *plugins
	nodes   map[string]*framework.NodeInfo
	pods    map[string]*corev1.Pod // bound and not ended, by namespace/name
	lister  lister
	// consumers are the names of the claims each pod uses, by namespace/name.
	consumers map[string][]string
	// undo holds, while a Try runs, how to take each change back.
	undo  []func()
	depth int
}

// New copies the cluster. Close releases it.
func New(ctx context.Context, objs Objects) (*Snapshot, error) {
	s := &Snapshot{nodes: make(map[string]*framework.NodeInfo, len(objs.Nodes)), pods: make(map[string]*corev1.Pod, len(objs.Pods))}
	s.lister.snapshot = s
	s.lister.SharedLister = cache.NewEmptySnapshot()
	for _, n := range objs.Nodes {
		info := framework.NewNodeInfo()
		info.SetNode(n)
		s.nodes[n.Name] = info
	}
	s.count(objs.Pods)
	s.lister.stale = true
	s.consumers = consumers(objs.Others)
	var err error
	if s.plugins, err = startPlugins(ctx, &s.lister, trackable(objs.Others)); err != nil {
		return nil, fmt.Errorf("start the scheduler's plugins: %w", err)
	}
	return s, nil
}

// count adds pods in place: only for a snapshot nobody else has seen. What they ask for is
// added up node by node, on every core.
func (s *Snapshot) count(pods []*corev1.Pod) {
	on := make(map[*framework.NodeInfo][]*corev1.Pod, len(s.nodes))
	for _, p := range pods {
		if info := s.nodes[p.Spec.NodeName]; info != nil && !ended(p) {
			p = counted(p)
			s.pods[key(p.Namespace, p.Name)] = p
			on[info] = append(on[info], p)
		}
	}
	work := make(chan *framework.NodeInfo)
	var adding sync.WaitGroup
	for range goruntime.GOMAXPROCS(0) {
		adding.Go(func() {
			for info := range work {
				for _, p := range on[info] {
					info.AddPod(p)
				}
			}
		})
	}
	for info := range on {
		work <- info
	}
	close(work)
	adding.Wait()
}

// Close stops what the plugins run in the background and waits for it.
func (s *Snapshot) Close() { s.plugins.close() }

// Try runs fn on a fork: every change fn makes is taken back when it returns,
// also when it fails or panics. Forks nest.
func Try(s *Snapshot, fn func(*Snapshot) error) error {
	mark := len(s.undo)
	s.depth++
	defer func() {
		for i := len(s.undo) - 1; i >= mark; i-- {
			s.undo[i]()
		}
		s.undo = s.undo[:mark]
		s.depth--
	}()
	return fn(s)
}

func (s *Snapshot) remember(undo func()) {
	if s.depth > 0 {
		s.undo = append(s.undo, undo)
	}
}

// SetNode adds the node or replaces it; its pods stay.
func (s *Snapshot) SetNode(n *corev1.Node) {
	old := s.nodes[n.Name]
	info := framework.NewNodeInfo()
	if old != nil {
		info = old.SnapshotConcrete()
	}
	info.SetNode(n)
	s.put(n.Name, info)
}

// DeleteNode removes the node; its pods no longer count.
func (s *Snapshot) DeleteNode(name string) {
	if s.nodes[name] == nil {
		return
	}
	for k, p := range s.pods {
		if p.Spec.NodeName == name {
			s.forget(k, p)
		}
	}
	s.put(name, nil)
}

// put replaces what is known of a node; nil removes it.
func (s *Snapshot) put(name string, info *framework.NodeInfo) {
	old := s.nodes[name]
	s.assign(name, info)
	s.remember(func() { s.assign(name, old) })
}

func (s *Snapshot) assign(name string, info *framework.NodeInfo) {
	if info == nil {
		delete(s.nodes, name)
		s.lister.stale = true
		return
	}
	known := s.nodes[name] != nil
	s.nodes[name] = info
	if !known {
		s.lister.stale = true
	}
	s.lister.replace(name, info)
}

// SetPod adds, moves or replaces the pod. A pod without a node, or one that has
// ended, takes up nothing.
func (s *Snapshot) SetPod(p *corev1.Pod) {
	s.remove(p.Namespace, p.Name)
	info := s.nodes[p.Spec.NodeName]
	if info == nil || ended(p) {
		return
	}
	p = counted(p)
	next := info.SnapshotConcrete()
	next.AddPod(p)
	k := key(p.Namespace, p.Name)
	s.pods[k] = p
	s.remember(func() { delete(s.pods, k) })
	s.put(p.Spec.NodeName, next)
}

// DeletePod removes the pod, if it is there. In a fork its devices are free
// then; outside, the claims that are read next tell.
func (s *Snapshot) DeletePod(namespace, name string) {
	if s.depth > 0 {
		s.release(namespace, name)
	}
	s.remove(namespace, name)
}

func (s *Snapshot) remove(namespace, name string) {
	k := key(namespace, name)
	p := s.pods[k]
	if p == nil {
		return
	}
	s.forget(k, p)
	info := s.nodes[p.Spec.NodeName]
	if info == nil {
		return
	}
	next := info.SnapshotConcrete()
	if next.RemovePod(klog.Background(), p) == nil {
		s.put(p.Spec.NodeName, next)
	}
}

func (s *Snapshot) forget(k string, p *corev1.Pod) {
	delete(s.pods, k)
	s.remember(func() { s.pods[k] = p })
}

// counted is the pod as a NodeInfo can take it out again: one is found there by its
// uid, which a pod that only might exist has not.
func counted(p *corev1.Pod) *corev1.Pod {
	p = WithDefaults(p)
	if p.UID == "" {
		p = p.DeepCopy()
		p.UID = types.UID(key(p.Namespace, p.Name))
	}
	return p
}

func key(namespace, name string) string { return namespace + "/" + name }

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// lister shows the snapshot to the plugins, nodes by name.
type lister struct {
	fwk.SharedLister
	snapshot *Snapshot
	list     []fwk.NodeInfo
	place    map[string]int
	stale    bool // the set of nodes changed
	affinity struct {
		known              bool
		any, anti, farAnti []fwk.NodeInfo
	}
}

func (l *lister) replace(name string, info *framework.NodeInfo) {
	l.affinity.known = false
	if i, ok := l.place[name]; ok && !l.stale {
		l.list[i] = info
	}
}

func (l *lister) all() []fwk.NodeInfo {
	if !l.stale {
		return l.list
	}
	l.list = make([]fwk.NodeInfo, 0, len(l.snapshot.nodes))
	for _, info := range l.snapshot.nodes {
		l.list = append(l.list, info)
	}
	slices.SortFunc(l.list, func(a, b fwk.NodeInfo) int { return strings.Compare(a.Node().Name, b.Node().Name) })
	l.place = make(map[string]int, len(l.list))
	for i, info := range l.list {
		l.place[info.Node().Name] = i
	}
	l.stale, l.affinity.known = false, false
	return l.list
}
