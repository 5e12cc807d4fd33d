package outside

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/queues"
	"github.com/unpend/unpend/rca/view"
)

// ofActive is how Kueue names what a ClusterQueue is not active for (pkg/cache/scheduler/clusterqueue.go, inactiveReason):
// reasons joined by commas, and their objects in the message, in brackets before 0.11.
var ofActive = []struct {
	reason string
	named  *regexp.Regexp
	kind   string
}{
	{"FlavorNotFound", regexp.MustCompile(`references missing ResourceFlavor\(s\): (\[[^\]]*\]|[a-z0-9.,-]+)`), "ResourceFlavor"},
	{"AdmissionCheckNotFound", regexp.MustCompile(`references missing AdmissionCheck\(s\): (\[[^\]]*\]|[a-z0-9.,-]+)`), "AdmissionCheck"},
	{"AdmissionCheckInactive", regexp.MustCompile(`references inactive AdmissionCheck\(s\): (\[[^\]]*\]|[a-z0-9.,-]+)`), "AdmissionCheck"},
	{"TopologyNotFound", regexp.MustCompile(`there is no Topology "([^"]+)"`), "Topology"},
}

// together is how it names two kinds of checks that exclude each other.
var together = regexp.MustCompile(`MultiKueue and ProvisioningRequest AdmissionChecks together, found: ([^;]+?)\.?$`)

// setUp is for the queue of Kueue that exists and is stopped or not active: it says itself for which of its parts.
func setUp(c *edit.Workload, q *queues.Broken, ch *edit.Change) {
	ch.Until = q.Kind + " " + q.Name + " admits workloads"
	look := "kubectl describe " + q.Ref()
	if q.Policy != "" {
		ch.Title = fmt.Sprintf("open %s %s again, if who stopped it agrees: its stopPolicy is %s", q.Kind, q.Name, q.Policy)
		ch.Commands = []string{look, "kubectl patch " + q.Ref() + ` --type merge -p '{"spec":{"stopPolicy":"None"}}'`}
		return
	}
	for _, of := range ofActive {
		m := of.named.FindStringSubmatch(q.Active.Message)
		if m == nil || !strings.Contains(q.Active.Reason, of.reason) {
			continue
		}
		all := strings.FieldsFunc(strings.TrimRight(m[1], ".,"), func(r rune) bool { return strings.ContainsRune("[], ", r) })
		names := strings.Join(all, ", ")
		resource := strings.ToLower(of.kind) + "s.kueue.x-k8s.io"
		if of.kind == "Topology" {
			resource = "topologies.kueue.x-k8s.io"
		}
		ch.Title = fmt.Sprintf("make %s %s, or have %s %s name one that exists", of.kind, names, q.Kind, q.Name)
		ch.Commands = []string{"kubectl get " + resource, "kubectl edit " + q.Ref() + "  # where it names " + names}
		if of.reason == "AdmissionCheckInactive" {
			ch.Title = fmt.Sprintf("mend %s %s, or take it out of %s %s: it is not active", of.kind, names, q.Kind, q.Name)
			ch.Commands[0] = "kubectl describe " + resource + " " + strings.Join(all, " ") + "  # its condition Active, and spec.parameters"
		}
		return
	}
	if m := together.FindStringSubmatch(q.Active.Message); m != nil {
		apart(c, q, ch, strings.Split(m[1], ", "))
		return
	}
	ch.Title = "mend " + q.Kind + " " + q.Name + ", which is not active: " + view.Cut(q.Active.Words(), 120)
	ch.Commands = []string{look, "kubectl edit " + q.Ref()}
}

// apart is for the checks of a ClusterQueue that exclude each other: machines are asked for in the clusters that Kueue gives
// workloads to, not in the one that gives them.
func apart(c *edit.Workload, q *queues.Broken, ch *edit.Change, found []string) {
	var provisioning, others []string
	for _, name := range found {
		if queues.CheckedBy(c.Queue, name) == queues.Provisioning {
			provisioning = append(provisioning, name)
		} else {
			others = append(others, name)
		}
	}
	if len(provisioning) == 0 {
		provisioning, others = found[len(found)-1:], found[:len(found)-1]
	}
	slices.Sort(provisioning)
	ch.Title = fmt.Sprintf("take admission check %s out of ClusterQueue %s: Kueue does not ask for machines (ProvisioningRequest) where %s gives workloads to other clusters (MultiKueue)", strings.Join(provisioning, ", "), q.Name, strings.Join(others, ", "))
	ch.Commands = []string{"kubectl edit " + q.Ref() + "  # spec.admissionChecksStrategy.admissionChecks without " + strings.Join(provisioning, ", "),
		"# machines are asked for by the ClusterQueues of the clusters that it gives them to: there that check belongs"}
	ch.Risk = diagnosis.LowRisk
}
