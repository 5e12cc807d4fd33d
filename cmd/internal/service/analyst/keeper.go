package analyst

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/rca/whatif"
)

// keeper keeps the scheduler's copy of the cluster in step with the states that
// are diagnosed: only what changed between two of them is written.
type keeper struct {
	snap   *whatif.Snapshot
	nodes  map[string]*corev1.Node
	pods   map[string]*corev1.Pod
	others []runtime.Object
}

func (k *keeper) close() {
	if k.snap != nil {
		k.snap.Close()
	}
}

// sync brings the copy to the state. Informers replace objects and never change
// them, so the same pointer is the same object.
func (k *keeper) sync(ctx context.Context, st *cluster.State) (*whatif.Snapshot, error) {
	objs := view.Objects(st)
	if k.snap == nil || !same(k.others, objs.Others) {
		k.close()
		snap, err := whatif.New(ctx, objs)
		if err != nil {
			k.snap = nil
			return nil, err
		}
		k.snap, k.others = snap, objs.Others
		k.remember(objs)
		return k.snap, nil
	}
	nodes, pods := k.nodes, k.pods
	k.remember(objs)
	for name := range nodes {
		if k.nodes[name] == nil {
			k.snap.DeleteNode(name)
		}
	}
	for name, n := range k.nodes {
		if nodes[name] != n {
			k.snap.SetNode(n)
		}
	}
	for key, p := range pods {
		if k.pods[key] == nil {
			k.snap.DeletePod(p.Namespace, p.Name)
		}
	}
	for key, p := range k.pods {
		if pods[key] != p || nodes[p.Spec.NodeName] == nil {
			k.snap.SetPod(p)
		}
	}
	return k.snap, nil
}

func (k *keeper) remember(objs whatif.Objects) {
	k.nodes, k.pods = make(map[string]*corev1.Node, len(objs.Nodes)), make(map[string]*corev1.Pod, len(objs.Pods))
	for _, n := range objs.Nodes {
		k.nodes[n.Name] = n
	}
	for _, p := range objs.Pods {
		if p.Spec.NodeName != "" {
			k.pods[p.Namespace+"/"+p.Name] = p
		}
	}
}

func same(a, b []runtime.Object) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
