package decisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/act"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

type releaseOptions struct {
	sources.Source
	namespace string // of the executor
	every     bool
	dryRun    bool
	yes       bool
	parkedToo bool
}

func releaseCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &releaseOptions{Source: sources.Source{Kube: kube}}
	c := &cobra.Command{
		Use:   "release NODE|PLAN",
		Short: "Give a node back that an operation has left cordoned and marked: parked, orphaned, or after an uninstall",
		Long: `Give a node back that carries the mark of an operation and that nobody works on any more:
it is parked, its terminal or its executor is gone, or unpend was uninstalled. What was
before is restored: a plan that a terminal has left is taken back by its journal; else
nvidia.com/mig.config is set back where the operation has changed it and nobody holds a
GPU that is laid out so, the node is uncordoned if it was open before, nobody wants it
closed since and MIG manager says success, and the mark and the lock are taken off.

It shows what it will do and asks. A node whose owner is alive is refused (exit code 4):
'unpend reject' stops that. --all releases every marked node, before an uninstall; PLAN
(the beginning of its hash) is for one that a terminal has left without a marked node.`,
		Example: "  unpend release gpu-node-1\n  unpend release gpu-node-1 --dry-run\n  unpend release --all --yes",
		Args: func(c *cobra.Command, args []string) error {
			if o.every != (len(args) == 0) || len(args) > 1 {
				return console.Usage("name one node or plan, or give --all; see '%s --help'", c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return o.release(c.Context(), args, std) },
	}
	ExecutorFlag(c, &o.namespace)
	c.Flags().BoolVar(&o.every, "all", false, "every node that carries a mark")
	c.Flags().BoolVar(&o.parkedToo, "parked", true, "nodes that are parked, too; false: they are refused, by their names")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "send every write as a server-side dry run")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "ask nothing")
	return c
}

func (o *releaseOptions) release(ctx context.Context, args []string, std console.Stdio) error {
	d, err := o.Deps()
	if err != nil {
		return err
	}
	d.DryRun = o.dryRun
	nodes, err := o.nodes(ctx, d, args)
	if apierrors.IsNotFound(err) {
		return outcomeError(o.plan(ctx, d, args[0], std))
	}
	if err != nil {
		return outcomeError(sources.Unreachable(err))
	}
	var failed error
	marked := 0
	for i := range nodes {
		did, err := o.one(ctx, d, &nodes[i], std)
		if did {
			marked++
		}
		failed = errors.Join(failed, err)
	}
	if o.every && failed == nil {
		failed = o.underWay(ctx, d)
	}
	if marked == 0 && failed == nil {
		fmt.Fprintln(std.Out, "No mark of unpend is there: nothing is to be released.")
	}
	return outcomeError(failed)
}

// nodes are the one that was named, or all that carry a mark.
func (o *releaseOptions) nodes(ctx context.Context, d executor.Deps, args []string) ([]corev1.Node, error) {
	if !o.every {
		n, err := d.Client.CoreV1().Nodes().Get(ctx, args[0], metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []corev1.Node{*n}, nil
	}
	list, err := d.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the nodes: %w", err)
	}
	return list.Items, nil
}

// underWay is plan.ErrRefused while an executor carries a plan out that has marked no node,
// or none yet: it evicts, or makes a workload again.
func (o *releaseOptions) underWay(ctx context.Context, d executor.Deps) error {
	plans, err := plan.Store{Dynamic: d.Dynamic}.List(ctx)
	if err != nil {
		return nil // not installed, or not for this person to see
	}
	for i := range plans {
		rem := &plans[i]
		if !rem.Status.Phase.Begun() || rem.Spec.Carrier == v1alpha1.Terminal {
			continue
		}
		lease, err := executor.Leader(ctx, d, o.namespace)
		switch {
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("%w: whether an executor carries plan %.12s out cannot be told: %w", plan.ErrRefused, rem.Name, err)
		case lease != nil:
			return fmt.Errorf("%w: the executor in namespace %s carries plan %.12s out (step %s): 'unpend reject %.12s' stops it and takes it back", plan.ErrRefused, o.namespace, rem.Name, rem.Status.Progress, rem.Name)
		}
	}
	return nil
}

// one gives a node back; false: it has no mark.
func (o *releaseOptions) one(ctx context.Context, d executor.Deps, n *corev1.Node, std console.Stdio) (bool, error) {
	if _, marked := n.Annotations[diagnosis.OperationAnnotation]; !marked {
		return o.unmarked(ctx, d, n.Name, std)
	}
	if mark, err := diagnosis.OperationOn(n); err == nil && mark != nil && mark.Parked != "" && !o.parkedToo {
		return true, fmt.Errorf("%w: node %s is parked: %s: look at it, and give it back by 'unpend release %s'", plan.ErrRefused, n.Name, mark.Parked, n.Name)
	}
	held, err := executor.Holding(ctx, d, o.namespace, n)
	if err != nil {
		return true, err
	}
	if err := executor.MayRelease(ctx, d, n.Name); err != nil {
		return true, err
	}
	if held.Lost {
		return true, o.lost(ctx, d, held.Plan, "node "+n.Name, std)
	}
	r, err := executor.Releasing(ctx, d, o.namespace, held)
	if err != nil {
		return true, err
	}
	fmt.Fprintf(std.Err, "node %s: %s\n", n.Name, terminal.Clean(held.Says))
	for _, line := range r.Says() {
		fmt.Fprintf(std.Err, "  - %s\n", terminal.Clean(line))
	}
	if err := console.Agreed(o.yes || o.dryRun, fmt.Sprintf("Release node %s? [y/N] ", n.Name), std); err != nil {
		return true, err
	}
	return true, o.do(ctx, d, held, r, std)
}

// unmarked ends a plan for a node that a terminal has left before the mark was on it, or
// once it was off again; false: there is none.
func (o *releaseOptions) unmarked(ctx context.Context, d executor.Deps, node string, std console.Stdio) (bool, error) {
	plans, err := plan.Store{Dynamic: d.Dynamic}.List(ctx)
	if err != nil {
		return false, nil // not installed, or not for this person to see: the node has no mark
	}
	for i := range plans {
		rem := &plans[i]
		if !rem.Status.Phase.Begun() || rem.Spec.Carrier != v1alpha1.Terminal || !slices.Contains(rem.Spec.Nodes, node) {
			continue
		}
		return true, o.left(ctx, d, rem, "node "+node, std)
	}
	return false, nil
}

func (o *releaseOptions) do(ctx context.Context, d executor.Deps, held *executor.Held, r *act.Release, std console.Stdio) error {
	said := ""
	tell := func(text string) {
		if text != said {
			said = text
			fmt.Fprintf(std.Err, "  %s\n", terminal.Clean(text))
		}
	}
	if err := r.Do(ctx, time.Second, tell); err != nil {
		return fmt.Errorf("release node %s: %w", held.Node.Name, err)
	}
	if o.dryRun {
		fmt.Fprintf(std.Out, "Dry run: the API server would accept every write; node %s is as it was.\n", held.Node.Name)
		return nil
	}
	if lacks := executor.Released(ctx, d, held, r); lacks != nil {
		fmt.Fprintf(std.Err, "%s\n", terminal.Clean(lacks.Error()))
	}
	is := "open"
	now, err := d.Client.CoreV1().Nodes().Get(ctx, held.Node.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node %s: %w", held.Node.Name, err)
	}
	if now.Spec.Unschedulable {
		is = "cordoned"
	}
	fmt.Fprintf(std.Out, "node %s is released: it is %s\n", held.Node.Name, is)
	return nil
}

// lost takes back what a terminal has left.
func (o *releaseOptions) lost(ctx context.Context, d executor.Deps, rem *v1alpha1.Remediation, what string, std console.Stdio) error {
	fmt.Fprintf(std.Err, "%s: the terminal of %s that carried out plan %.12s has ended in step %s: %s\n  - what it has begun is taken back, step by step\n",
		what, terminal.Clean(rem.Spec.Requester), rem.Name, rem.Status.Progress, terminal.Clean(rem.Spec.Title))
	if o.dryRun {
		fmt.Fprintln(std.Out, "Dry run: nothing was changed.")
		return nil
	}
	if err := console.Agreed(o.yes, "Take it back? [y/N] ", std); err != nil {
		return err
	}
	if err := takeBack(ctx, d, rem, std); err != nil {
		return err
	}
	fmt.Fprintf(std.Out, "%s is released: plan %.12s was taken back\n", what, rem.Name)
	return nil
}

// plan takes back a plan that a terminal has left.
func (o *releaseOptions) plan(ctx context.Context, d executor.Deps, name string, std console.Stdio) error {
	plans, err := listPlans(ctx, d)
	var rem *v1alpha1.Remediation
	if err == nil {
		rem, err = planNamed(plans, name)
	}
	if err != nil {
		return fmt.Errorf("%q is no node, and no plan: %w", name, err)
	}
	if !rem.Status.Phase.Begun() || rem.Spec.Carrier != v1alpha1.Terminal {
		return fmt.Errorf("%w: plan %.12s is %s, and not one that a terminal has begun", plan.ErrRefused, rem.Name, StandingOf(rem).State)
	}
	return o.left(ctx, d, rem, fmt.Sprintf("plan %.12s", rem.Name), std)
}

// left takes a plan back if its terminal is gone.
func (o *releaseOptions) left(ctx context.Context, d executor.Deps, rem *v1alpha1.Remediation, what string, std console.Stdio) error {
	gone, err := watched(ctx, d, rem, std)
	if err != nil {
		return err
	}
	if !gone {
		return fmt.Errorf("%w: plan %.12s goes on: 'unpend reject %.12s' stops it and takes it back", plan.ErrRefused, rem.Name, rem.Name)
	}
	return o.lost(ctx, d, rem, what, std)
}
