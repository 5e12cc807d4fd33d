package program

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build says what this binary was made from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand(std Stdio) *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use:     "version",
		Short:   "Say what this binary was built from",
		Example: "  unpend version\n  unpend version -o json",
		Args:    arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			b := readBuild()
			switch output {
			case "":
				_, err := fmt.Fprintf(std.Out, "unpend %s %s (%s, %s)\n", b.Version, b.Revision, b.Go, b.Platform)
				return err
			case "json":
				return json.NewEncoder(std.Out).Encode(b)
			}
			return usage("output %q is not known: use json", output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "json")
	return c
}

func readBuild() build {
	b := build{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Revision = s.Value
		}
	}
	return b
}
