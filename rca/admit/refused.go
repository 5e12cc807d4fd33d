package admit

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/watcher/incident"
)

// LookAtRefusal is what a person does about a refusal that no cause of the catalogue is
// about. Names are those of objects: what the API server's text names is only quoted.
func LookAtRefusal(c *edit.Workload) []edit.Change {
	if len(c.Refused.All) == 0 {
		return nil
	}
	o, ns := c.Refused.All[0].Owner, c.Refused.Next().Namespace
	describe := fmt.Sprintf("kubectl -n %s describe %s/%s", o.Namespace, strings.ToLower(o.Kind), o.Name)
	ch := edit.Change{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Minutes: 5, Until: "the API server takes its pods", Title: "look at why its pods are refused", Commands: []string{describe}}
	again := fmt.Sprintf("kubectl -n %s annotate --overwrite %s/%s %s=now  # its controller tries again at once", o.Namespace, strings.ToLower(o.Kind), o.Name, annotationRetry)
	r := c.Refused.Refuses()
	if r.Gone {
		ch.Kind, ch.Title, ch.Until = diagnosis.Wait, "wait until its controller tries again, or touch it", "its controller tries again"
		ch.Commands = []string{again}
		return []edit.Change{ch}
	}
	if r.Kind == "" && c.Refused.Says() == "" {
		unmade(c, &ch, o)
		return []edit.Change{ch}
	}
	const webhooks = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
	switch r.Kind {
	case admission.NoPriorityClass:
		ch.Title, ch.Until = "make PriorityClass "+r.Name+", or name one that exists", "PriorityClass "+r.Name+" exists"
		if r.Near != "" {
			ch.Title, ch.Until = fmt.Sprintf("name PriorityClass %s in %s: there is no %s", r.Near, c.WorkloadName(), r.Name), "its template names "+r.Near
			ch.Commands = []string{"kubectl get priorityclasses", c.EditByHand("priorityClassName: " + r.Near)}
			break
		}
		ch.Commands = []string{"kubectl get priorityclasses", fmt.Sprintf("kubectl create priorityclass %s --value=1000  # a higher value preempts a lower one", r.Name), again}
	case admission.PriorityStated:
		ch.Title, ch.Until = fmt.Sprintf("take %s out of the template of %s: a PriorityClass gives it", r.Name, c.WorkloadName()), "its template states no "+r.Name
		change := "no " + r.Name
		if r.Near != "" {
			ch.Title, ch.Until = fmt.Sprintf("name PriorityClass %s in %s, and take %s out of its template: the class gives it", r.Near, c.WorkloadName(), r.Name), "its template names "+r.Near
			change = "priorityClassName: " + r.Near + ", and no " + r.Name
		}
		ch.Commands = []string{"kubectl get priorityclasses -o custom-columns=NAME:.metadata.name,VALUE:.value,PREEMPTS:.preemptionPolicy", c.EditByHand(change)}
	case admission.NoRuntimeClass:
		ch.Title, ch.Until = "make RuntimeClass "+r.Name+", or name one that exists", "RuntimeClass "+r.Name+" exists"
		if r.Near != "" {
			ch.Title, ch.Until = fmt.Sprintf("name RuntimeClass %s in %s: there is no %s", r.Near, c.WorkloadName(), r.Name), "its template names "+r.Near
			ch.Commands = []string{"kubectl get runtimeclasses", c.EditByHand("runtimeClassName: " + r.Near)}
			break
		}
		ch.Commands = []string{"kubectl get runtimeclasses", runtimeClass(r.Name), again}
	case admission.NoServiceAccount:
		ch.Title, ch.Until = fmt.Sprintf("make ServiceAccount %s in %s", r.Name, ns), "ServiceAccount "+r.Name+" exists"
		ch.Commands = []string{fmt.Sprintf("kubectl -n %s create serviceaccount %s  # and its rights", ns, r.Name), again}
	case admission.PodSecurity:
		ch.Title, ch.Until = "raise the Pod Security level of "+ns+", or have its pods keep to it", ns+" admits such pods"
		level, remark := "privileged", "for drivers and plugins, not for everybody's pods"
		if r.Baseline {
			ch.Title = "let " + ns + " enforce the Pod Security level baseline, or have its pods keep to restricted"
			level, remark = "baseline", "all that the refusal names is asked by restricted alone; or set that in the pods' securityContext"
		}
		ch.Commands = []string{fmt.Sprintf("kubectl label namespace %s pod-security.kubernetes.io/enforce=%s --overwrite  # %s", ns, level, remark), again}
	case admission.NoSCC:
		ch.Title = "give its ServiceAccount a SecurityContextConstraints that admits it"
		ch.Risk = diagnosis.MediumRisk // every pod of that account may be privileged then
		ch.Commands = []string{fmt.Sprintf("oc adm policy add-scc-to-user privileged -n %s -z %s", ns, accountOf(c)), again}
	case admission.WebhookDenies:
		keepToPolicy(c, &ch, describe, webhooks)
	case admission.UnnamedClaim:
		ch.Title, ch.Until = fmt.Sprintf("name a ResourceClaimTemplate, or a ResourceClaim, in entry %s of resourceClaims of %s", r.Name, c.WorkloadName()), "its template names a claim"
		ch.Commands = []string{fmt.Sprintf("kubectl -n %s get resourceclaimtemplates,resourceclaims", ns), c.EditByHand("spec.resourceClaims: [{name: " + r.Name + ", resourceClaimTemplateName: NAME}]; before Kubernetes 1.31 the name stood in source")}
		if r.Near != "" {
			ch.Title = fmt.Sprintf("name ResourceClaimTemplate %s in entry %s of resourceClaims of %s", r.Near, r.Name, c.WorkloadName())
			ch.Commands[1] = c.EditByHand("spec.resourceClaims: [{name: " + r.Name + ", resourceClaimTemplateName: " + r.Near + "}]")
		}
	case admission.InvalidSpec:
		ch.Title = "correct what the refusal names in " + c.WorkloadName()
		if r.Name != "" {
			ch.Title = "correct " + r.Name + " of the pods of " + c.WorkloadName() + ": the refusal says what is wrong"
		}
		ch.Commands = []string{describe, c.EditByHand("what the refusal names")}
	case admission.NoPodGroup:
		if r.Name == "" {
			ch.Title, ch.Until = "have who makes the pods of "+c.WorkloadName()+" make their PodGroup first, in the group scheduling.volcano.sh, or make them without a gang", "their PodGroup exists"
			ch.Commands = []string{describe, fmt.Sprintf("kubectl -n %s get podgroups.scheduling.volcano.sh", ns), "kubectl api-resources | grep -i podgroups  # an operator of another age makes them in another group, which Volcano does not read",
				"kubectl get deployments -A -o wide | grep -i operator  # its version, its gang scheduling, and whether its ServiceAccount may create podgroups.scheduling.volcano.sh"}
			break
		}
		ch.Title, ch.Until = fmt.Sprintf("make PodGroup %s in %s, or have the pods name none", r.Name, ns), "PodGroup "+r.Name+" exists"
		ch.Commands = []string{fmt.Sprintf("kubectl create -f - <<'EOF'\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s, namespace: %s}\nspec: {minMember: 1, queue: default}\nEOF", r.Name, ns),
			fmt.Sprintf("kubectl -n %s edit %s  # or this: the template without annotation scheduling.k8s.io/group-name", ns, c.WorkloadName()), again}
	case admission.WebhookDown:
		ch.Title = "bring back the server of the webhook that is named in the refusal, or have failures ignored"
		ch.Commands = []string{describe, webhooks + "  # its clientConfig.service: are that Service's pods ready?", "kubectl get endpointslices -A | grep -i webhook", again}
	case admission.WebhookLocksOut:
		ch.Title = "have the webhook that is named in the refusal leave " + r.Name + " out, where its own server is to run"
		ch.Risk = diagnosis.LowRisk // nobody asks it about the pods there any more
		ch.Commands = []string{describe, webhooks + " -o custom-columns='KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name'  # the one that has that webhook",
			"# then kubectl edit KIND NAME, in that webhook: namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [" + r.Name + "]}]}",
			"# or failurePolicy: Ignore there until its server runs, or kubectl delete KIND NAME: what installs it makes it again", again}
	case admission.QuotaUncounted:
		ch.Kind, ch.Title, ch.Until = diagnosis.Wait, "wait until the quota is counted", "the quota controller has counted its quota"
		ch.Commands = []string{fmt.Sprintf("kubectl -n %s get resourcequota -w", ns), again}
		if r.Stale != nil {
			haveCounted(&ch, r.Stale, again)
		}
	}
	return []edit.Change{ch}
}

// unmade is about pods of which nobody says why they are not made: who is to make them knows.
func unmade(c *edit.Workload, ch *edit.Change, o incident.Ref) {
	ch.Title, ch.Until = "see why the pods of "+c.WorkloadName()+" are not made: the log of its operator says it", "its pods are made"
	ch.Commands = append(ch.Commands, "kubectl get pods -A -o wide | grep -i -e operator -e controller  # that of "+o.Kind+": its log, about "+o.Name,
		"# where it says nothing of it: delete that operator's pod, whose Deployment makes it again; it looks at all afresh when it starts")
	if strings.HasPrefix(o.Kind, incident.SparkApplication.Kind) {
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl -n %s get sparkapplication %s -o yaml  # status.applicationState; spec.restartPolicy: onFailureRetries, onSubmissionFailureRetries", o.Namespace, o.Name))
	}
}

// haveCounted is about a quota that is old and was never counted: the controller does not run, or fails at one of its keys.
func haveCounted(ch *edit.Change, q *corev1.ResourceQuota, again string) {
	keys := admission.Uncounted(q)
	ch.Kind, ch.Risk = diagnosis.Manual, diagnosis.MediumRisk // what is taken out limits nobody any more
	ch.Title = fmt.Sprintf("have ResourceQuota %s counted, or take out of it what is not: kube-controller-manager's log says why", q.Name)
	ch.Commands = []string{fmt.Sprintf("kubectl -n %s get resourcequota %s -o yaml  # spec.hard beside status.used: not counted are %s", q.Namespace, q.Name, strings.Join(keys, ", ")),
		"kubectl -n kube-system logs -l component=kube-controller-manager --tail=-1 | grep -i quota  # a cloud's own shows no log",
		fmt.Sprintf("kubectl -n %s edit resourcequota %s  # or this: without those keys, the unusual ones first", q.Namespace, q.Name), again}
}

func accountOf(c *edit.Workload) string {
	if name := c.Refused.Next().Spec.ServiceAccountName; name != "" {
		return name
	}
	return "default"
}

// runtimeClass makes one whose handler has its name, as NVIDIA's toolkit configures it.
func runtimeClass(name string) string {
	return edit.Feed("kubectl create", fmt.Sprintf("{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: %s}, handler: %s}", name, name))
}

// MakeRuntimeClass is for pods that name NVIDIA's, which does not exist.
func MakeRuntimeClass(c *edit.Workload) []edit.Change {
	name := c.Refused.Refuses().Name
	if name == "" {
		return nil
	}
	return []edit.Change{{Kind: diagnosis.RepairDeviceStack, Manual: true, Minutes: 5, Risk: diagnosis.NoRisk, Title: fmt.Sprintf("make RuntimeClass %s, as the GPU Operator does", name), Until: "RuntimeClass " + name + " exists",
		Steps:    []string{fmt.Sprintf("see that the nodes' container runtime has a handler %q (NVIDIA's toolkit configures it)", name), "create RuntimeClass " + name},
		Commands: []string{"kubectl get runtimeclasses", runtimeClass(name)}}}
}
