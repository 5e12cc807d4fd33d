package sim

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/nodeprobe"
)

const (
	labelConfig = nodeprobe.LabelMIGConfig
	labelState  = nodeprobe.LabelMIGConfigState
	paused      = "paused-for-mig-change"
)

// operands are the labels MIG manager pauses (mig-parted
// pkg/mig/reconfigure/reconfigure.go).
var operands = []string{"device-plugin", "gpu-feature-discovery", "dcgm-exporter", "dcgm", "nvsm"}

// manage is MIG manager: it acts on a change of the label. busy says that the
// device plugin is paused, so nothing may be given out.
func (s *Stack) manage(ctx context.Context, node *corev1.Node, geo *nodeprobe.NodeGeometry, pods []*corev1.Pod) (again time.Duration, busy bool, err error) {
	s.mu.Lock()
	fault, running := s.faults[node.Name], s.jobs[node.Name]
	applied, seen := s.applied[node.Name]
	first := s.first[node.Name] // the label may have been changed since
	if first != nil && !seen && (first.Labels[labelState] != "pending" || fault.GiveUp) {
		applied = first.Labels[labelConfig]
		s.applied[node.Name] = applied
	}
	s.mu.Unlock()
	if first == nil {
		return 0, false, nil // the watch will say it
	}
	wanted := node.Labels[labelConfig]
	switch {
	case running.config != "":
		if left := running.due.Sub(s.opts.Now()); left > 0 {
			return left, true, nil
		}
		if fault.Wedge {
			return s.opts.Heartbeat, true, nil
		}
		if fault.GiveUp {
			s.settle(node.Name, running.config)
			s.queue.Add(node.Name) // the label may say something else by now
			return s.opts.Heartbeat, true, nil
		}
		return 0, false, s.finish(ctx, node, geo, pods, running, fault)
	case wanted == applied || fault.Die:
		return 0, false, nil
	}
	return s.begin(ctx, node, geo, wanted, fault)
}

// begin checks the entry and pauses the node's GPU software.
func (s *Stack) begin(ctx context.Context, node *corev1.Node, geo *nodeprobe.NodeGeometry, wanted string, fault Faults) (time.Duration, bool, error) {
	entry, err := s.entry(ctx, geo, wanted)
	if err != nil {
		return 0, false, err
	}
	state := ""
	if entry == nil {
		state = "failed"
	} else if unchanged(targets(entry, geo.Report.GPUs), geo) {
		state = "success"
	}
	if state != "" {
		return 0, false, s.nothingToDo(ctx, node, geo, wanted, state)
	}
	labels := map[string]string{labelState: "pending"}
	for _, o := range operands {
		labels["nvidia.com/gpu.deploy."+o] = paused
	}
	if err := s.label(ctx, node, labels); err != nil {
		return 0, false, err
	}
	before := node.Status.Allocatable.DeepCopy()
	if err := s.advertise(ctx, node.Name, corev1.ResourceList{}, false); err != nil {
		return 0, false, err
	}
	wait := s.opts.Apply + fault.Slow
	s.mu.Lock()
	s.jobs[node.Name] = job{wanted, s.opts.Now().Add(wait), before}
	s.mu.Unlock()
	return max(wait, time.Millisecond), true, nil
}

// nothingToDo says how a config stands that is there already, or that no entry has. On its
// way out MIG manager starts whatever is paused (setState), also by a run before that gave
// up.
func (s *Stack) nothingToDo(ctx context.Context, node *corev1.Node, geo *nodeprobe.NodeGeometry, wanted, state string) error {
	labels := map[string]string{labelState: state}
	for _, o := range operands {
		if key := "nvidia.com/gpu.deploy." + o; node.Labels[key] == paused {
			labels[key] = "true"
		}
	}
	if len(labels) > 1 {
		if err := s.advertise(ctx, node.Name, resources(geo, node.Labels["nvidia.com/mig.strategy"]), true); err != nil {
			return err
		}
	}
	if err := s.label(ctx, node, labels); err != nil {
		return err
	}
	s.settle(node.Name, wanted)
	return nil
}

// finish re-makes the GPUs whose counts differ, or fails and leaves everything as
// it was.
func (s *Stack) finish(ctx context.Context, node *corev1.Node, geo *nodeprobe.NodeGeometry, pods []*corev1.Pod, j job, fault Faults) error {
	entry, err := s.entry(ctx, geo, j.config)
	if err != nil {
		return err
	}
	assignFreed(geo, pods)
	state, after := "success", corev1.ResourceList{}
	if fault.Fail || !remake(geo, targets(entry, geo.Report.GPUs)) {
		state = "failed"
		for name, q := range j.paused {
			if strings.HasPrefix(string(name), "nvidia.com/") {
				after[name] = q
			}
		}
	} else {
		if err := s.write(ctx, geo); err != nil {
			return err
		}
		after = resources(geo, node.Labels["nvidia.com/mig.strategy"])
	}
	if err := s.advertise(ctx, node.Name, after, true); err != nil {
		return err
	}
	labels := map[string]string{labelState: state}
	for _, o := range operands {
		labels["nvidia.com/gpu.deploy."+o] = "true"
	}
	if err := s.label(ctx, node, labels); err != nil {
		return err
	}
	s.settle(node.Name, j.config)
	s.queue.Add(node.Name)
	return nil
}

func (s *Stack) settle(node, config string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied[node] = config
	delete(s.jobs, node)
}

// assignFreed takes the holders that are gone off the report; the paused plugin
// gives nothing out.
func assignFreed(geo *nodeprobe.NodeGeometry, pods []*corev1.Pod) {
	alive := map[nodeprobe.Holder]bool{}
	for _, p := range pods {
		for _, c := range p.Spec.Containers {
			alive[nodeprobe.Holder{Namespace: p.Namespace, Pod: p.Name, Container: c.Name}] = true
		}
	}
	for i := range geo.Report.GPUs {
		release(&geo.Report.GPUs[i], alive)
	}
}

func unchanged(want map[int]target, geo *nodeprobe.NodeGeometry) bool {
	for _, g := range geo.Report.GPUs {
		if t, ok := want[g.Index]; ok && !t.asWanted(g) {
			return false
		}
	}
	return true
}

// remake clears the GPUs whose counts differ and makes them again; false, and
// nothing changed, when one of them is in use or cannot hold the counts.
func remake(geo *nodeprobe.NodeGeometry, want map[int]target) bool {
	next := slices.Clone(geo.Report.GPUs)
	for i := range next {
		g := &next[i]
		t, ok := want[g.Index]
		if !ok || t.asWanted(*g) {
			continue
		}
		inUse := len(g.Holders) > 0 || slices.ContainsFunc(g.Instances, func(in nodeprobe.Instance) bool { return in.Holder != nil })
		m, known := nodeprobe.ModelOf(g.Product)
		placed, err := Place(m.ID, t.positive())
		if inUse || !known || err != nil {
			return false
		}
		first := 1
		for _, in := range g.Instances {
			first = max(first, in.ID+1)
		}
		g.MIG = &nodeprobe.MIGMode{Current: t.enabled, Pending: t.enabled}
		g.Instances = instances(*g, m, placed, first)
	}
	geo.Report.GPUs = next
	return true
}

// entry finds the named entry; nil when there is none.
func (s *Stack) entry(ctx context.Context, geo *nodeprobe.NodeGeometry, name string) ([]entryRule, error) {
	entries := map[string][]entryRule{}
	cm, err := s.client.CoreV1().ConfigMaps(s.opts.Namespace).Get(ctx, s.opts.ConfigMap, metav1.GetOptions{})
	switch {
	case s.opts.ConfigMap != "" && err == nil:
		if entries, err = parseConfig(cm.Data["config.yaml"]); err != nil {
			return nil, nil // what mig-parted cannot read names no entry
		}
	case s.opts.ConfigMap != "" && !apierrors.IsNotFound(err):
		return nil, err
	default:
		for _, g := range geo.Report.GPUs {
			if m, ok := nodeprobe.ModelOf(g.Product); ok {
				maps.Copy(entries, generated(m))
			}
		}
	}
	return entries[name], nil
}

// label merges labels into the node.
func (s *Stack) label(ctx context.Context, node *corev1.Node, labels map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	if err != nil {
		return err
	}
	_, err = s.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "nvidia-mig-manager"})
	return err
}

// advertise sets what the node offers of GPUs: keys of a former layout stay, at
// 0, as the kubelet leaves them. Capacity follows only when the plugin is back.
func (s *Stack) advertise(ctx context.Context, name string, offer corev1.ResourceList, back bool) error {
	node, err := s.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	node = node.DeepCopy()
	set := func(list corev1.ResourceList) {
		for key := range list {
			if strings.HasPrefix(string(key), "nvidia.com/") {
				list[key] = resource.Quantity{Format: resource.DecimalSI}
			}
		}
		maps.Copy(list, offer)
	}
	set(node.Status.Allocatable)
	if back {
		set(node.Status.Capacity)
	}
	_, err = s.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
