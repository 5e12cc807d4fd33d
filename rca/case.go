package rca

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/placement"
	"github.com/unpend/unpend/rca/whatif"
	"github.com/unpend/unpend/watcher"
)

// Case is one incident with all that a rule or a fix may look at.
type Case struct {
	*Asker
	Incident watcher.Incident
	Pod      *corev1.Pod      // the waiting pod that stands for the others
	refusal  corev1.PodStatus // as the pod itself has it, also when the kubelet refused it
	asks     []ask
	wants    corev1.ResourceList // all that the pod requests
	verdict  whatif.Verdict
	judged   []NodeBlockers // as the rules told the verdict
	// claims is what the pod asks of DRA drivers; nil for nothing.
	claims *claimView
	// gang is the pod's group, when that is scheduled whole and is not yet; nil else.
	gang *gang
	// refusals are who lacks pods of this incident; unborn: all of it do not exist, and
	// Pod is what the next would be.
	refusals []watcher.Refusal
	unborn   bool
	// held: it waits for GPUs that are there and held.
	held bool
	// unprepared are the pods of it that have their node, and whose devices the kubelet
	// cannot prepare, as watcher.WithKubelet completes them; bound: Pod is one of them.
	unprepared []*corev1.Pod
	bound      bool
	// own are the causes that are the pod's own; everywhere those of them that keep it
	// from every node.
	own        []PodRule
	everywhere map[CauseID]bool
	// missed are the labels that do not match so far, by what nodes have of those that
	// the pod speaks of; labelKey is for writing that down.
	missed   map[string]*missed
	speaksOf []*labelColumn
	labelKey []byte
	// affinity is the pod's required node affinity, once asked for.
	affinity *nodeaffinity.RequiredNodeAffinity
	// beside is what the affinity of pods comes to, once asked for.
	beside *affinities
	// volumes are the facts of the pod's volumes, once asked for.
	volumes *volumeFacts
}

// world is what all cases of one diagnosis share.
type world struct {
	state  *cluster.State
	snap   *whatif.Snapshot
	nodes  map[string]*nodeView
	pdbs   *budgets
	gangs  map[string][]*corev1.Pod // that leave whole, by name
	traits map[*corev1.Pod]traits   // of those that are on a node
	// refusals are of all incidents.
	refusals []watcher.Refusal
	// uses are what the holders of GPUs do with them; measured: that was asked for,
	// unmeasured: why nobody could say.
	uses       map[PodName]Use
	measured   bool
	unmeasured string
	// configs are the mig-parted configs read so far; configMaps by name, and the one that
	// ClusterPolicy names; generated are the entries of models; named what entries make
	// of nodes that are alike.
	configs    map[*corev1.ConfigMap]map[string]migEntry
	configMaps map[string]*corev1.ConfigMap
	policy     string
	generated  map[*placement.Grid]map[string]migEntry
	named      map[makeup][]namedLayouts
	// classes are those of nodes that are alike.
	classes map[classKey]*nodeClass
	// byName are the nodes sorted, and columns what they have of labels, once asked for.
	byName  []*nodeView
	columns map[string]*labelColumn
	// roomiest are looked up once for each resource.
	roomiest map[corev1.ResourceName]roomiest
	// anyGPUs says whether some node has GPUs, once asked for.
	anyGPUs *bool
}

// nodeView is a node with everything known about its GPUs.
type nodeView struct {
	*corev1.Node
	at        int                                 // in sortedNodes
	pods      []*corev1.Pod                       // bound to it and not ended
	requests  map[*corev1.Pod]corev1.ResourceList // of each of them
	requested corev1.ResourceList                 // of all of them
	geometry  *nodeprobe.NodeGeometry
	gpus      []placement.GPU
	facts     nodeFacts
	room      []gpuRoom // gpuRooms tells
	// class is what it shares with nodes like it, and tenants who holds gpus, once asked for.
	class   *nodeClass
	tenants []tenancy
	// config is what MIG manager knows for the node, once asked for; named are the layouts in it.
	config *migConfig
	named  []namedLayouts
	// doubt says why positions or holders are not certain; empty when they are.
	doubt string
	// unreadable: at least one GPU's report made no sense, so nobody knows who is on it.
	unreadable bool
	// holdersKnown is false when holders must be read as unknown.
	holdersKnown bool
}

func newWorld(ctx context.Context, st *cluster.State, snap *whatif.Snapshot) (*world, func(), error) {
	done := func() {}
	if snap == nil {
		var err error
		if snap, err = whatif.New(ctx, Objects(st)); err != nil {
			return nil, nil, fmt.Errorf("copy the cluster: %w", err)
		}
		done = snap.Close
	}
	w := view(st)
	w.snap = snap
	return w, done, nil
}

// view is what can be told without the scheduler's code.
func view(st *cluster.State) *world {
	w := &world{state: st, nodes: make(map[string]*nodeView, len(st.Nodes)), pdbs: newBudgets(st.PDBs), gangs: map[string][]*corev1.Pod{}, traits: make(map[*corev1.Pod]traits, len(st.Pods)),
		configs: map[*corev1.ConfigMap]map[string]migEntry{}, configMaps: map[string]*corev1.ConfigMap{}, policy: policyConfig(st.ClusterPolicies),
		generated: map[*placement.Grid]map[string]migEntry{}, named: map[makeup][]namedLayouts{},
		classes: map[classKey]*nodeClass{}, columns: map[string]*labelColumn{}, roomiest: map[corev1.ResourceName]roomiest{}}
	for _, cm := range slices.Backward(st.ConfigMaps) { // the first of a name stands
		w.configMaps[cm.Name] = cm
	}
	for _, n := range st.Nodes {
		w.nodes[n.Name] = &nodeView{Node: n, requests: map[*corev1.Pod]corev1.ResourceList{}, requested: corev1.ResourceList{}}
	}
	for _, p := range st.Pods {
		if v := w.nodes[p.Spec.NodeName]; v != nil && !ended(p) {
			v.pods = append(v.pods, p)
			w.traits[p] = newTraits(p, st.Now)
			if g := w.traits[p].gang; g != "" {
				w.gangs[g] = append(w.gangs[g], p)
			}
			v.requests[p] = podRequests(p)
			add(v.requested, v.requests[p])
		}
	}
	for name, v := range w.nodes {
		v.readGeometry(st, name)
	}
	return w
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func add(sum, more corev1.ResourceList) {
	for name, q := range more {
		have := sum[name]
		have.Add(q)
		sum[name] = have
	}
}

// readGeometry takes the node's report in, marking every holder unknown when
// the report is too old to say.
func (v *nodeView) readGeometry(st *cluster.State, name string) {
	geo := st.Geometries[name]
	if geo == nil {
		if v.hasGPUs() {
			v.doubt = "no NodeGeometry, so positions are unknown"
			if why := st.Doubts[name]; why != "" {
				v.doubt = "no NodeGeometry, and its ResourceSlices prove nothing: " + why
			}
		}
		return
	}
	v.geometry = geo
	if geo.Report.Source == nodeprobe.SourceLabels {
		v.doubt = "its report comes from labels, which hold counts and no positions"
		return
	}
	known, why := st.HoldersKnown(name)
	v.holdersKnown = known
	if !known {
		v.doubt = why
	}
	twins := twinsIn(geo.Report)
	for _, g := range geo.Report.GPUs {
		if g.MIG == nil || !g.MIG.Current {
			continue
		}
		gpu, err := placement.Read(name, g)
		if err == nil && twins[g.UUID] {
			err = fmt.Errorf("GPU %d of %s: another has its UUID %s too", g.Index, name, g.UUID)
		}
		if err != nil {
			v.doubt, v.unreadable = err.Error(), true
			continue
		}
		for i := range gpu.Slots {
			if !known {
				gpu.Slots[i].Held, gpu.Slots[i].Unknown = true, true
			} else if gpu.Slots[i].Unknown && v.doubt == "" {
				v.doubt = fmt.Sprintf("GPU %d has instances whose holder could not be told", gpu.Index)
			}
		}
		v.gpus = append(v.gpus, gpu)
	}
}

// twinsIn lists the UUIDs that more than one GPU of a report has: who holds which
// of them nobody can tell.
func twinsIn(r nodeprobe.Report) map[string]bool {
	twins, met := map[string]bool{}, map[string]bool{}
	for _, g := range r.GPUs {
		twins[g.UUID] = g.UUID != "" && (met[g.UUID] || twins[g.UUID])
		met[g.UUID] = true
	}
	return twins
}

// free is what the scheduler could still give out of a resource; negative when
// more is requested than there is.
func (v *nodeView) free(name corev1.ResourceName) resource.Quantity {
	q := v.Status.Allocatable[name].DeepCopy()
	if name == corev1.ResourcePods {
		q.Sub(*resource.NewQuantity(int64(len(v.pods)), resource.DecimalSI))
		return q
	}
	q.Sub(v.requested[name])
	return q
}

// has says whether the node has that much of a resource to give.
func (v *nodeView) has(name corev1.ResourceName, count int64) bool {
	q := v.free(name)
	return q.Value() >= count
}

// reportRef is what tells the node's positions.
func (v *nodeView) reportRef() string {
	if v.geometry != nil && v.geometry.Report.Source == nodeprobe.SourceDRA {
		return "ResourceSlice/" + v.Name
	}
	return "NodeGeometry/" + v.Name
}

// product is the GPU model of the node for people, without the strategy's suffix.
func (v *nodeView) product() string {
	if v.geometry != nil && len(v.geometry.Report.GPUs) > 0 {
		return v.geometry.Report.GPUs[0].Product
	}
	p, _, _ := strings.Cut(v.Labels["nvidia.com/gpu.product"], "-MIG-")
	return p
}

// profiles finds the profiles that GPUs of this node can have: as reported, else
// from the table of boards.
func (v *nodeView) profiles() []nodeprobe.Profile {
	if v.geometry != nil {
		for _, g := range v.geometry.Report.GPUs {
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

// node returns the view of a node of the case's cluster.
func (c *Case) node(name string) *nodeView { return c.world.nodes[name] }

// sortedNodes lists the views by name; read only.
func (w *world) sortedNodes() []*nodeView {
	if w.byName == nil {
		w.byName = make([]*nodeView, 0, len(w.state.Nodes))
		for _, n := range w.state.Nodes {
			w.byName = append(w.byName, w.nodes[n.Name])
		}
		slices.SortFunc(w.byName, func(a, b *nodeView) int { return strings.Compare(a.Name, b.Name) })
		for i, n := range w.byName {
			n.at = i
		}
	}
	return w.byName
}

// nodeAt is the node of a name, which is most likely the i-th of all.
func (w *world) nodeAt(i int, name string) *nodeView {
	if all := w.sortedNodes(); i < len(all) && all[i].Name == name {
		return all[i]
	}
	return w.nodes[name]
}

// askOf returns the GPU request named by an "Insufficient …" reason.
func (c *Case) askOf(resource string) (ask, bool) {
	for _, a := range c.asks {
		if string(a.resource) == resource {
			return a, true
		}
	}
	return ask{}, false
}
