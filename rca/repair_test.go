package rca

import (
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Of the pods that have the device plugin's name on a node the one is evicted that is it:
// not the daemon for MPS beside it, whose end is that of its clients, nor a tenant's pod.
func TestPluginIsNotItsNamesake(t *testing.T) {
	const plugin = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: nvidia-device-plugin-daemonset-x7k2p\n"
	const namesakes = `apiVersion: v1
kind: Pod
metadata: {name: a-nvidia-device-plugin, namespace: demo, uid: "7c2e4d10-0001-4000-8000-000000000011", creationTimestamp: "2026-11-20T10:00:00Z"}
spec: {nodeName: gpu-1, containers: [{name: nvidia-device-plugin, image: registry.example/x}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata:
  name: a-nvidia-device-plugin-mps-control-daemon-8kd2x
  namespace: gpu-operator
  uid: "7c2e4d10-0001-4000-8000-000000000012"
  creationTimestamp: "2026-11-20T10:00:00Z"
  ownerReferences:
  - {apiVersion: apps/v1, kind: DaemonSet, name: a-nvidia-device-plugin-mps-control-daemon, uid: "7c2e4d10-0001-4000-8000-000000000013", controller: true}
spec: {nodeName: gpu-1, containers: [{name: mps-control-daemon-ctr, image: registry.example/x}]}
status: {phase: Running}
---
`
	for name, by := range map[string]string{
		"by its container": namesakes + plugin,
		"by its name":      namesakes + strings.Replace(plugin, "x7k2p\n", "x7k2p\n  labels: {by: name}\n", 1),
	} {
		t.Run(name, func(t *testing.T) {
			st := edited(t, "DevicePluginDown-mig", plugin, by)
			for _, p := range st.Pods {
				if p.Labels["by"] == "name" {
					p.Spec.Containers[0].Name = "main"
				}
			}
			found, err := Diagnose(t.Context(), st, Options{})
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			f := found[0].Fixes[0]
			if f.Kind != diagnosis.RestartDevicePlugin || !f.Automatic || len(f.Actions) != 1 || f.Actions[0].Target.Name != "nvidia-device-plugin-daemonset-x7k2p" {
				t.Errorf("%+v", f)
			}
		})
	}
}
