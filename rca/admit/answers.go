package admit

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/watcher/incident"
)

const webhooks = "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"

// noPriorityClass is about a class that is not there.
func (a *answer) noPriorityClass() {
	a.noClass("PriorityClass", "priorityclasses", "priorityClassName", fmt.Sprintf("kubectl create priorityclass %s --value=1000  # a higher value preempts a lower one", a.reason.Name))
}

// noClass is about a class that is to be made, or in whose place that is to be named which is a slip of the pen away.
func (a *answer) noClass(kind, resource, field, create string) {
	if a.reason.Near != "" {
		a.Title, a.Until = fmt.Sprintf("name %s %s in %s: there is no %s", kind, a.reason.Near, a.c.WorkloadName(), a.reason.Name), "its template names "+a.reason.Near
		a.Commands = []string{"kubectl get " + resource, a.c.EditByHand(field + ": " + a.reason.Near)}
		return
	}
	a.Title, a.Until = fmt.Sprintf("make %s %s, or name one that exists", kind, a.reason.Name), fmt.Sprintf("%s %s exists", kind, a.reason.Name)
	a.Commands = []string{"kubectl get " + resource, create, a.again}
}

// priorityStated is about a template that states what a class alone may give.
func (a *answer) priorityStated() {
	a.Title, a.Until = fmt.Sprintf("take %s out of the template of %s: a PriorityClass gives it", a.reason.Name, a.c.WorkloadName()), "its template states no "+a.reason.Name
	change := "no " + a.reason.Name
	if a.reason.Near != "" {
		a.Title, a.Until = fmt.Sprintf("name PriorityClass %s in %s, and take %s out of its template: the class gives it", a.reason.Near, a.c.WorkloadName(), a.reason.Name), "its template names "+a.reason.Near
		change = "priorityClassName: " + a.reason.Near + ", and no " + a.reason.Name
	}
	a.Commands = []string{"kubectl get priorityclasses -o custom-columns=NAME:.metadata.name,VALUE:.value,PREEMPTS:.preemptionPolicy", a.c.EditByHand(change)}
}

// noRuntimeClass is the same of a runtime.
func (a *answer) noRuntimeClass() {
	a.noClass("RuntimeClass", "runtimeclasses", "runtimeClassName", runtimeClass(a.reason.Name))
}

// noServiceAccount is about an account that is not there.
func (a *answer) noServiceAccount() {
	a.Title, a.Until = fmt.Sprintf("make ServiceAccount %s in %s", a.reason.Name, a.ns), "ServiceAccount "+a.reason.Name+" exists"
	a.Commands = []string{fmt.Sprintf("kubectl -n %s create serviceaccount %s  # and its rights", a.ns, a.reason.Name), a.again}
}

// podSecurity is about the level that the pods' namespace enforces.
func (a *answer) podSecurity() {
	a.Title, a.Until = "raise the Pod Security level of "+a.ns+" for all its pods, or have those of "+a.c.WorkloadName()+" keep to it", a.ns+" admits such pods"
	a.Risk = diagnosis.LowRisk // everybody's pods there may do as much then
	level, remark := "privileged", "for drivers and plugins, not for everybody's pods"
	var first []string
	if a.reason.Baseline {
		a.Title = "have the pods of " + a.c.WorkloadName() + " keep to the Pod Security level restricted, or let " + a.ns + " enforce baseline, for all its pods"
		level, remark = "baseline", "or this: all that the refusal names is asked by restricted alone"
		first = []string{a.c.EditByHand("securityContext: what the refusal names")}
	}
	a.Commands = append(first, fmt.Sprintf("kubectl label namespace %s pod-security.kubernetes.io/enforce=%s --overwrite  # %s", a.ns, level, remark), a.again)
}

// noSCC is OpenShift's: no SecurityContextConstraints that the account may use admits the pods.
func (a *answer) noSCC() {
	a.Title = "give its ServiceAccount a SecurityContextConstraints that admits it"
	a.Risk = diagnosis.MediumRisk // every pod of that account may be privileged then
	a.Commands = []string{fmt.Sprintf("oc adm policy add-scc-to-user privileged -n %s -z %s", a.ns, accountOf(a.c)), a.again}
}

// unnamedClaim is about an entry of resourceClaims that names no claim and no template.
func (a *answer) unnamedClaim() {
	a.Title, a.Until = fmt.Sprintf("name a ResourceClaimTemplate, or a ResourceClaim, in entry %s of resourceClaims of %s", a.reason.Name, a.c.WorkloadName()), "its template names a claim"
	a.Commands = []string{fmt.Sprintf("kubectl -n %s get resourceclaimtemplates,resourceclaims", a.ns), a.c.EditByHand("spec.resourceClaims: [{name: " + a.reason.Name + ", resourceClaimTemplateName: NAME}]; before Kubernetes 1.31 the name stood in source")}
	if a.reason.Near != "" {
		a.Title = fmt.Sprintf("name ResourceClaimTemplate %s in entry %s of resourceClaims of %s", a.reason.Near, a.reason.Name, a.c.WorkloadName())
		a.Commands[1] = a.c.EditByHand("spec.resourceClaims: [{name: " + a.reason.Name + ", resourceClaimTemplateName: " + a.reason.Near + "}]")
	}
}

// invalidSpec is about a pod that the API server calls invalid.
func (a *answer) invalidSpec() {
	a.Title = "correct what the refusal names in " + a.c.WorkloadName()
	if a.reason.Name != "" {
		a.Title = "correct " + a.reason.Name + " of the pods of " + a.c.WorkloadName() + ": the refusal says what is wrong"
	}
	a.Commands = []string{a.describe, a.c.EditByHand("what the refusal names")}
}

// noPodGroup is Volcano's: it lets nobody in whose group does not exist.
func (a *answer) noPodGroup() {
	if a.reason.Name == "" {
		a.Title, a.Until = "have who makes the pods of "+a.c.WorkloadName()+" make their PodGroup first, in the group scheduling.volcano.sh, or make them without a gang", "their PodGroup exists"
		a.Commands = []string{a.describe, fmt.Sprintf("kubectl -n %s get podgroups.scheduling.volcano.sh", a.ns), "kubectl api-resources | grep -i podgroups  # an operator of another age makes them in another group, which Volcano does not read",
			"kubectl get deployments -A -o wide | grep -i operator  # its version, its gang scheduling, and whether its ServiceAccount may create podgroups.scheduling.volcano.sh"}
		return
	}
	a.Title, a.Until = fmt.Sprintf("make PodGroup %s in %s, or have the pods name none", a.reason.Name, a.ns), "PodGroup "+a.reason.Name+" exists"
	a.Commands = []string{fmt.Sprintf("kubectl create -f - <<'EOF'\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s, namespace: %s}\nspec: {minMember: 1, queue: default}\nEOF", a.reason.Name, a.ns),
		fmt.Sprintf("kubectl -n %s edit %s  # or this: the template without annotation scheduling.k8s.io/group-name", a.ns, a.c.WorkloadName()), a.again}
}

// webhookDown is about a webhook whose server does not answer.
func (a *answer) webhookDown() {
	a.Title = "bring back the server of the webhook that is named in the refusal, or have failures ignored"
	a.Commands = []string{a.describe, webhooks + "  # its clientConfig.service: are that Service's pods ready?", "kubectl get endpointslices -A | grep -i webhook", a.again}
}

// webhookLocksOut is about a webhook that is asked about its own server's pods.
func (a *answer) webhookLocksOut() {
	a.Title = "have the webhook that is named in the refusal leave " + a.reason.Name + " out, where its own server is to run"
	a.Risk = diagnosis.LowRisk // nobody asks it about the pods there any more
	a.Commands = []string{a.describe, webhooks + " -o custom-columns='KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name'  # the one that has that webhook",
		"# then kubectl edit KIND NAME, in that webhook: namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [" + a.reason.Name + "]}]}",
		"# or failurePolicy: Ignore there until its server runs, or kubectl delete KIND NAME: what installs it makes it again", a.again}
}

// quotaUncounted is about a quota of which nobody knows yet how much is used.
func (a *answer) quotaUncounted() {
	a.Kind, a.Title, a.Until = diagnosis.Wait, "wait until the quota is counted", "the quota controller has counted its quota"
	a.Commands = []string{fmt.Sprintf("kubectl -n %s get resourcequota -w", a.ns), a.again}
	if a.reason.Stale != nil {
		a.haveCounted()
	}
}

// unmade is about pods of which nobody says why they are not made: who is to make them knows.
func (a *answer) unmade(o incident.Ref) {
	a.Title, a.Until = "see why the pods of "+a.c.WorkloadName()+" are not made: the log of its operator says it", "its pods are made"
	a.Commands = append(a.Commands, "kubectl get pods -A -o wide | grep -i -e operator -e controller  # that of "+o.Kind+": its log, about "+o.Name,
		"# where it says nothing of it: delete that operator's pod, whose Deployment makes it again; it looks at all afresh when it starts")
	if strings.HasPrefix(o.Kind, incident.SparkApplication.Kind) {
		a.Commands = append(a.Commands, fmt.Sprintf("kubectl -n %s get sparkapplication %s -o yaml  # status.applicationState; spec.restartPolicy: onFailureRetries, onSubmissionFailureRetries", o.Namespace, o.Name))
	}
}

// haveCounted is about a quota that is old and was never counted: the controller does not run, or fails at one of its keys.
func (a *answer) haveCounted() {
	q := a.reason.Stale
	keys := admission.Uncounted(q)
	a.Kind, a.Risk = diagnosis.Manual, diagnosis.MediumRisk // what is taken out limits nobody any more
	a.Title = fmt.Sprintf("have ResourceQuota %s counted, or take out of it what is not: kube-controller-manager's log says why", q.Name)
	a.Commands = []string{fmt.Sprintf("kubectl -n %s get resourcequota %s -o yaml  # spec.hard beside status.used: not counted are %s", q.Namespace, q.Name, strings.Join(keys, ", ")),
		"kubectl -n kube-system logs -l component=kube-controller-manager --tail=-1 | grep -i quota  # a cloud's own shows no log",
		fmt.Sprintf("kubectl -n %s edit resourcequota %s  # or this: without those keys, the unusual ones first", q.Namespace, q.Name), a.again}
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
