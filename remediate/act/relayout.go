package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/pace"
	"github.com/unpend/unpend/remediate/plan"
)

// relayout re-makes GPUs of one node. All it has to remember is in the mark on the node.
type relayout struct {
	marked
	how *diagnosis.Relayout
}

func newRelayout(a action) verb { return &relayout{marked{a}, a.Relayout} }

func (s *relayout) steps() []journal.Step {
	out := []journal.Step{{ID: s.id("cordon"), Text: "cordon " + s.Target.Name, Within: pace.Contention, Try: s.cordon}}
	for _, v := range s.how.Victims {
		out = append(out, journal.Step{ID: s.id("evict/" + v.Namespace + "/" + v.Name), Text: evictText(v), Within: s.Deadlines.Evict,
			Try: func(ctx context.Context, e *journal.Entry) (string, error) { return s.evictHolder(ctx, v, e) }})
	}
	out = append(out, journal.Step{ID: s.id("empty"), Text: "wait until nobody holds the GPUs", Within: s.Deadlines.Leave, Try: s.waitEmpty})
	if s.how.ConfigMap != nil {
		out = append(out, journal.Step{ID: s.id("entry"), Text: "add entry " + s.how.Config, Within: pace.Contention, Try: s.writeEntry})
	}
	if s.how.First != "" {
		out = append(out, journal.Step{ID: s.id("first"), Text: "set " + nodeprobe.LabelMIGConfig + "=" + s.how.First + ", which its GPUs have", Within: s.Deadlines.Notice + pace.Contention, Try: s.askFirst})
	}
	out = append(out,
		journal.Step{ID: s.id("config"), Text: "set " + nodeprobe.LabelMIGConfig + "=" + s.how.Config, Within: pace.Contention, Try: s.configure},
		journal.Step{ID: s.id("manager"), Text: "wait for MIG manager", Within: s.Deadlines.Manager, Try: func(ctx context.Context, e *journal.Entry) (string, error) {
			return s.waitManager(ctx, s.how.Config, e)
		}},
		journal.Step{ID: s.id("release"), Text: "verify the layout and uncordon " + s.Target.Name, Within: pace.Contention, Try: s.verifyAndRelease})
	return s.underLock(out)
}

// left are the pods that were evicted: all else is taken back.
func (s *relayout) left() string {
	var out []string
	for _, v := range s.how.Victims {
		if was := s.evicted(s.id("evict/"+v.Namespace+"/"+v.Name), v); was != "" {
			out = append(out, was)
		}
	}
	return strings.Join(out, ", ")
}

func (s *relayout) achieved() string {
	return fmt.Sprintf("%s has the layout %q", s.Target.Name, s.how.Config)
}

func (s *relayout) rights() []right {
	out := []right{s.repartition()}
	for _, v := range s.how.Victims {
		out = append(out, evicts(v))
	}
	return out
}

// cordon closes and marks the node in one write, if all is as the plan relies on,
// and gives the scheduler time to hear of it: what it chose before, it still binds,
// and the pod that replaces a victim would come back to the node.
func (s *relayout) cordon(ctx context.Context, e *journal.Entry) (string, error) {
	n, now, err := s.look(ctx, s.Target)
	if err != nil {
		return "", err
	}
	if s.markOf(n) != nil { // also when an answer was lost, or we were
		return s.settled(e), nil
	}
	if err := unmarked(n); err != nil {
		return "", err
	}
	if err := drift(n.Name, s.Relies, now); err != nil {
		return "", err
	}
	missing, err := s.write(ctx, n, map[string]any{"unschedulable": true}, nil, s.newMark(n))
	if err != nil || missing != "" || s.DryRun {
		return missing, err
	}
	return s.settled(e), nil
}

func (s *relayout) settled(e *journal.Entry) string {
	if e.Since(s.Now()) < s.Deadlines.Settle {
		return "the scheduler hears of the cordon"
	}
	return ""
}

// waitEmpty waits until the victims have left and the probe sees nobody on the
// GPUs that are re-made.
func (s *relayout) waitEmpty(ctx context.Context, _ *journal.Entry) (string, error) {
	if s.DryRun {
		return "", nil
	}
	_, now, err := s.look(ctx, s.Target) // first: from a node that is gone nobody takes them
	if err != nil {
		return "", err
	}
	if missing, err := s.gone(ctx, s.how.Victims); err != nil || missing != "" {
		return missing, err
	}
	return s.held(now), nil
}

// evictHolder evicts a pod as long as its node is there, and marked as ours.
func (s *relayout) evictHolder(ctx context.Context, v diagnosis.Target, e *journal.Entry) (string, error) {
	n, err := s.node(ctx, s.Target)
	if err == nil && s.markOf(n) == nil && !s.DryRun {
		err = notOurs(n)
	}
	if err != nil {
		return "", err
	}
	return s.evict(ctx, v, e)
}

// held says who holds something of the GPUs that are re-made; empty when nobody
// does.
func (s *relayout) held(now map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(now)) {
		for _, gpu := range s.how.GPUs {
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
func (s *relayout) configure(ctx context.Context, _ *journal.Entry) (string, error) {
	n, now, mark, err := s.ours(ctx)
	if err != nil {
		return "", err
	}
	if mark.Step == s.configStep(s.how.Config) && n.Labels[nodeprobe.LabelMIGConfig] == s.how.Config {
		return "", nil // written before a crash
	}
	own := []string{"unschedulable"}
	if s.how.First != "" {
		if is := n.Labels[nodeprobe.LabelMIGConfig]; is != s.how.First && !s.DryRun {
			return "", fmt.Errorf("somebody set %s=%s meanwhile", nodeprobe.LabelMIGConfig, is)
		}
		own = append(own, "mig")
	}
	if err := s.asRelied(n, now, own...); err != nil {
		return "", err
	}
	return s.setConfig(ctx, n, mark, s.how.Config)
}

// asRelied holds a node that is cordoned, and whose GPUs are to be re-made, to what the
// plan relies on; our own doing is left out.
func (s *relayout) asRelied(n *corev1.Node, now map[string]string, own ...string) error {
	if s.DryRun {
		return nil
	}
	if !n.Spec.Unschedulable {
		return fmt.Errorf("%w: somebody opened node %s meanwhile", plan.ErrStale, n.Name)
	}
	if held := s.held(now); held != "" {
		return fmt.Errorf("%w: %s", plan.ErrStale, held)
	}
	return drift(n.Name, s.Relies, now, own...)
}

func (s *relayout) configStep(config string) string { return "config " + config }

func (s *relayout) setConfig(ctx context.Context, n *corev1.Node, mark *diagnosis.Operation, config string) (string, error) {
	mark.Step, mark.PriorState = s.configStep(config), n.Labels[nodeprobe.LabelMIGConfigState]
	return s.write(ctx, n, nil, map[string]any{nodeprobe.LabelMIGConfig: config}, mark)
}

// verifyAndRelease holds the layout, and what the node advertises, to the plan, and
// opens the node.
func (s *relayout) verifyAndRelease(ctx context.Context, e *journal.Entry) (string, error) {
	n, err := s.node(ctx, s.Target)
	if err != nil || s.DryRun {
		return "", err
	}
	if e.Again && s.markOf(n) == nil && n.Labels[nodeprobe.LabelMIGConfig] == s.how.Config {
		return "", keptClosed(n, s.Relies["unschedulable"] == "true") // written before a crash
	}
	missing, err := s.arrived(ctx, n, s.how.Config)
	if err == nil && missing != "" {
		err = errors.New(missing)
	}
	if err != nil {
		return "", err
	}
	return s.release(ctx, true)
}
