package program

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
)

// What the Makefile links in: the tag, the commit, with -dirty behind it when files have
// been changed since, and when it was made. Empty in any other build.
var version, commit, date string

// build says what this binary was made from.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Date is when the revision was made, not the binary: the same revision gives the
	// same binary at any time.
	Date     string `json:"date,omitempty"`
	Modified bool   `json:"modified,omitempty"` // files have been changed since
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionCommand(std console.Stdio) *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use:     "version",
		Short:   "Say what this binary was built from",
		Example: "  unpend version\n  unpend version -o json",
		Args:    console.Arguments(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			switch output {
			case "":
				return writeVersion(std)
			case "json":
				return json.NewEncoder(std.Out).Encode(readBuild())
			}
			return console.Usage("output %q is not known: use json", output)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "json")
	return c
}

func writeVersion(std console.Stdio) error {
	_, err := fmt.Fprintln(std.Out, readBuild())
	return err
}

func (b build) String() string {
	var of []string
	if b.Revision != "" {
		of = append(of, "commit "+b.Revision)
	}
	if b.Modified {
		of = append(of, "modified")
	}
	if b.Date != "" {
		of = append(of, b.Date)
	}
	return fmt.Sprintf("unpend %s (%s)", b.Version, strings.Join(append(of, b.Go, b.Platform), ", "))
}

func readBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

// buildOf takes what the Makefile links in before what Go notes of itself: that has
// no commit where Go is told not to ask git.
func buildOf(info *debug.BuildInfo) build {
	noted := map[string]string{}
	for _, s := range info.Settings {
		noted[s.Key] = s.Value
	}
	b := build{Version: cmp.Or(version, info.Main.Version, "(devel)"), Revision: noted["vcs.revision"], Date: cmp.Or(date, noted["vcs.time"]),
		Modified: noted["vcs.modified"] == "true", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if commit != "" {
		b.Revision, b.Modified = strings.CutSuffix(commit, "-dirty")
	}
	return b
}
