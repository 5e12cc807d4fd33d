package program

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/cluster"
)

func dumpCommand(kube *kubeFlags, std Stdio) *cobra.Command {
	s := &source{kube: kube}
	output := "yaml"
	c := &cobra.Command{
		Use:   "dump",
		Short: "Write exactly what 'why' reads, without env values and secrets",
		Example: `  unpend dump > cluster.yaml
  unpend dump -o json | unpend why -f -`,
		Args: arguments(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "yaml" && output != "json" {
				return usage("output %q is not known: use yaml or json", output)
			}
			ns, err := s.namespace()
			if err != nil {
				return err
			}
			st, err := s.state(c.Context(), ns, std)
			if err != nil {
				return err
			}
			if err := dumpable(st); err != nil {
				return err
			}
			return cluster.Write(std.Out, st.In(ns), output)
		},
	}
	s.flags(c)
	c.Flags().StringVarP(&output, "output", "o", "yaml", "yaml or json")
	return c
}

// dumpable is an error where a dump would say nothing of what waits: no pod could be read.
func dumpable(st *cluster.State) error {
	if pods := st.Unread["Pod"]; st.Live && pods != "" && len(st.Pods) == 0 {
		return &codedError{exitUnknown, fmt.Errorf("nothing is written: pods are unread (%s), so the dump would say nothing of what waits; ask for the ClusterRole of approvers, or give -n a namespace that you may read", pods)}
	}
	return nil
}

// printList writes a versioned list for machines.
func printList(w io.Writer, format string, list any) error {
	data, err := json.MarshalIndent(list, "", "  ")
	if err == nil && format == "yaml" {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	_, err = fmt.Fprintln(w, string(data))
	return err
}
