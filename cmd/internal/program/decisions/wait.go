package decisions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

type waitOptions struct {
	sources.Source
	until   string
	timeout time.Duration
}

func waitCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &waitOptions{Source: sources.Source{Kube: kube}}
	c := &cobra.Command{
		Use:   "wait INCIDENT",
		Short: "Wait until nobody of an incident waits any more, or until its plan is decided on",
		Long: `Wait for an incident (exit code 1 after the time-out):

  --for=running  until no pod of it waits any more
  --for=decided  until a plan for it is approved, rejected or over, or no pod of it waits`,
		Example: "  unpend wait gpu-7f3a01c9be --for=running --timeout 10m\n  unpend wait gpu-7f3a01c9be --for=decided",
		Args:    console.Arguments(cobra.ExactArgs(1)),
		RunE:    func(c *cobra.Command, args []string) error { return o.wait(c.Context(), args[0], std) },
	}
	c.Flags().StringVar(&o.until, "for", "running", "running or decided")
	c.Flags().DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait")
	return c
}

func (o *waitOptions) wait(ctx context.Context, arg string, std console.Stdio) error {
	if o.until != "running" && o.until != "decided" {
		return console.Usage("--for %q is not known: use running or decided", o.until)
	}
	if o.timeout <= 0 {
		return console.Usage("--timeout has to be more than 0")
	}
	ref, err := sources.ParseIncident(arg)
	if err != nil {
		return err
	}
	d, err := o.Deps()
	if err != nil {
		return err
	}
	if err := o.OfThisCluster(ctx, d, ref); err != nil {
		return err
	}
	f, err := live.Follow(ctx, d.Client, d.Dynamic, time.Now, d.Owners)
	if err != nil {
		return sources.Unreachable(err)
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	says, err := o.look(ctx, f, d, ref.ID)
	if err != nil {
		return err
	}
	fmt.Fprintln(std.Out, terminal.Clean(says))
	return nil
}

// look looks once a second; the first look says whether anybody has heard of the incident.
func (o *waitOptions) look(ctx context.Context, f *live.Follower, d executor.Deps, id string) (string, error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for first := true; ; first = false {
		st := f.State(ctx)
		if why := st.Unread["Pod"]; why != "" {
			return "", Absent(ctx, &o.Source, st, &d, id)
		}
		i, waits := sources.Waits(st)[id]
		if !waits {
			err := Absent(ctx, &o.Source, st, &d, id)
			if code, _ := console.CodeOf(err); first && code == console.ExitError {
				return "", err // nobody has heard of it
			}
			return "no pod of incident " + id + " waits any more", nil
		}
		if says := o.decided(ctx, d, id); o.until == "decided" && says != "" {
			return says, nil
		}
		select {
		case <-ctx.Done():
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return "", errors.New("no longer waiting; nothing was changed")
			}
			return "", fmt.Errorf("not within %s: %s of incident %s still wait", console.Lasting(o.timeout), console.Plural(i.Waiting, "pod", "pods"), id)
		case <-tick.C:
		}
	}
}

// decided says what was decided on the plan that tells most of an incident; empty while
// nothing was.
func (o *waitOptions) decided(ctx context.Context, d executor.Deps, id string) string {
	plans, err := plan.Store{Dynamic: d.Dynamic}.List(ctx)
	if err != nil {
		return ""
	}
	rem := Telling(plans)[id]
	if rem == nil || rem.Status.Phase == "" || rem.Status.Phase == v1alpha1.Pending {
		return ""
	}
	return fmt.Sprintf("plan %.12s of incident %s is %s", rem.Name, id, StandingOf(rem).State)
}
