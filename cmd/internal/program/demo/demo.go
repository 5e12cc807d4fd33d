// Package demo is `unpend demo`: the whole story on a cluster in memory, which
// cmd/internal/world keeps. Everything else in it is what runs on clusters of people.
package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/decisions"
	"github.com/unpend/unpend/cmd/internal/service"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/cmd/internal/world"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/executor"
	"github.com/unpend/unpend/watcher/incident"
)

type demoOptions struct {
	auto   bool
	seed   uint64
	output string
	chaos  string
	web    bool
}

// Command is `unpend demo`.
func Command(std console.Stdio) *cobra.Command {
	o := &demoOptions{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Play the whole story in memory: no cluster, no GPU, no network",
		Example: `  unpend demo
  unpend demo --auto
  unpend demo --auto -o json
  unpend demo --web`,
		Args: console.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.output != "" && o.output != "json" {
				return console.Usage("output %q is not known: use json", o.output)
			}
			if o.chaos != "" && o.chaos != "kill" {
				return console.Usage("chaos %q is not known: use kill", o.chaos)
			}
			if o.web && o.chaos != "" && !o.auto {
				return console.Usage("--chaos kills the executor of what --auto approves: with --web leave it out, or add --auto")
			}
			return o.play(c.Context(), std)
		},
	}
	c.Flags().BoolVar(&o.auto, "auto", false, "approve the best fix without asking")
	c.Flags().Uint64Var(&o.seed, "seed", 1, "how the cluster is filled")
	c.Flags().StringVar(&o.chaos, "chaos", "", "kill: the executor is killed in the middle, and another goes on")
	c.Flags().BoolVar(&o.web, "web", false, "show the cluster on a page for your browser, and approve there, or with --auto see it done; ctrl-C ends it")
	c.Flags().StringVarP(&o.output, "output", "o", "", "json: one object a line")
	return c
}

// demo is one playing of the story.
type demo struct {
	demoOptions
	std     console.Stdio
	world   *world.World
	token   string // of the one person there
	deps    executor.Deps
	started time.Time
}

func (o *demoOptions) play(ctx context.Context, std console.Stdio) (err error) {
	token := rand.Text()
	w, err := world.New(ctx, world.Options{Token: token, Now: time.Now, Logger: slog.New(slog.DiscardHandler), Apply: 1500 * time.Millisecond, Spread: true})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := w.Close(); err == nil {
			err = cerr
		}
	}()
	d := &demo{demoOptions: *o, std: std, world: w, token: token, started: time.Now(), deps: executor.Deps{
		Client: w.Client(), Dynamic: w.Dynamic(), Now: time.Now, Logger: slog.New(slog.DiscardHandler), Poll: 100 * time.Millisecond}}
	return d.story(ctx)
}

func (d *demo) story(ctx context.Context) error {
	d.say("8 nodes with 8 A100 each are being filled with serving pods …")
	pods, err := furnish(ctx, d.world, d.seed)
	if err != nil {
		return err
	}
	if err := d.await(ctx, func(st *cluster.State) bool { return runs(st, "serving") == pods && reported(st) }); err != nil {
		return err
	}
	if err := closeNodes(ctx, d.world.Client()); err != nil {
		return err
	}
	if err := d.bars(ctx); err != nil {
		return err
	}
	d.say("\nJob ml/llama-70b asks for 2 × nvidia.com/mig-3g.20gb.\n")
	if _, err := d.world.Client().BatchV1().Jobs("ml").Create(ctx, demoJob(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the job: %w", err)
	}
	found, err := d.finding(ctx)
	if err != nil {
		return err
	}
	if d.web {
		return d.onPage(ctx, found)
	}
	approved, err := d.decide(ctx, found)
	if err != nil || !approved {
		return err
	}
	return d.fix(ctx, found)
}

// await reads the world until it is as wanted.
func (d *demo) await(ctx context.Context, ok func(*cluster.State) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	f, err := live.Follow(ctx, d.world.Client(), d.world.Dynamic(), time.Now)
	if err != nil {
		return err
	}
	defer f.Close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok(f.State(ctx)) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("play the demo: %w", ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

func runs(st *cluster.State, namespace string) int {
	n := 0
	for _, p := range st.Pods {
		if p.Namespace == namespace && p.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	return n
}

func reported(st *cluster.State) bool {
	for _, n := range st.Nodes {
		if known, _ := st.HoldersKnown(n.Name); !known {
			return false
		}
	}
	return len(st.Nodes) == demoNodes
}

// finding lets the rooms do their work, as in `unpend run`: the watcher notices,
// the bus carries, the diagnosis explains.
func (d *demo) finding(ctx context.Context) (diagnosis.Diagnosis, error) {
	found, err := d.explained(ctx)
	if err != nil {
		return diagnosis.Diagnosis{}, err
	}
	if d.output == "json" {
		return found, d.events().Emit(map[string]any{"event": "finding", "diagnosis": found})
	}
	style := console.TerminalOptions(d.std.Out)
	style.Now, style.Again.Gone = time.Now(), true
	return found, terminal.Render(d.std.Out, found, style)
}

func (d *demo) explained(ctx context.Context) (diagnosis.Diagnosis, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return service.Once(ctx, d.world.Client(), d.world.Dynamic(), d.deps.Logger, func(i incident.Incident) bool {
		return i.Workload.Name == demoJob().Name && !i.Resolved && i.Pods[0].Reason == corev1.PodReasonUnschedulable
	})
}

// decide asks until there is a yes or a no; a dry run may be had in between.
func (d *demo) decide(ctx context.Context, found diagnosis.Diagnosis) (bool, error) {
	for !d.auto {
		answer, err := console.Question("\nApprove fix 1? [y/N/d=dry run] ", d.std)
		switch {
		case answer == "y" || answer == "yes":
			return true, nil
		case answer == "d":
			dry := d.deps
			dry.DryRun, dry.Locks = true, demoNamespace // the steps are those of its executor
			if err := decisions.Apply(ctx, dry, decisions.FromHere(dry, found.Incident, 1, found.Fixes[0].Plan), d.std); err != nil {
				return false, err
			}
			continue
		case err != nil && err != io.EOF: //nolint:errorlint // bufio returns io.EOF itself
			return false, fmt.Errorf("read the answer: %w", err)
		}
		d.say("Not approved; nothing was changed.")
		return false, nil
	}
	return true, nil
}

func (d *demo) fix(ctx context.Context, found diagnosis.Diagnosis) error {
	plan := found.Fixes[0].Plan
	carry := d.carry(found.Incident, 1, plan)
	if d.output != "json" {
		if err := decisions.Apply(ctx, d.deps, carry, d.std); err != nil {
			return err
		}
		if err := d.bars(ctx); err != nil {
			return err
		}
		if err := d.told(ctx, found); err != nil {
			return err
		}
		d.say("\nNext: on a cluster of yours, reading only: kubectl unpend why -A")
		return nil
	}
	return d.events().Apply(ctx, d.deps, plan, carry)
}

func (d *demo) events() decisions.Events { return decisions.Events{Out: d.std.Out, Started: d.started} }

func (d *demo) say(text string) {
	w := d.std.Out
	if d.output == "json" {
		w = d.std.Err
	}
	fmt.Fprintln(w, text)
}

// bars shows every node's memory slices: held, and not.
func (d *demo) bars(ctx context.Context) error {
	st, err := live.Read(ctx, d.world.Client(), d.world.Dynamic(), time.Now)
	if err != nil {
		return err
	}
	for _, n := range st.Nodes {
		held, total := 0, 0
		for _, g := range st.Geometries[n.Name].Report.GPUs {
			total += 8
			for _, in := range g.Instances {
				if in.Holder != nil {
					held += in.Size
				}
			}
		}
		note := ""
		if n.Spec.Unschedulable {
			note = "  cordoned"
		}
		for _, t := range n.Spec.Taints {
			note += "  taint " + t.ToString()
		}
		d.say(fmt.Sprintf("  %s  [%s%s] %2d of %d slices held%s", n.Name, strings.Repeat("#", held/2), strings.Repeat(".", total/2-held/2), held, total, note))
	}
	return nil
}
