package remediate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

const (
	fieldManager = "unpend"
	annotation   = v1alpha1.OperationAnnotation
	labelConfig  = "nvidia.com/mig.config"
	labelState   = "nvidia.com/mig.config.state"
)

// saga re-makes GPUs of one node. All it has to remember is in the mark on the node.
type saga struct {
	*runner
	n      int // of the action
	target diagnosis.Target
	plan   *diagnosis.Relayout
	relies map[string]string
}

func (r *runner) saga(i int, a diagnosis.Action) *saga {
	return &saga{runner: r, n: i, target: a.Target, plan: a.Relayout, relies: a.Relies}
}

func (s *saga) id(step string) string { return fmt.Sprintf("%d/%s", s.n, step) }

func (s *saga) steps() []step {
	var out []step
	if s.Locks != "" && !s.DryRun {
		out = append(out, step{id: s.id("lock"), text: "lock " + s.target.Name, within: contention, try: s.lock})
	}
	out = append(out, step{id: s.id("cordon"), text: "cordon " + s.target.Name, within: contention, try: s.cordon})
	for _, v := range s.plan.Victims {
		out = append(out, step{id: s.id("evict/" + v.Namespace + "/" + v.Name), text: evictText(v), within: s.Deadlines.Evict,
			try: func(ctx context.Context, e *entry) (string, error) { return s.evictHolder(ctx, v, e) }})
	}
	out = append(out, step{id: s.id("empty"), text: "wait until nobody holds the GPUs", within: s.Deadlines.Leave, try: s.waitEmpty})
	if s.plan.ConfigMap != nil {
		out = append(out, step{id: s.id("entry"), text: "add entry " + s.plan.Config, within: contention, try: s.writeEntry})
	}
	if s.plan.First != "" {
		out = append(out, step{id: s.id("first"), text: "set " + labelConfig + "=" + s.plan.First + ", which its GPUs have", within: s.Deadlines.Notice + contention, try: s.askFirst})
	}
	out = append(out,
		step{id: s.id("config"), text: "set " + labelConfig + "=" + s.plan.Config, within: contention, try: s.configure},
		step{id: s.id("manager"), text: "wait for MIG manager", within: s.Deadlines.Manager, try: func(ctx context.Context, e *entry) (string, error) {
			return s.waitManager(ctx, s.plan.Config, e)
		}},
		step{id: s.id("release"), text: "verify the layout and uncordon " + s.target.Name, within: contention, try: s.verifyAndRelease})
	if s.Locks != "" && !s.DryRun {
		out = append(out, step{id: s.id("unlock"), text: "unlock " + s.target.Name, within: contention, try: s.unlock})
	}
	return out
}

// ours reads the node, and our mark on it, without which it is an error: after the
// cordon, nothing is written to a node that is no longer ours.
func (s *saga) ours(ctx context.Context) (*corev1.Node, map[string]string, *v1alpha1.Operation, error) {
	n, now, err := s.look(ctx, s.target)
	if err != nil {
		return nil, nil, nil, err
	}
	mark := s.markOf(n)
	if mark == nil && !s.DryRun {
		return nil, nil, nil, fmt.Errorf("%w: node %s is no longer marked as ours; it is left as it is", ErrStale, n.Name)
	}
	if mark == nil {
		mark = s.newMark(n)
	}
	return n, now, mark, nil
}

// markOf is the mark of this operation on a node; nil when there is another, or none.
func (s *saga) markOf(n *corev1.Node) *v1alpha1.Operation {
	if mark, err := v1alpha1.OperationOn(n); err == nil && mark != nil && mark.ID == s.rem.UID {
		return mark
	}
	return nil
}

func (s *saga) newMark(n *corev1.Node) *v1alpha1.Operation {
	return &v1alpha1.Operation{Plan: s.rem.Name, ID: s.rem.UID, Step: "cordon", PriorUnschedulable: n.Spec.Unschedulable, PriorMIGConfig: n.Labels[labelConfig]}
}

// write patches the node on the version it was read at: spec, labels and our mark in
// one write. What it says is missing is another try, when others wrote in between:
// the kubelet's status, MIG manager's labels.
func (s *saga) write(ctx context.Context, n *corev1.Node, spec, labels map[string]any, mark *v1alpha1.Operation) (missing string, err error) {
	var note any
	if mark != nil {
		text, err := json.Marshal(mark)
		if err != nil {
			return "", fmt.Errorf("write the mark: %w", err)
		}
		note = string(text)
	}
	meta := map[string]any{"uid": n.UID, "resourceVersion": n.ResourceVersion, "annotations": map[string]any{annotation: note}}
	body := map[string]any{"metadata": meta}
	if labels != nil {
		meta["labels"] = labels
	}
	if spec != nil {
		body["spec"] = spec
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return "", fmt.Errorf("build the patch: %w", err)
	}
	_, err = s.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager, DryRun: s.dryRun()})
	if apierrors.IsConflict(err) {
		return "the node is being written by others", nil
	}
	return "", stale(err, s.target)
}

// cordon closes and marks the node in one write, if all is as the plan relies on,
// and gives the scheduler time to hear of it: what it chose before, it still binds,
// and the pod that replaces a victim would come back to the node.
func (s *saga) cordon(ctx context.Context, e *entry) (string, error) {
	n, now, err := s.look(ctx, s.target)
	if err != nil {
		return "", err
	}
	if s.markOf(n) != nil { // also when an answer was lost, or we were
		return s.settled(e), nil
	}
	if err := unmarked(n); err != nil {
		return "", err
	}
	if err := drift(n.Name, s.relies, now); err != nil {
		return "", err
	}
	missing, err := s.write(ctx, n, map[string]any{"unschedulable": true}, nil, s.newMark(n))
	if err != nil || missing != "" || s.DryRun {
		return missing, err
	}
	return s.settled(e), nil
}

// unmarked refuses a node that an operation has, or has left closed.
func unmarked(n *corev1.Node) error {
	if mark, err := v1alpha1.OperationOn(n); mark != nil || err != nil {
		return fmt.Errorf("%w: node %s is being worked on already: %s", ErrRefused, n.Name, n.Annotations[annotation])
	}
	return nil
}

func (s *saga) settled(e *entry) string {
	if s.since(e) < s.Deadlines.Settle {
		return "the scheduler hears of the cordon"
	}
	return ""
}

// since is how long ago a step's write was answered, as its note says; the note is made
// where there is none.
func (s *saga) since(e *entry) time.Duration {
	now := s.Now()
	since, err := parseTime(e.Note)
	if err != nil && e.again { // whoever wrote it is gone
		since, err = e.Began.Time, nil
	}
	if err != nil || since.After(now) { // or the clock was set back
		e.Note, since = formatTime(now), now
	}
	return now.Sub(since)
}

// waitEmpty waits until the victims have left and the probe sees nobody on the
// GPUs that are re-made.
func (s *saga) waitEmpty(ctx context.Context, _ *entry) (string, error) {
	if s.DryRun {
		return "", nil
	}
	_, now, err := s.look(ctx, s.target) // first: from a node that is gone nobody takes them
	if err != nil {
		return "", err
	}
	if missing, err := s.gone(ctx, s.plan.Victims); err != nil || missing != "" {
		return missing, err
	}
	return s.held(now), nil
}

// evictHolder evicts a pod as long as its node is there, and marked as ours.
func (s *saga) evictHolder(ctx context.Context, v diagnosis.Target, e *entry) (string, error) {
	n, err := s.node(ctx, s.target)
	if err == nil && s.markOf(n) == nil && !s.DryRun {
		err = fmt.Errorf("%w: node %s is no longer marked as ours; it is left as it is", ErrStale, n.Name)
	}
	if err != nil {
		return "", err
	}
	return s.evict(ctx, v, e)
}

// held says who holds something of the GPUs that are re-made; empty when nobody
// does.
func (s *saga) held(now map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(now)) {
		for _, gpu := range s.plan.GPUs {
			if !strings.HasPrefix(key, diagnosis.HolderPrefix(gpu)) {
				continue
			}
			if now[key] == diagnosis.UnknownHolder {
				return fmt.Sprintf("who holds GPU %d cannot be told", gpu)
			}
			return fmt.Sprintf("GPU %d is held by %s", gpu, now[key])
		}
	}
	return ""
}

// configure asks MIG manager for the planned config: the label and our mark in one
// write, once the node is held to what the plan relies on; our own cordon is the only
// thing that may be new.
func (s *saga) configure(ctx context.Context, _ *entry) (string, error) {
	n, now, mark, err := s.ours(ctx)
	if err != nil {
		return "", err
	}
	if mark.Step == s.configStep(s.plan.Config) && n.Labels[labelConfig] == s.plan.Config {
		return "", nil // written before a crash
	}
	own := []string{"unschedulable"}
	if s.plan.First != "" {
		if is := n.Labels[labelConfig]; is != s.plan.First && !s.DryRun {
			return "", fmt.Errorf("somebody set %s=%s meanwhile", labelConfig, is)
		}
		own = append(own, "mig")
	}
	if err := s.asRelied(n, now, own...); err != nil {
		return "", err
	}
	return s.setConfig(ctx, n, mark, s.plan.Config)
}

// asRelied holds a node that is cordoned, and whose GPUs are to be re-made, to what the
// plan relies on; our own doing is left out.
func (s *saga) asRelied(n *corev1.Node, now map[string]string, own ...string) error {
	if s.DryRun {
		return nil
	}
	if !n.Spec.Unschedulable {
		return fmt.Errorf("%w: somebody opened node %s meanwhile", ErrStale, n.Name)
	}
	if held := s.held(now); held != "" {
		return fmt.Errorf("%w: %s", ErrStale, held)
	}
	return drift(n.Name, s.relies, now, own...)
}

func (s *saga) configStep(config string) string { return "config " + config }

func (s *saga) setConfig(ctx context.Context, n *corev1.Node, mark *v1alpha1.Operation, config string) (string, error) {
	mark.Step, mark.PriorState = s.configStep(config), n.Labels[labelState]
	return s.write(ctx, n, nil, map[string]any{labelConfig: config}, mark)
}

// verifyAndRelease holds the layout, and what the node advertises, to the plan, and
// opens the node.
func (s *saga) verifyAndRelease(ctx context.Context, e *entry) (string, error) {
	n, err := s.node(ctx, s.target)
	if err != nil || s.DryRun {
		return "", err
	}
	if e.again && s.markOf(n) == nil && n.Labels[labelConfig] == s.plan.Config {
		return "", keptClosed(n, s.relies["unschedulable"] == "true") // written before a crash
	}
	missing, err := s.arrived(ctx, n, s.plan.Config)
	if err == nil && missing != "" {
		err = errors.New(missing)
	}
	if err != nil {
		return "", err
	}
	return s.release(ctx, true)
}

// release takes our mark off, and our cordon if the node was schedulable before: a
// cordon that a person made stays. On the way there that is an error, for the pod will
// not come to the node.
func (s *saga) release(ctx context.Context, there bool) (string, error) {
	n, _, mark, err := s.ours(ctx)
	if err != nil {
		return "", err
	}
	closed := keptClosed(n, mark.PriorUnschedulable)
	var spec map[string]any
	if !mark.PriorUnschedulable && closed == nil {
		spec = map[string]any{"unschedulable": nil}
	}
	missing, err := s.write(ctx, n, spec, nil, nil)
	if err != nil {
		return "", fmt.Errorf("uncordon %s: %w", s.target.Name, err)
	}
	if missing != "" || !there {
		return missing, nil
	}
	return "", closed
}

// keptClosed says who has cordoned the node since we did, which the API server keeps
// beside every field; nil when nobody has, or it was closed before.
func keptClosed(n *corev1.Node, before bool) error {
	if before || !n.Spec.Unschedulable {
		return nil
	}
	for _, m := range n.ManagedFields {
		var has struct {
			Spec struct {
				Unschedulable *struct{} `json:"f:unschedulable"`
			} `json:"f:spec"`
		}
		if m.Manager == fieldManager || m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &has) != nil || has.Spec.Unschedulable == nil {
			continue
		}
		return fmt.Errorf("node %s was cordoned by %s meanwhile: its layout is made, it stays cordoned, and the pod waits until somebody opens it", n.Name, m.Manager)
	}
	return nil
}
