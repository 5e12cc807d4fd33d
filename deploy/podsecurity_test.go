package deploy_test

import (
	"strings"
	"testing"

	"github.com/unpend/unpend/testdata/controlplane"
)

// What each tier costs, in the words of the API server. It holds the chart to it:
// a mount or a capability more is a word more.
func TestPodSecurityVerdicts(t *testing.T) {
	t.Parallel() // it waits for a control plane of its own
	if testing.Short() {
		t.Skip("needs the real control plane")
	}
	client := controlplane.Start(t).Client()
	makeRuntimeClass(t, client)
	const folder = `hostPath volumes (volume "pod-resources")`
	const added = `non-default capabilities (container "probe" must not include "SYS_ADMIN" in securityContext.capabilities.add)`
	const capability = `unrestricted capabilities (container "probe" must not include "SYS_ADMIN" in securityContext.capabilities.add)`
	const asRoot = `restricted volume types (volume "pod-resources" uses restricted volume type "hostPath"), ` +
		`runAsNonRoot != true (pod or container "probe" must set securityContext.runAsNonRoot=true), runAsUser=0 (pod must not set runAsUser=0)`
	want := map[int]map[string]string{
		1: {"restricted": "", "baseline": "", "privileged": ""},
		2: {"restricted": asRoot, "baseline": folder, "privileged": ""},
		3: {"restricted": capability + ", " + asRoot, "baseline": added + ", " + folder, "privileged": ""},
	}
	for n, verdicts := range want {
		for level, verdict := range verdicts {
			pod := probePodOf(daemonSet(t, tier(n)))
			pod.Namespace = level
			makeNamespace(t, client, level, map[string]string{"pod-security.kubernetes.io/enforce": level})
			got := ""
			if err := createPod(t, client, pod); err != nil {
				got = err.Error()
				if _, violations, ok := strings.Cut(got, `violates PodSecurity "`+level+`:latest": `); ok {
					got = violations
				}
			}
			if got != verdict {
				t.Errorf("tier %d, %s: %q", n, level, got)
			}
		}
	}
}
