package view

import (
	"github.com/unpend/unpend/rca/diagnosis"
)

// PluginName is in the names of NVIDIA's device plugin's DaemonSet and container
// (GPU Operator and the plugin's own chart).
const PluginName = "nvidia-device-plugin"

// MPSName is in the name of the plugin's daemon for sharing by MPS, whose pods have the
// plugin's name, too, and not its container (GPU Operator and the plugin's own chart).
const MPSName = "mps-control-daemon"

// Operation is unpend's own mark on the node; the zero value where there is none.
func (n *Node) Operation() diagnosis.Operation {
	if mark, err := diagnosis.OperationOn(n.Node); err == nil && mark != nil {
		return *mark
	}
	return diagnosis.Operation{}
}
