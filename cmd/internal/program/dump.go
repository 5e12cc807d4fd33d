package program

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/dump"
)

func dumpCommand(kube *sources.KubeFlags, std console.Stdio) *cobra.Command {
	s := &sources.Source{Kube: kube}
	output := "yaml"
	c := &cobra.Command{
		Use:   "dump",
		Short: "Write exactly what 'why' reads, without env values and secrets",
		Example: `  unpend dump > cluster.yaml
  unpend dump -o json | unpend why -f -`,
		Args: console.Arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "yaml" && output != "json" {
				return console.Usage("output %q is not known: use yaml or json", output)
			}
			ns, err := s.Namespace()
			if err != nil {
				return err
			}
			st, err := s.State(c.Context(), ns, std)
			if err != nil {
				return err
			}
			if err := dumpable(st); err != nil {
				return err
			}
			return dump.Write(std.Out, st.In(ns), output)
		},
	}
	s.Flags(c)
	c.Flags().StringVarP(&output, "output", "o", "yaml", "yaml or json")
	return c
}

// dumpable is an error where a dump would say nothing of what waits: no pod could be read.
func dumpable(st *cluster.State) error {
	if pods := st.Unread["Pod"]; st.Live && pods != "" && len(st.Pods) == 0 {
		return console.Exit(console.ExitUnknown, fmt.Errorf("nothing is written: pods are unread (%s), so the dump would say nothing of what waits; ask for the ClusterRole of approvers, or give -n a namespace that you may read", pods))
	}
	return nil
}
