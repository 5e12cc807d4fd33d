package kubelet

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// What the kubelet itself says where it does not come to ask the driver, or takes its answer for none
// (pkg/kubelet/cm/dra/manager.go, prepareResources; 1.34 to 1.37).
var (
	unfetched     = regexp.MustCompile(`fetch ResourceClaim (\S+): .*(not found|forbidden)`)
	beingGiven    = regexp.MustCompile(`ResourceClaim (\S+) is being unprepared`)
	oldClaim      = regexp.MustCompile(`old ResourceClaim with same name (\S+) and different UID`)
	skippedClaims = regexp.MustCompile(`NodePrepareResources skipped \d+ ResourceClaims`)
)

// gone: the claim was deleted after the pod had its node, or the kubelet may not read it.
func gone(w *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	m := unfetched.FindStringSubmatch(says)
	if m == nil {
		return nil
	}
	if m[2] == "forbidden" {
		return &Hindrance{Title: fmt.Sprintf("let the kubelet of %s read ResourceClaims of namespace %s", p.Spec.NodeName, p.Namespace), Unproven: "what a kubelet may do is in no object that was read", Risk: diagnosis.NoRisk,
			Commands: []string{describe(p), fmt.Sprintf("kubectl auth can-i get resourceclaims.resource.k8s.io -n %s --as=system:node:%s --as-group=system:nodes  # the Node authorizer grants it for claims of its own pods", p.Namespace, p.Spec.NodeName)}}
	}
	if claimNamed(w, p.Namespace, m[1]) != nil {
		return nil // it is there by now
	}
	return &Hindrance{Says: "ResourceClaim " + m[1] + " is not there",
		Evidence: []diagnosis.Evidence{diagnosis.Fact("ResourceClaim/"+p.Namespace+"/"+m[1], "does not exist", diagnosis.That("", "", diagnosis.Absent, ""))},
		Title:    fmt.Sprintf("make ResourceClaim %s/%s again where somebody made it by hand, and then the pod that uses it", p.Namespace, m[1]), Unproven: "who deleted the claim is in no object", Risk: diagnosis.LowRisk, Minutes: 2,
		Commands: []string{describe(p), fmt.Sprintf("kubectl -n %s get resourceclaims,resourceclaimtemplates", p.Namespace), madeAgain(p)}}
}

// unprepares: the driver is giving devices of the claim back. The kubelet tries again by itself.
func unprepares(_ *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	m := beingGiven.FindStringSubmatch(says)
	if m == nil {
		return nil
	}
	return &Hindrance{Title: fmt.Sprintf("wait until the kubelet of %s has given ResourceClaim %s back, which a pod before had: it then prepares it by itself", p.Spec.NodeName, m[1]), Unproven: "how far the kubelet is with that is in no object", Risk: diagnosis.NoRisk, Minutes: 2,
		Commands: []string{fmt.Sprintf("kubectl -n %s get pod %s -w", p.Namespace, p.Name), describe(p) + "  # where it says so for many minutes: the log of the driver's plugin on " + p.Spec.NodeName + " tells what it cannot give back"}}
}

// lingers: the kubelet has still noted the claim of that name that a pod before had, which was deleted by force.
func lingers(_ *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	m := oldClaim.FindStringSubmatch(says)
	if m == nil {
		return nil
	}
	node := p.Spec.NodeName
	debug := fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host ", node)
	return &Hindrance{Title: fmt.Sprintf("wait until the kubelet of %s has given back the earlier ResourceClaim %s, or restart that kubelet", node, m[1]), Unproven: "what a kubelet has noted of claims is in no object", Risk: diagnosis.LowRisk, Minutes: 5,
		Commands: []string{describe(p), debug + "crictl pods --namespace " + p.Namespace + "  # a pod deleted by force may run on: its containers must have ended first",
			debug + "systemctl restart kubelet  # running pods keep running", fmt.Sprintf("kubectl -n %s get pod %s -w", p.Namespace, p.Name)}}
}

// withoutPlugin: the kubelet knows no plugin of the driver: its pod does not run there, or it looks for the kubelet where that is not.
func withoutPlugin(w *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	m := noPlugin.FindStringSubmatch(says)
	if m == nil {
		return nil
	}
	node := p.Spec.NodeName
	h := &Hindrance{Title: fmt.Sprintf("have the plugin of the driver on %s register %s with the kubelet", node, m[1]+m[2]), Unproven: "where a kubelet has its directory, and what has registered there, is in no object", Risk: diagnosis.NoRisk,
		Commands: []string{describe(p), "kubectl get pods -A -o wide --field-selector spec.nodeName=" + node + "  # the driver's plugin has to run here, and be ready"}}
	if n := w.Nodes[node]; n != nil && strings.HasSuffix(m[1]+m[2], ".nvidia.com") {
		if pod := parts.Of(w).Pod(n, parts.DRADriver); pod != nil {
			h.Commands = append(h.Commands, fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50", pod.Namespace, pod.Name))
		}
	}
	h.Commands = append(h.Commands, fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host ls -l /var/lib/kubelet/plugins_registry  # empty or not there: the kubelet has another --root-dir", node),
		"# then kubeletPluginsDirectoryPath and kubeletRegistrarDirectoryPath of the driver's chart have to be below that directory: its DaemonSet mounts them")
	return h
}

// leftOut: the driver has answered for fewer claims than it was asked for.
func leftOut(_ *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	if !skippedClaims.MatchString(says) {
		return nil
	}
	h := &Hindrance{Title: "see in the log of the driver's plugin on " + p.Spec.NodeName + " which claim it leaves out: it has answered for fewer than it was asked", Unproven: "what the driver says is in its log", Risk: diagnosis.NoRisk,
		Commands: []string{describe(p), "kubectl get pods -A -o wide --field-selector spec.nodeName=" + p.Spec.NodeName + "  # the driver's plugin: see its log"}}
	for _, claim := range ClaimsOf(p) {
		namespace, name, _ := strings.Cut(claim, "/")
		h.Commands = append(h.Commands, fmt.Sprintf("kubectl -n %s get resourceclaim %s -o yaml", namespace, name))
	}
	return h
}

func describe(p *corev1.Pod) string {
	return fmt.Sprintf("kubectl -n %s describe pod %s", p.Namespace, p.Name)
}
