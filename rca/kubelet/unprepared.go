package kubelet

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
	"github.com/unpend/unpend/watcher/incident"
)

// Prepared tells of pods whose devices are not: the scheduler has chosen node and devices, and the kubelet cannot
// have the driver prepare them. The pod stays Pending and its conditions say nothing:
// what tells is the kubelet's event (kuberuntime_manager.go SyncPod, 1.30 to 1.37).
// Of a workload that has also pods without a node, this keeps those from none.
func Prepared(w *view.Cluster, unprepared []*corev1.Pod) *view.Finding {
	if len(unprepared) == 0 {
		return nil
	}
	first := unprepared[0]
	f := &view.Finding{Certainty: diagnosis.Proven, Says: "the kubelet of " + first.Spec.NodeName + " could not prepare its devices: " + view.Told(unpreparedBy(UnpreparedSays(first)), 160)}
	if version := Unserved(w, unprepared); version != "" {
		f.Says = fmt.Sprintf("the kubelet of %s (%s) asks the API server for a version of resource.k8s.io that it does not serve, so it cannot read the claim, which is there; it said: %s", first.Spec.NodeName, version, view.Told(unpreparedBy(UnpreparedSays(first)), 160))
		f.Evidence = append(f.Evidence, diagnosis.Fact("Node/"+first.Spec.NodeName, "its kubelet is "+version, diagnosis.That("status.nodeInfo.kubeletVersion", "", diagnosis.Is, version)))
	}
	if h := Hindered(w, unprepared); h != nil && h.Says != "" && len(f.Evidence) == 0 {
		f.Says = fmt.Sprintf("the kubelet of %s could not prepare its devices: %s; it said: %s", first.Spec.NodeName, h.Says, view.Told(unpreparedBy(UnpreparedSays(first)), 160))
		f.Evidence = append(f.Evidence, h.Evidence...)
	}
	if e := bootedSince(w, first); e != nil {
		f.Evidence = append(f.Evidence, diagnosis.Fact("Node/"+first.Spec.NodeName, e.Reason+", after its kubelet took up "+first.Name+": "+e.Message, diagnosis.Says(e.Message)))
	}
	for _, p := range unprepared {
		at := view.ObjectRef("Pod", p.Namespace, p.Name)
		f.Evidence = append(f.Evidence, diagnosis.Fact(at, "is bound to "+p.Spec.NodeName+" and "+phase(p)+": its sandbox was not made",
			diagnosis.That("spec.nodeName", "", diagnosis.Is, p.Spec.NodeName), diagnosis.That("status.phase", "", diagnosis.Is, string(p.Status.Phase))),
			diagnosis.Fact(at, fmt.Sprintf("%s: %s", incident.FailedPrepare, UnpreparedSays(p)), diagnosis.Says(UnpreparedSays(p))))
		for _, claim := range ClaimsOf(p) {
			f.Evidence = append(f.Evidence, diagnosis.Fact("ResourceClaim/"+claim, "is what the pod uses", using(w, p, claim)))
		}
	}
	return f
}

// phase is a pod's, where it is Running with that said: it has run, or has been tried.
func phase(p *corev1.Pod) string {
	if p.Status.Phase == corev1.PodRunning {
		return "Running by its phase alone"
	}
	return string(p.Status.Phase)
}

// Unprepared are those of the pods with a node whose devices are not prepared.
func Unprepared(unstarted []*corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range unstarted {
		if reason, _ := incident.Hindrance(p); reason == incident.FailedPrepare {
			out = append(out, p)
		}
	}
	return out
}

// Unserved is the version of a kubelet that asks for claims in a version of their API that the
// API server does not have: that is how a server says that it knows no such path, where a
// claim that is missing is "not found". A kubelet older than the server asks for a beta
// that is off there. Empty for another failure, or where a claim is not there, or the node.
func Unserved(w *view.Cluster, unprepared []*corev1.Pod) string {
	if len(unprepared) == 0 || !strings.Contains(UnpreparedSays(unprepared[0]), "the server could not find the requested resource") {
		return ""
	}
	p := unprepared[0]
	n := w.Nodes[p.Spec.NodeName]
	if n == nil {
		return ""
	}
	for _, claim := range ClaimsOf(p) {
		if !slices.ContainsFunc(w.State.ResourceClaims, func(r *resourcev1.ResourceClaim) bool { return r.Namespace+"/"+r.Name == claim }) {
			return ""
		}
	}
	return n.Status.NodeInfo.KubeletVersion
}

// preparing are the kubelet's words, with the claim that the cause names, before those of the driver.
var preparing = regexp.MustCompile(`(?i)^(failed to )?(prepare dynamic resources: )+((NodePrepareResources|NodePrepareResource) failed for claim \S+: )?`)

// unpreparedBy is what the driver or the kubelet says, without the kubelet's wrapping
// (pkg/kubelet/cm/dra/manager.go, PrepareResources).
func unpreparedBy(says string) string {
	return preparing.ReplaceAllString(says, "")
}

// UnpreparedSays is what the kubelet's event says of the pod.
func UnpreparedSays(p *corev1.Pod) string {
	_, says := incident.Hindrance(p)
	return strings.Join(strings.Fields(says), " ")
}

// using claims that a pod uses a claim: by the claim where that is reserved for it, else by the pod.
func using(w *view.Cluster, p *corev1.Pod, claim string) diagnosis.Claim {
	namespace, name, _ := strings.Cut(claim, "/")
	c := claimNamed(w, namespace, name)
	switch {
	case c == nil || slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.Name == p.Name }):
		return diagnosis.That("status.reservedFor[name="+p.Name+"]", "", diagnosis.Exists, "")
	case slices.ContainsFunc(p.Spec.ResourceClaims, func(r corev1.PodResourceClaim) bool {
		return r.ResourceClaimName != nil && *r.ResourceClaimName == name
	}):
		return diagnosis.That("spec.resourceClaims", "", diagnosis.Contains, name).Of(view.PodRef(p))
	}
	return diagnosis.That("status", "", diagnosis.Contains, name).Of(view.PodRef(p))
}

// ClaimsOf names the claims that a pod uses, as namespace/name.
func ClaimsOf(p *corev1.Pod) []string {
	var out []string
	for i := range p.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(p, &p.Spec.ResourceClaims[i]); err == nil && name != nil {
			out = append(out, p.Namespace+"/"+*name)
		}
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		out = append(out, p.Namespace+"/"+s.ResourceClaimName)
	}
	return out
}

// BootedSince says whether the machine of a pod has been started again since its kubelet took the pod up: what was prepared for
// it before is of the boot before.
func BootedSince(w *view.Cluster, p *corev1.Pod) bool { return bootedSince(w, p) != nil }

// bootedSince is the kubelet's word of that (pkg/kubelet/kubelet_node_status.go); nil for none.
func bootedSince(w *view.Cluster, p *corev1.Pod) *corev1.Event {
	i := slices.IndexFunc(w.State.Events, func(e *corev1.Event) bool {
		return e.Reason == "Rebooted" && e.InvolvedObject.Kind == "Node" && e.InvolvedObject.Name == p.Spec.NodeName && p.Status.StartTime != nil && parts.Said(e).After(p.Status.StartTime.Time)
	})
	if i < 0 {
		return nil
	}
	return w.State.Events[i]
}
