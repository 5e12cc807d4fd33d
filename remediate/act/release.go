package act

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// Release gives a node back that carries a mark of ours and that nobody works on: what it
// was before is in the mark. It is made by NewRelease, shown, and then done.
type Release struct {
	marked
	mark *diagnosis.Operation // nil: what stands there cannot be read
	// config that nvidia.com/mig.config is set back to; empty: it is left.
	config string
	opens  bool
	says   []string
}

// NewRelease looks at a node and says what there is to do; nil where it has no mark.
func NewRelease(ctx context.Context, d Deps, n *corev1.Node) (*Release, error) {
	if _, marked := n.Annotations[diagnosis.OperationAnnotation]; !marked {
		return nil, nil
	}
	target := diagnosis.Target{Kind: "Node", Name: n.Name, UID: string(n.UID)}
	r := &Release{marked: marked{action{run: &run{Deps: d, rem: &v1alpha1.Remediation{}}, Action: diagnosis.Action{Target: target}}}}
	open := n.DeepCopy()
	open.Spec.Unschedulable = true // the mark of a quarantine that was ended by hand is taken off too
	mark, err := diagnosis.OperationOn(open)
	if err != nil {
		r.say("take the annotation %s off, which is not one of ours: %q", diagnosis.OperationAnnotation, n.Annotations[diagnosis.OperationAnnotation])
		r.stays(n, "what it was before is not known")
		return r, nil
	}
	r.mark, r.rem.Name, r.rem.UID = mark, mark.Plan, mark.ID
	if err := r.layout(ctx, n); err != nil {
		return nil, err
	}
	r.say("take the mark of plan %.12s off", mark.Plan)
	r.cordon(n)
	return r, nil
}

// Says is what will be done, a line each.
func (r *Release) Says() []string { return slices.Clone(r.says) }

func (r *Release) say(format string, args ...any) {
	r.says = append(r.says, fmt.Sprintf(format, args...))
}

// layout decides on the MIG config: it is set back where the operation has changed it, and
// nobody holds a GPU that is laid out so.
func (r *Release) layout(ctx context.Context, n *corev1.Node) error {
	is, was := n.Labels[nodeprobe.LabelMIGConfig], r.mark.PriorMIGConfig
	state := n.Labels[nodeprobe.LabelMIGConfigState]
	set, ours := strings.CutPrefix(r.mark.Step, "config ")
	switch {
	case is == was:
		if is != "" {
			r.say("leave %s=%s, as it was; MIG manager says %q", nodeprobe.LabelMIGConfig, is, state)
		}
		return nil
	case was == "" || !ours || is != set:
		r.say("leave %s=%s, which others have set since it was %q; MIG manager says %q", nodeprobe.LabelMIGConfig, is, was, state)
		return nil
	}
	holders, err := r.holders(ctx, n.Name)
	if err != nil {
		return err
	}
	if len(holders) > 0 {
		r.say("leave %s=%s (it was %s; MIG manager says %q): %s holds GPUs that are laid out so", nodeprobe.LabelMIGConfig, is, was, state, holders[0])
		return nil
	}
	r.config = was
	r.say("set %s back from %s to %s (MIG manager says %q), and wait for MIG manager", nodeprobe.LabelMIGConfig, is, was, state)
	return nil
}

// holders are the pods on a node that hold something of NVIDIA's.
func (r *Release) holders(ctx context.Context, node string) ([]string, error) {
	pods, err := r.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()})
	if err != nil {
		return nil, fmt.Errorf("list the pods on %s: %w", node, err)
	}
	var out []string
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return asksNVIDIA(c.Resources.Limits) }) {
			out = append(out, p.Namespace+"/"+p.Name)
		}
	}
	return out, nil
}

func asksNVIDIA(l corev1.ResourceList) bool {
	for name, q := range l {
		if strings.HasPrefix(string(name), "nvidia.com/") && !q.IsZero() {
			return true
		}
	}
	return false
}

// cordon decides whether the node is opened: it was open before, nobody wants it closed
// since, and its layout is as MIG manager says it should be.
func (r *Release) cordon(n *corev1.Node) {
	state := n.Labels[nodeprobe.LabelMIGConfigState]
	switch kept := keptClosed(n, r.mark.PriorUnschedulable); {
	case !n.Spec.Unschedulable:
		r.say("leave it open, as it is")
	case r.mark.PriorUnschedulable:
		r.stays(n, "it was so before")
	case kept != nil:
		r.stays(n, "somebody else wants it so: annotation "+diagnosis.KeepCordoned+", or spec.unschedulable is of another manager too")
	case r.config == "" && state != "" && state != "success":
		r.stays(n, fmt.Sprintf("MIG manager says %q; once its GPUs are well: kubectl uncordon %s", state, n.Name))
	default:
		r.opens = true
		r.say("uncordon it")
	}
}

func (r *Release) stays(n *corev1.Node, why string) {
	is := "open"
	if n.Spec.Unschedulable {
		is = "cordoned"
	}
	r.say("leave it %s: %s", is, why)
}

// Do gives the node back as it was shown, tells how that goes on, and says what came of
// it. The error says what is left: until the last write the mark is.
func (r *Release) Do(ctx context.Context, poll time.Duration, tell func(string)) error {
	if r.config != "" {
		if err := r.setBack(ctx, poll, tell); err != nil {
			return err
		}
	}
	return r.until(ctx, poll, pace.Contention, func(n *corev1.Node) (string, error) {
		var spec map[string]any
		if r.opens && n.Spec.Unschedulable && (r.mark == nil || keptClosed(n, r.mark.PriorUnschedulable) == nil) {
			spec = map[string]any{"unschedulable": nil}
		}
		return r.write(ctx, n, spec, nil, nil)
	})
}

// setBack asks for the config that was before, and waits for MIG manager. What its state
// says counts once it has moved, or has stayed for as long as MIG manager takes to look.
func (r *Release) setBack(ctx context.Context, poll time.Duration, tell func(string)) error {
	mark := *r.mark
	err := r.until(ctx, poll, pace.Contention, func(n *corev1.Node) (string, error) {
		mark.Step, mark.PriorState = "config "+r.config, n.Labels[nodeprobe.LabelMIGConfigState]
		return r.write(ctx, n, nil, map[string]any{nodeprobe.LabelMIGConfig: r.config}, &mark)
	})
	if err != nil || r.DryRun {
		return err
	}
	began, news := r.Now(), false
	err = r.until(ctx, poll, r.Deadlines.Manager, func(n *corev1.Node) (string, error) {
		state := n.Labels[nodeprobe.LabelMIGConfigState]
		news = news || state != mark.PriorState || r.Now().Sub(began) > r.Deadlines.Notice
		tell(fmt.Sprintf("MIG manager says %q", state))
		switch {
		case n.Labels[nodeprobe.LabelMIGConfig] != r.config:
			return "", fmt.Errorf("somebody set %s=%s meanwhile", nodeprobe.LabelMIGConfig, n.Labels[nodeprobe.LabelMIGConfig])
		case news && state == "failed":
			return "", fmt.Errorf("MIG manager says failed for %s", r.config)
		case news && state == "success":
			return "", nil
		}
		return "MIG manager says " + state, nil
	})
	if err != nil {
		return fmt.Errorf("%w; node %s stays cordoned with its mark: release it again once its GPUs are well", err, r.Target.Name)
	}
	return nil
}

// until tries on fresh readings of the node until nothing is missing.
func (r *Release) until(ctx context.Context, poll, within time.Duration, try func(*corev1.Node) (string, error)) error {
	began := r.Now()
	for {
		n, err := r.node(ctx, r.Target)
		if err != nil {
			return err
		}
		if mark := r.markOf(n); mark == nil && r.mark != nil && r.mark.Quarantined == "" {
			return notOurs(n)
		}
		missing, err := try(n)
		if err != nil || missing == "" {
			return err
		}
		if r.Now().Sub(began) > within {
			return fmt.Errorf("not within %s: %s", within, missing)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// Unlock gives the lock of the node back, if the plan of the mark holds it, as far as the
// caller may.
func (r *Release) Unlock(ctx context.Context) error {
	if r.Locks == "" || r.DryRun || r.mark == nil {
		return nil
	}
	l, err := r.Client.CoordinationV1().Leases(r.Locks).Get(ctx, r.lockName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && ptr.Deref(l.Spec.HolderIdentity, "") != r.rem.Name {
		return nil
	}
	if err == nil {
		err = r.deleteLock(ctx, l)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("give lock %s back: %w", r.lockName(), err)
	}
	return nil
}
