package admit

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// What GKE Autopilot demands of a pod with GPUs is said by the key of the node selector that it wants or forbids.
func TestWhatAutopilotDemands(t *testing.T) {
	const (
		limits  = "GKE Warden rejected the request because it violates one or more constraints. Violations details: {\"[denied by autogke-gpu-limitation]\":[\"x\"]}"
		selects = "{\"[denied by autogke-node-affinity-selector-limitation]\":[\"Key 'cloud.google.com/gke-nodepool' is not allowed with node selector\"]}"
	)
	const pool = "cloud.google.com/gke-nodepool"
	for name, tc := range map[string]struct {
		selector               map[string]string
		words, demands, change string
	}{
		"no model":        {nil, limits, "select the GPU's model by cloud.google.com/gke-accelerator", "nodeSelector: cloud.google.com/gke-accelerator: MODEL, as nvidia-l4"},
		"a pool":          {map[string]string{pool: "p", "team": "x"}, selects, "do not select by " + pool, "nodeSelector: without " + pool},
		"both":            {map[string]string{pool: "p"}, limits + selects, "select the GPU's model by cloud.google.com/gke-accelerator, and do not select by " + pool, "nodeSelector: cloud.google.com/gke-accelerator: MODEL, as nvidia-l4; without " + pool},
		"a model is said": {map[string]string{view.LabelGKE: "nvidia-l4"}, limits, "", "nodeSelector: "},
		"another policy":  {nil, "container <c> has no cpu limit", "", "nodeSelector: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.Wait.Spec.NodeSelector = tc.selector
			c := w.bench(t, "Deployment")
			c.Refused.All = []incident.Refusal{{Pod: &corev1.Pod{Spec: w.Wait.Spec}}}
			demands, change := onAutopilot(c, tc.words)
			if demands != tc.demands || change != tc.change {
				t.Errorf("%q, %q; want %q, %q", demands, change, tc.demands, tc.change)
			}
		})
	}
}

// A webhook that fails at the pods has nothing that they could keep to.
func TestAWebhookThatFails(t *testing.T) {
	w := newWorld()
	c := w.bench(t, "Deployment")
	c.Refused.All = []incident.Refusal{{Pod: &corev1.Pod{Spec: w.Wait.Spec}, Says: `admission webhook "mpod.kb.io" denied the request: Internal error occurred: no such field`}}
	ch := &answer{c: c, describe: "describe"}
	ch.keepToPolicy()
	if want := "have the owner of admission webhook mpod.kb.io mend it, or leave out of it the pods of " + c.WorkloadName() + ": Internal error occurred: no such field"; ch.Title != want {
		t.Errorf("got  %s\nwant %s", ch.Title, want)
	}
	if len(ch.Commands) != 2 || ch.Commands[0] != "describe" || !strings.Contains(ch.Commands[1], "grep -w mpod.kb.io") {
		t.Errorf("%q", ch.Commands)
	}
}

// What Knative's webhook denies by default has a flag of its own each, and anything else that it denies has none.
func TestWhatKnativeDenies(t *testing.T) {
	const webhook = `admission webhook "validation.webhook.serving.knative.dev" denied the request: validation failed: `
	for refusal, want := range map[string][2]string{
		webhook + "must not set the field(s): spec.template.spec.nodeSelector, spec.template.spec.tolerations": {"nodeSelector, tolerations", `{"data":{"kubernetes.podspec-nodeselector":"enabled","kubernetes.podspec-tolerations":"enabled"}}`},
		webhook + "must not set the field(s): spec.template.spec.affinity":                                     {"affinity", `{"data":{"kubernetes.podspec-affinity":"enabled"}}`},
		webhook + "must not set the field(s): spec.template.spec.hostNetwork":                                  {},
		webhook + "missing field(s): spec.template.spec.containers":                                            {},
		`admission webhook "w" denied the request: must not set the field(s): spec.template.spec.nodeSelector`: {},
	} {
		fields, command := onKnative(refusal)
		if fields != want[0] || (want[0] == "") != (command == "") || !strings.Contains(command, want[1]) {
			t.Errorf("%s:\n%s, %s\nwant %s, %s", refusal, fields, command, want[0], want[1])
		}
	}
}
