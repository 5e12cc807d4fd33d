package rca

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/unpend/unpend/watcher/incident"
)

// Of a headline that is too long the name gives way, then what is needed, and the reason last: it is what people look for.
func TestTheReasonOfAHeadlineIsCutLast(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct{ namespace, name, needs, why, want string }{
		{"ml", "train", "1×gpu", ", GPUs in use", "ml/train waits 1 h: needs 1×gpu, GPUs in use"},
		{"inference", "bert-of-the-second-team", "1 aws.amazon.com/neuron", ", device plugin down", "inference/bert-of-… waits 1 h: needs 1 aws.amazon.com/neuron, device plugin down"},
		{"vms", "sim-3", "1 devices.kubevirt.io/kvm+1 devices.kubevirt.io/tun+1 devices.kubevirt.io/vhost-net", ", device plugin down", "vms/sim-3 waits 1 h: needs 1 devices.kubevirt.io/kvm+1 devi…, device plugin down"},
		{"vms", "sim-3", "1 devices.kubevirt.io/kvm", ", no node offers devices.kubevirt.io/kvm, and of this nobody has ever told", "vms/sim-3 waits 1 h: needs 1 devices.k…, no node offers devices.kubevirt.io/kvm…"},
		{"ml", "train", "a node", "", "ml/train waits 1 h: needs a node"},
	} {
		i := incident.Incident{Workload: incident.Ref{Kind: "Job", Namespace: c.namespace, Name: c.name}, Since: now.Add(-time.Hour)}
		if got := titled(i, now, c.needs, c.why); got != c.want || utf8.RuneCountInString(got) > maxHeadline {
			t.Errorf("%d characters: %s\nwant %s", utf8.RuneCountInString(got), got, c.want)
		}
	}
}
