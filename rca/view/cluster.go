package view

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher/incident"
)

// Cluster is what all cases of one diagnosis share.
type Cluster struct {
	State    *cluster.State
	Snapshot *whatif.Snapshot
	Nodes    map[string]*Node
	Budgets  *budgets
	gangs    map[string][]*corev1.Pod // that leave whole, by name
	traits   map[*corev1.Pod]Traits
	admitted map[incident.Ref]Team // what Kueue has admitted as one, by the object it stands for   // of those that are on a node
	// Refusals are of all incidents.
	Refusals []incident.Refusal
	// Uses are what the holders of GPUs do with them. measured: somebody was asked.
	// Unmeasured: why nobody could say.
	Uses       map[diagnosis.PodName]diagnosis.Use
	measured   bool
	Unmeasured string
	// configs are the mig-parted configs read so far; configMaps by name, and the one that
	// ClusterPolicy names; generated are the entries of models; named what entries make
	// of nodes that are alike.
	configs    map[*corev1.ConfigMap]map[string]migEntry
	configMaps map[string]*corev1.ConfigMap
	policy     string
	generated  map[*placement.Grid]map[string]migEntry
	named      map[makeup][]NamedLayouts
	// classes are those of nodes that are alike.
	classes map[classKey]*nodeClass
	// byName are the nodes sorted, and columns what they have of labels, once asked for.
	byName  []*Node
	columns map[string]*LabelColumn
	// anyGPUs says whether some node has GPUs, once asked for.
	anyGPUs *bool
	// rejected are the pods that kubelets refused, by node, once asked for.
	rejected map[string][]*corev1.Pod
	// anyPlugin says whether some node has a device plugin's pod, once asked for.
	anyPlugin *bool
	// unsound are the nodes that offer what is no room, once asked for.
	unsound []*Node
	// outlook is what autoscalers have and say, and events those about each object, once
	// asked for.
	outlook *scaling.Outlook
	events  map[incident.Ref][]*corev1.Event
	// kept is what other rooms work out once for the cluster.
	kept map[reflect.Type]any
}

// Node is a node with everything known about its GPUs.
type Node struct {
	*corev1.Node
	at        int                                 // in SortedNodes
	Pods      []*corev1.Pod                       // bound to it and not ended
	Requests  map[*corev1.Pod]corev1.ResourceList // of each of them
	Requested corev1.ResourceList                 // of all of them
	Geometry  *nodeprobe.NodeGeometry
	GPUs      []placement.GPU
	facts     nodeFacts
	// claim is Karpenter's for the machine; signs what says that it has GPUs, once asked for.
	claim *unstructured.Unstructured
	signs []Sign
	spare []spareGPUs // SpareGPUs tells
	// class is what it shares with nodes like it, and tenants who holds GPUs, once asked for.
	class   *nodeClass
	tenants []Tenancy
	// config is what MIG manager knows for the node, once asked for; named are the layouts in it.
	config *migConfig
	named  []NamedLayouts
	// Doubt says why positions or holders are not certain; empty when they are.
	Doubt string
	// Unreadable: the report, or that of at least one GPU, made no sense, so nobody knows
	// who is on it.
	Unreadable bool
	// ailing: the report calls a GPU unhealthy; wards what that means, once asked for.
	ailing bool
	wards  map[corev1.ResourceName]*ward
	// HoldersKnown is false when holders must be read as unknown.
	HoldersKnown bool
}

// Open makes a view of the state, with the scheduler's copy of it: a new one where snap is
// nil. The function that it returns closes what Open made.
func Open(ctx context.Context, st *cluster.State, snap *whatif.Snapshot) (*Cluster, func(), error) {
	done := func() {}
	if snap == nil {
		var err error
		if snap, err = whatif.New(ctx, Objects(st)); err != nil {
			return nil, nil, fmt.Errorf("copy the cluster: %w", err)
		}
		done = snap.Close
	}
	w := New(st)
	w.Snapshot = snap
	return w, done, nil
}

// New is what can be told without the scheduler's code.
func New(st *cluster.State) *Cluster {
	w := &Cluster{State: st, Nodes: make(map[string]*Node, len(st.Nodes)), Budgets: newBudgets(st.PDBs), gangs: map[string][]*corev1.Pod{}, traits: make(map[*corev1.Pod]Traits, len(st.Pods)), admitted: admittedAs(st.QueuedWorkloads),
		configs: map[*corev1.ConfigMap]map[string]migEntry{}, configMaps: map[string]*corev1.ConfigMap{}, policy: policyConfig(st.ClusterPolicies),
		generated: map[*placement.Grid]map[string]migEntry{}, named: map[makeup][]NamedLayouts{},
		classes: map[classKey]*nodeClass{}, columns: map[string]*LabelColumn{}, kept: map[reflect.Type]any{}}
	for _, cm := range slices.Backward(st.ConfigMaps) { // the first of a name stands
		w.configMaps[cm.Name] = cm
	}
	claims := claimsByNode(st.NodeClaims)
	for _, n := range st.Nodes {
		w.Nodes[n.Name] = &Node{Node: n, claim: claims[n.Name], Requests: map[*corev1.Pod]corev1.ResourceList{}, Requested: corev1.ResourceList{}}
	}
	for _, p := range st.Pods {
		if v := w.Nodes[p.Spec.NodeName]; v != nil && !Ended(p) {
			v.Pods = append(v.Pods, p)
			w.traits[p] = w.newTraits(p)
			if g := w.traits[p].Gang; g != "" {
				w.gangs[g] = append(w.gangs[g], p)
			}
			v.Requests[p] = PodRequests(p)
			Add(v.Requested, v.Requests[p])
		}
	}
	for name, v := range w.Nodes {
		v.readGeometry(st, name)
	}
	return w
}

// Ended says whether a pod has finished and holds nothing.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Add adds more to sum, in place.
func Add(sum, more corev1.ResourceList) {
	for name, q := range more {
		have := sum[name]
		have.Add(q)
		sum[name] = have
	}
}

// readGeometry takes the node's report in, marking every holder unknown when
// the report is too old to say.
func (v *Node) readGeometry(st *cluster.State, name string) {
	geo := st.Geometries[name]
	if why := st.Illegible[name]; why != "" {
		v.Doubt, v.Unreadable = "its NodeGeometry cannot be read: "+why, true
		return
	}
	if geo == nil {
		if v.HasGPUs() {
			v.Doubt = "no NodeGeometry, so positions are unknown"
			if why := st.Doubts[name]; why != "" {
				v.Doubt = "no NodeGeometry, and its ResourceSlices prove nothing: " + why
			}
		}
		return
	}
	v.Geometry = geo
	v.ailing = slices.ContainsFunc(geo.Report.GPUs, sick)
	if geo.Report.Source == nodeprobe.SourceLabels {
		v.Doubt = "its report comes from labels, which hold counts and no positions"
		if len(geo.Report.GPUs) > 0 && len(v.SickGPUs()) == len(geo.Report.GPUs) { // what a probe writes whose driver is gone
			v.Doubt, v.Unreadable = "the driver tells its probe nothing of its GPUs", true
		}
		return
	}
	known, why := st.HoldersKnown(name)
	v.HoldersKnown = known
	if !known {
		v.Doubt = why
	}
	twins := Twins(geo.Report)
	for _, g := range geo.Report.GPUs {
		if g.Untold {
			v.Doubt, v.Unreadable = fmt.Sprintf("its report does not say whether GPU %d is healthy", g.Index), true
			continue
		}
		if g.MIG == nil || !g.MIG.Current {
			continue
		}
		gpu, err := placement.Read(name, g)
		if err == nil && twins[g.UUID] {
			err = fmt.Errorf("GPU %d of %s: another has its UUID %s too", g.Index, name, g.UUID)
		}
		if err != nil {
			v.Doubt, v.Unreadable = err.Error(), true
			continue
		}
		gpu.Sick = !g.Healthy
		for i := range gpu.Slots {
			if !known {
				gpu.Slots[i].Held, gpu.Slots[i].Unknown = true, true
			} else if gpu.Slots[i].Unknown && v.Doubt == "" {
				v.Doubt = fmt.Sprintf("GPU %d has instances whose holder could not be told", gpu.Index)
			}
		}
		v.GPUs = append(v.GPUs, gpu)
	}
}

// Twins lists the UUIDs that more than one GPU of a report has: who holds which
// of them nobody can tell.
func Twins(r nodeprobe.Report) map[string]bool {
	twins, met := map[string]bool{}, map[string]bool{}
	for _, g := range r.GPUs {
		twins[g.UUID] = g.UUID != "" && (met[g.UUID] || twins[g.UUID])
		met[g.UUID] = true
	}
	return twins
}

// Free is what could still be given out of a resource: what the scheduler would, less
// what is Withheld; negative when more is requested than there is.
func (v *Node) Free(name corev1.ResourceName) resource.Quantity {
	q := v.Status.Allocatable[name].DeepCopy()
	if name == corev1.ResourcePods {
		q.Sub(*resource.NewQuantity(int64(len(v.Pods)), resource.DecimalSI))
		return q
	}
	q.Sub(v.Requested[name])
	if less := v.Withheld(name); less > 0 {
		q.Sub(*resource.NewQuantity(less, resource.DecimalSI))
	}
	return q
}

// Has says whether the node has that much of a resource to give.
func (v *Node) Has(name corev1.ResourceName, count int64) bool {
	q := v.Free(name)
	return q.Value() >= count
}

// ReportRef is what tells the node's positions.
func (v *Node) ReportRef() string {
	if v.Geometry != nil && v.Geometry.Report.Source == nodeprobe.SourceDRA {
		return "ResourceSlice/" + v.Name
	}
	return "NodeGeometry/" + v.Name
}

// Product is the GPU model of the node for people, without the strategy's suffix.
func (v *Node) Product() string {
	if v.Geometry != nil && len(v.Geometry.Report.GPUs) > 0 {
		return v.Geometry.Report.GPUs[0].Product
	}
	p, _, _ := strings.Cut(v.Labels["nvidia.com/gpu.product"], "-MIG-")
	return p
}

// Profiles finds the profiles that GPUs of this node can have: as reported, else
// from the table of boards.
func (v *Node) Profiles() []nodeprobe.Profile {
	if v.Geometry != nil {
		for _, g := range v.Geometry.Report.GPUs {
			if len(g.Profiles) > 0 {
				return g.Profiles
			}
			if m, ok := nodeprobe.ModelOf(g.Product); ok {
				return m.Profiles
			}
		}
	}
	m, _ := nodeprobe.ModelOf(v.Labels["nvidia.com/gpu.product"])
	return m.Profiles
}

// SortedNodes lists the views by name; read only.
func (w *Cluster) SortedNodes() []*Node {
	if w.byName == nil {
		w.byName = make([]*Node, 0, len(w.State.Nodes))
		for _, n := range w.State.Nodes {
			w.byName = append(w.byName, w.Nodes[n.Name])
		}
		slices.SortFunc(w.byName, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
		for i, n := range w.byName {
			n.at = i
		}
	}
	return w.byName
}

// NodeAt is the node of a name, which is most likely the i-th of all.
func (w *Cluster) NodeAt(i int, name string) *Node {
	if all := w.SortedNodes(); i < len(all) && all[i].Name == name {
		return all[i]
	}
	return w.Nodes[name]
}

// HasGPUs says whether some node of the cluster has GPUs.
func (w *Cluster) HasGPUs() bool {
	if w.anyGPUs == nil {
		w.anyGPUs = new(slices.ContainsFunc(w.SortedNodes(), (*Node).HasGPUs))
	}
	return *w.anyGPUs
}

// Kept is what another room works out of a cluster once, at the first question for it.
func Kept[T any](w *Cluster, of func(*Cluster) *T) *T {
	key := reflect.TypeFor[T]()
	if w.kept[key] == nil {
		w.kept[key] = of(w)
	}
	return w.kept[key].(*T)
}
