package view

import (
	"encoding/json"

	"github.com/unpend/unpend/rca/diagnosis"
)

// PluginName is in the names of NVIDIA's device plugin's DaemonSet and container
// (GPU Operator and the plugin's own chart).
const PluginName = "nvidia-device-plugin"

// MPSName is in the name of the plugin's daemon for sharing by MPS, whose pods have the
// plugin's name, too, and not its container (GPU Operator and the plugin's own chart).
const MPSName = "mps-control-daemon"

// Operation is the zero value where there is none. A quarantine ends with the cordon.
func (n *Node) Operation() diagnosis.Operation {
	var own diagnosis.Operation
	text, marked := n.Annotations[diagnosis.OperationAnnotation]
	if !marked {
		return own
	}
	if json.Unmarshal([]byte(text), &own) != nil || own.Quarantined != "" && !n.Spec.Unschedulable {
		return diagnosis.Operation{}
	}
	return own
}
