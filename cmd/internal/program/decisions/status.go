package decisions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/unpend/unpend/cmd/internal/bus"
	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/cmd/internal/terminal"
	"github.com/unpend/unpend/rca/cluster/live"
	"github.com/unpend/unpend/remediate/executor"
)

type statusOptions struct {
	sources.Source
	output    string
	namespace string
	nats      string
}

// fewLetters are the dead letters that are shown one by one.
const fewLetters = 10

func statusCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	o := &statusOptions{Source: sources.Source{Kube: kube}}
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show who carries fixes out, the guard-rails with their figures, and what is parked",
		Example: "  unpend status\n  unpend status -o json\n  unpend status --nats nats://nats:4222",
		Args:    console.Arguments(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return o.show(c.Context(), std) },
	}
	c.Flags().StringVarP(&o.output, "output", "o", "", "json or yaml")
	ExecutorFlag(c, &o.namespace)
	c.Flags().StringVar(&o.nats, "nats", "", "URL of the NATS that the service uses: tells the messages that could not be dealt with")
	return c
}

func (o *statusOptions) show(ctx context.Context, std console.Stdio) error {
	if !slices.Contains([]string{"", "json", "yaml"}, o.output) {
		return console.Usage("output %q is not known: use json or yaml", o.output)
	}
	d, err := o.Deps()
	if err != nil {
		return err
	}
	s, err := executor.Stand(ctx, d, o.namespace)
	if err != nil {
		return sources.Unreachable(err)
	}
	is := withLetters{Standing: s}
	if is.Processes, err = processes(ctx, d.Client, o.namespace); err != nil {
		is.Unread = append(is.Unread, err.Error())
	}
	var unread error
	if o.nats != "" {
		unread = is.read(ctx, d.Client, o.nats)
	}
	if o.output != "" {
		err = console.PrintList(std.Out, o.output, is)
	} else {
		err = terminal.Status(std.Out, append(statusLines(is.Standing, d.Now()), is.lines()...), console.TerminalOptions(std.Out))
	}
	return errors.Join(err, unread) // the rest is told also where NATS is not there
}

// withLetters is how a cluster stands, and what its service could not deal with.
type withLetters struct {
	executor.Standing
	// Processes are the service's pods; none where it is not installed, or none may be read.
	Processes []process `json:"processes,omitempty"`
	// DeadLetters are the first of so many; without a count nobody was asked, or nobody answered.
	DeadLetters     []bus.Letter `json:"deadLetters,omitempty"`
	DeadLetterCount *int         `json:"deadLetterCount,omitempty"`
}

func (w *withLetters) read(ctx context.Context, client kubernetes.Interface, url string) error {
	id, err := live.ID(ctx, client)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	first, all, err := bus.Letters(ctx, url, id, fewLetters)
	if err != nil {
		return fmt.Errorf("what could not be dealt with is unknown: %w", err)
	}
	w.DeadLetters, w.DeadLetterCount = first, &all
	return nil
}

func (w *withLetters) lines() []terminal.Line {
	s := standing{}
	s.tellProcesses(w.Processes)
	if w.DeadLetterCount == nil {
		return s.lines
	}
	s.add(*w.DeadLetterCount > 0, "dead letters", "%s could not be dealt with", counted(*w.DeadLetterCount, "message"))
	for _, l := range w.DeadLetters {
		s.add(true, "dead letters", "%s %s since %s: %s", l.Topic, l.Key, l.Since.UTC().Format(time.RFC3339), l.Why)
	}
	if more := *w.DeadLetterCount - len(w.DeadLetters); more > 0 {
		s.add(true, "dead letters", "and %d more", more)
	}
	return s.lines
}
