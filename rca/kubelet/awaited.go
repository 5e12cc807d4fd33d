package kubelet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// domainLabel is on the pods of a compute domain's daemon, and on the nodes that they are for.
const domainLabel = "resource.nvidia.com/computeDomain"

// helperAway: drivers have helpers of their own made for a claim, and wait for them. NVIDIA's
// MPS daemon has the claim's uid in its name, the daemon of a compute domain its label.
func helperAway(w *view.Cluster, p *corev1.Pod, says string) *Hindrance {
	for _, name := range ClaimsOf(p) {
		ns, n, _ := strings.Cut(name, "/")
		claim := claimNamed(w, ns, n)
		if claim == nil {
			continue
		}
		for _, other := range w.State.PodsOn(p.Spec.NodeName) {
			if claim.UID != "" && strings.Contains(other.Name, string(claim.UID)) || other.Labels[domainLabel] != "" && strings.Contains(says, "ComputeDomain") {
				if h := notReady(p, other); h != nil {
					return h
				}
			}
		}
		if h := refusedHelper(w, p, claim); h != nil {
			return h
		}
	}
	return nil
}

// notReady is for a helper that is there and does not run.
func notReady(p, helper *corev1.Pod) *Hindrance {
	if view.Ended(helper) || view.PodRef(helper) == view.PodRef(p) {
		return nil
	}
	for i, c := range slices.Concat(helper.Status.InitContainerStatuses, helper.Status.ContainerStatuses) {
		if c.Ready || c.State.Terminated != nil && c.State.Terminated.ExitCode == 0 {
			continue
		}
		list := "status.containerStatuses"
		if i < len(helper.Status.InitContainerStatuses) {
			list = "status.initContainerStatuses"
		}
		state, claims := "is not ready", []diagnosis.Claim{diagnosis.That(list+"[name="+c.Name+"].ready", "", diagnosis.Is, "false")}
		if c.State.Waiting != nil && c.State.Waiting.Reason != "" {
			state = "is in " + c.State.Waiting.Reason
			claims = []diagnosis.Claim{diagnosis.That("status", "", diagnosis.Contains, c.State.Waiting.Reason)}
		}
		if c.RestartCount > 0 {
			state += fmt.Sprintf(" after %d restarts", c.RestartCount)
			claims = append(claims, diagnosis.That(list+"[name="+c.Name+"].restartCount", "", diagnosis.Is, strconv.Itoa(int(c.RestartCount))))
		}
		name := helper.Namespace + "/" + helper.Name
		h := &Hindrance{Says: fmt.Sprintf("it waits for pod %s, whose container %s %s", name, c.Name, state),
			Evidence: []diagnosis.Evidence{diagnosis.Fact("Pod/"+name, "container "+c.Name+" "+state, claims...)},
			Title:    "see why pod " + name + " on " + p.Spec.NodeName + " does not run: the driver waits for it", Unproven: "why it fails its log tells", Risk: diagnosis.NoRisk, Minutes: 5,
			Commands: []string{fmt.Sprintf("kubectl -n %s logs %s --all-containers --tail=50 --previous", helper.Namespace, helper.Name), fmt.Sprintf("kubectl -n %s describe pod %s", helper.Namespace, helper.Name)}}
		if helper.Labels[domainLabel] != "" {
			h.Commands = append(h.Commands, fmt.Sprintf("kubectl debug node/%s -it --image=busybox --profile=sysadmin -- chroot /host systemctl is-active nvidia-imex.service  # it must not run on the machine itself: systemctl disable --now nvidia-imex.service", p.Spec.NodeName))
		}
		return h
	}
	return nil
}

// refusedHelper is for one whose pods the API server does not let in.
func refusedHelper(w *view.Cluster, p *corev1.Pod, claim *resourcev1.ResourceClaim) *Hindrance {
	for _, rs := range w.State.ReplicaSets {
		if claim.UID == "" || !strings.Contains(rs.Name, string(claim.UID)) {
			continue
		}
		for _, e := range w.State.Events {
			if e.Reason != "FailedCreate" || e.InvolvedObject.Kind != "ReplicaSet" || e.InvolvedObject.Name != rs.Name || e.InvolvedObject.Namespace != rs.Namespace {
				continue
			}
			name, words := rs.Namespace+"/"+rs.Name, e.Message
			if by := metav1.GetControllerOfNoCopy(rs); by != nil {
				name = rs.Namespace + "/" + by.Name
			}
			if _, rest, found := strings.Cut(words, "is forbidden: "); found {
				words = rest
			}
			h := &Hindrance{Says: fmt.Sprintf("it waits for %s, whose pods the API server refuses: %s", name, view.Quotable(words, 160)),
				Evidence: []diagnosis.Evidence{diagnosis.Fact("ReplicaSet/"+rs.Namespace+"/"+rs.Name, "FailedCreate: "+view.Quotable(e.Message, 240), diagnosis.Says(e.Message))},
				Title:    "have the API server accept the pods of " + name + ", for which the driver on " + p.Spec.NodeName + " waits", Unproven: "whether the driver is done then is not known", Risk: diagnosis.LowRisk, Minutes: 5,
				Commands: []string{fmt.Sprintf("kubectl -n %s describe replicaset %s", rs.Namespace, rs.Name)}}
			if strings.Contains(words, "security context constraint") {
				account := rs.Spec.Template.Spec.ServiceAccountName
				if account == "" {
					account = "default"
				}
				h.Risk = diagnosis.MediumRisk // every pod of that account may be privileged then
				h.Commands = append(h.Commands, fmt.Sprintf("oc adm policy add-scc-to-user privileged -z %s -n %s", account, rs.Namespace))
			}
			return h
		}
	}
	return nil
}
