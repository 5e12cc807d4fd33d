package program

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/idle"
)

// gpuWork says where to look up what pods do with their GPUs. The commands that diagnose
// have it from their flags, the service from its configuration.
type gpuWork struct {
	address   string
	tokenFile string
	window    time.Duration
	threshold float64
}

func (p *gpuWork) flags(c *cobra.Command) {
	c.Flags().StringVar(&p.address, "prometheus", "", "URL of the Prometheus that scrapes the DCGM exporter: tells which holders of GPUs are idle")
	c.Flags().StringVar(&p.tokenFile, "prometheus-token-file", "", "file with a bearer token for it")
	c.Flags().DurationVar(&p.window, "idle-window", 30*time.Minute, "how long a pod has done no GPU work to be idle")
	c.Flags().Float64Var(&p.threshold, "idle-threshold", 5, "below how many percent of GPU work a pod is idle")
}

// gpuWork is what the configuration says of it.
func (c config) gpuWork() gpuWork {
	return gpuWork{c.RCA.Prometheus, c.RCA.PrometheusTokenFile, c.RCA.IdleWindow.Duration, c.RCA.IdleThreshold}
}

// measure is nil where no Prometheus is named.
func (p gpuWork) measure() (diagnosis.Measure, error) {
	if p.address == "" {
		if p.tokenFile != "" {
			return nil, fmt.Errorf("a token for Prometheus is given, but not its address")
		}
		return nil, nil
	}
	client, err := idle.New(idle.Options{Address: p.address, TokenFile: p.tokenFile, Window: p.window, Threshold: p.threshold})
	if err != nil {
		return nil, err
	}
	return client.Measure, nil
}

// again are the flags that make another command find the same fixes.
func (p gpuWork) again() string {
	if p.address == "" {
		return ""
	}
	out := "--prometheus " + quoted(p.address)
	if p.tokenFile != "" {
		out += " --prometheus-token-file " + quoted(p.tokenFile)
	}
	if p.window != 30*time.Minute {
		out += " --idle-window " + p.window.String()
	}
	if p.threshold != 5 {
		out += fmt.Sprint(" --idle-threshold ", p.threshold)
	}
	return out
}
