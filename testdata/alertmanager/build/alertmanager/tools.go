//go:build tools

// Package alertmanager pins the Alertmanager that tests speak to. Nothing is imported from
// it: it is built by the support package.
package alertmanager

import _ "github.com/prometheus/alertmanager/cmd/alertmanager"
