package stack

import (
	"fmt"

	"github.com/unpend/unpend/rca/diagnosis"
)

// withoutVolume: the device plugin's pod is not started, for a volume of it is made of an
// object that is not in its namespace. To make the pod again is no help.
func (l *pluginLink) withoutVolume(kind, name string) *Finding {
	ns := l.pod.Namespace
	says := fmt.Sprintf("has GPUs and offers none: its device plugin's pod is not started, for %s %s is not in namespace %s", kind, name, ns)
	f := l.s.finding(Plugin, Failed, diagnosis.DevicePluginDown, says, podRef(l.pod), l.Words, l.Claims...)
	f.Certainty = diagnosis.Likely // the kubelet's words, up to minutes old
	m := Mend{Kind: diagnosis.RepairDeviceStack, Title: fmt.Sprintf("make %s %s in namespace %s, or take it out of the device plugin's configuration", kind, name, ns), Risk: diagnosis.LowRisk, Minutes: 5,
		Commands: []string{fmt.Sprintf("kubectl get %ss -A --field-selector metadata.name=%s", kind, name)},
		Unproven: "what that " + kind + " is to say, and so what the device plugin then announces, is not known"}
	if kind == "configmap" {
		for _, cm := range l.s.w.State.ConfigMaps {
			if cm.Name == name && cm.Namespace != ns {
				f.Evidence = append(f.Evidence, diagnosis.Fact("ConfigMap/"+cm.Namespace+"/"+name, "is in namespace "+cm.Namespace+": pods mount those of their own", diagnosis.That("", "", diagnosis.Exists, ""), diagnosis.That("", "", diagnosis.Absent, "").Of("ConfigMap/"+ns+"/"+name)))
				m.Title = fmt.Sprintf("copy configmap %s from namespace %s to %s, whose pods can mount it", name, cm.Namespace, ns)
				m.Commands = append(m.Commands, fmt.Sprintf("kubectl -n %s get configmap %s -o json | jq '{apiVersion, kind, data, metadata: {name: .metadata.name}}' | kubectl -n %s apply -f -", cm.Namespace, name, ns))
				break
			}
		}
	}
	m.Commands = append(m.Commands, fmt.Sprintf("kubectl -n %s get pod %s -w  # the kubelet tries again every two minutes", ns, l.pod.Name))
	f.Mends = []Mend{m}
	return f
}
