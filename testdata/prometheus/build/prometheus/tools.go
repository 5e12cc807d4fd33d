//go:build tools

// Package prometheus pins the Prometheus that tests ask, and its promtool. Nothing is
// imported from it: both are built by the support package.
package prometheus

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
