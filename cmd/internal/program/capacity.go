package program

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/capacity"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/diagnosis"
)

type capacityOptions struct {
	sources.Source
	output   string
	like     string
	tolerate []string
	exitCode bool
}

func capacityCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &capacityOptions{Source: sources.Source{Kube: kube}}
	c := &cobra.Command{
		Use:   "capacity RESOURCE=N [RESOURCE=N]...",
		Short: "Say whether N more of a GPU resource fit: now, after re-making idle instances, after moving somebody",
		Long: `Say whether N more of a GPU resource fit, one a pod. For a pod like one that is there
(--like), taints, selectors, CPU and memory are counted as the scheduler would; with
--tolerate taints and selectors alone. Without either the answer says for which pod it is
a yes. Resources asked together are answered together: what one takes the next does not get,
in the order in which all of them fit and the fewest have to leave.

Exit code 6 where the answer is unknown: nodes or pods cannot be read, or each resource fits
alone and not every way to have all of them was tried.`,
		Example: `  unpend capacity nvidia.com/mig-3g.20gb=3
  unpend capacity nvidia.com/gpu=2 --like pod/trainer -n ml --exit-code
  unpend capacity nvidia.com/mig-2g.10gb=2 -f testdata/scenarios/all-1g -o json`,
		Args: console.Arguments(cobra.MinimumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return o.run(c.Context(), args, std)
		},
	}
	o.Flags(c)
	c.Flags().StringVarP(&o.output, "output", "o", "", "json or yaml")
	c.Flags().StringVar(&o.like, "like", "", "a pod, or a workload with one, such as would come: [KIND/]NAME")
	c.Flags().StringArrayVar(&o.tolerate, "tolerate", nil, "a taint that the pods would tolerate: KEY[=VALUE][:EFFECT]")
	c.Flags().BoolVar(&o.exitCode, "exit-code", false, "exit 3 when not as many fit")
	return c
}

func (o *capacityOptions) run(ctx context.Context, args []string, std console.Stdio) error {
	if !slices.Contains([]string{"", "json", "yaml"}, o.output) {
		return console.Usage("output %q is not known: use json or yaml", o.output)
	}
	asks, err := capacityAsks(args)
	if err != nil {
		return err
	}
	guest, err := o.guest()
	if err != nil {
		return err
	}
	st, err := o.State(ctx, "", std)
	if err != nil {
		return err
	}
	if guest.Like, err = o.likeOne(st); err != nil {
		return err
	}
	list, err := capacity.Capacity(ctx, st, asks, guest)
	if errors.Is(err, capacity.ErrUnknown) {
		return console.Exit(console.ExitUnknown, err)
	}
	if err != nil {
		return err
	}
	if err := o.print(std, list); err != nil {
		return err
	}
	switch answer := list.Answer(); {
	case answer == diagnosis.Undecided:
		return console.Exit(console.ExitUnknown, nil)
	case answer == diagnosis.No && o.exitCode:
		return console.Exit(console.ExitFindings, nil)
	}
	return nil
}

func (o *capacityOptions) print(std console.Stdio, list diagnosis.CapacityList) error {
	if o.output != "" {
		return console.PrintList(std.Out, o.output, list)
	}
	return terminal.Capacity(std.Out, list, console.TerminalOptions(std.Out))
}

// guest reads the taints that are tolerated.
func (o *capacityOptions) guest() (capacity.Guest, error) {
	g := capacity.Guest{}
	for _, text := range o.tolerate {
		t := corev1.Toleration{Operator: corev1.TolerationOpExists}
		key, effect, _ := strings.Cut(text, ":")
		if k, value, valued := strings.Cut(key, "="); valued {
			key, t.Value, t.Operator = k, value, corev1.TolerationOpEqual
		}
		t.Key, t.Effect = key, corev1.TaintEffect(effect)
		if key == "" || !slices.Contains([]corev1.TaintEffect{"", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}, t.Effect) {
			return g, console.Usage("%q is no taint that could be tolerated: write KEY[=VALUE][:NoSchedule|:PreferNoSchedule|:NoExecute]", text)
		}
		g.Tolerate = append(g.Tolerate, t)
	}
	return g, nil
}

// likeOne is the pod that was named, or one of the workload that was.
func (o *capacityOptions) likeOne(st *cluster.State) (*corev1.Pod, error) {
	if o.like == "" {
		return nil, nil
	}
	ns, err := o.Namespace()
	if err != nil {
		return nil, err
	}
	return o.likeIn(st, ns)
}

// likeIn is likeOne of a namespace.
func (o *capacityOptions) likeIn(st *cluster.State, ns string) (*corev1.Pod, error) {
	if o.like == "" {
		return nil, nil
	}
	asked, err := newTarget([]string{o.like}, ns)
	if err != nil {
		return nil, err
	}
	for _, p := range st.Pods {
		if asked.matches(p, st) {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s is not there, so nobody knows what a pod like it takes; name it by --like [KIND/]NAME and its namespace by -n", asked)
}

// maxAsked keeps a slip of the finger from being planned for.
const maxAsked = 1_000_000

// capacityAsks reads RESOURCE=N; every mistake is a usage error.
func capacityAsks(args []string) ([]capacity.Ask, error) {
	var out []capacity.Ask
	for _, arg := range args {
		name, count, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, console.Usage("%q is not RESOURCE=N, such as nvidia.com/mig-3g.20gb=3", arg)
		}
		if err := capacity.CheckCapacityResource(name); err != nil {
			return nil, console.Usage("%v", err)
		}
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || n > maxAsked {
			return nil, console.Usage("%q asks for %q: a whole number from 1 to %d was expected", arg, count, maxAsked)
		}
		if slices.ContainsFunc(out, func(a capacity.Ask) bool { return a.Resource == name }) {
			return nil, console.Usage("%s is asked for twice", name)
		}
		out = append(out, capacity.Ask{Resource: name, Count: n})
	}
	return out, nil
}
