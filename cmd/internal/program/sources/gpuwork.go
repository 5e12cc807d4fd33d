package sources

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/idle"
)

// GPUWork says where to look up what pods do with their GPUs. The commands that diagnose
// have it from their flags; the service has it from its configuration.
type GPUWork struct{ idle.Options }

// Flags are those that say where to ask, and who is idle.
func (p *GPUWork) Flags(c *cobra.Command) {
	c.Flags().StringVar(&p.Address, "prometheus", "", "URL of the Prometheus that scrapes the DCGM exporter: tells which holders of GPUs are idle")
	c.Flags().StringVar(&p.TokenFile, "prometheus-token-file", "", "file with a bearer token for it")
	c.Flags().DurationVar(&p.Window, "idle-window", 30*time.Minute, "how long a pod has done no GPU work to be idle")
	c.Flags().Float64Var(&p.Threshold, "idle-threshold", 5, "below how many percent of GPU work a pod is idle")
}

// Measure is nil where no Prometheus is named.
func (p GPUWork) Measure() (diagnosis.Measure, error) { return idle.NewMeasure(p.Options) }

// Again are the flags that make another command find the same fixes.
func (p GPUWork) Again() string {
	if p.Address == "" {
		return ""
	}
	out := "--prometheus " + console.Quoted(p.Address)
	if p.TokenFile != "" {
		out += " --prometheus-token-file " + console.Quoted(p.TokenFile)
	}
	if p.Window != 30*time.Minute {
		out += " --idle-window " + p.Window.String()
	}
	if p.Threshold != 5 {
		out += fmt.Sprint(" --idle-threshold ", p.Threshold)
	}
	return out
}
