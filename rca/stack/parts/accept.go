package parts

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
)

// Accept is what has the API server accept a DaemonSet's pods, by what refuses them.
func (d *Set) Accept(message string) (title string, steps, commands []string, risk diagnosis.Risk) {
	risk = diagnosis.LowRisk
	switch {
	case strings.Contains(message, "exceeded quota"):
		title = "raise the quota of " + d.Namespace + " for " + d.Name
		commands = []string{"kubectl -n " + d.Namespace + " get resourcequota", "kubectl -n " + d.Namespace + " edit resourcequota"}
	case strings.Contains(message, "quota"):
		title = "give the pods of critical classes in " + d.Namespace + " a quota"
		steps = []string{"make a ResourceQuota for the critical PriorityClasses in that namespace: where admission limits their use, none means no pod"}
		commands = []string{fmt.Sprintf(`kubectl apply -f - <<'END'
apiVersion: v1
kind: ResourceQuota
metadata: {name: critical-pods, namespace: %s}
spec:
  hard: {pods: "1000"}
  scopeSelector:
    matchExpressions:
    - {operator: In, scopeName: PriorityClass, values: [system-node-critical, system-cluster-critical]}
END`, d.Namespace)}
	case strings.Contains(message, notPermitted):
		title, commands = outOfClass(d)
	case strings.Contains(message, "PodSecurity"):
		title = "let privileged pods into namespace " + d.Namespace
		commands = []string{"kubectl label namespace " + d.Namespace + " pod-security.kubernetes.io/enforce=privileged --overwrite"}
	case strings.Contains(message, "security context constraint"):
		account := d.Spec.Template.Spec.ServiceAccountName
		title = fmt.Sprintf("let the service account %s use privileged containers", account)
		risk = diagnosis.MediumRisk // every pod of that account may be privileged then
		commands = []string{fmt.Sprintf("oc adm policy add-scc-to-user privileged -z %s -n %s", account, d.Namespace)}
	default:
		title = "have the API server accept the pods of " + d.Namespace + "/" + d.Name
		commands = []string{fmt.Sprintf("kubectl -n %s describe daemonset %s", d.Namespace, d.Name)}
	}
	return title, steps, commands, risk
}

// notPermitted is what API servers before v1.17 say of the critical classes outside kube-system
// (plugin/pkg/admission/priority).
const notPermitted = "priorityClass is not permitted in"

// outOfClass has a DaemonSet do without the class that its namespace may not use.
func outOfClass(d *Set) (title string, commands []string) {
	return fmt.Sprintf("run %s/%s without PriorityClass %s: this API server allows it in kube-system alone (it is one before v1.17)", d.Namespace, d.Name, d.Spec.Template.Spec.PriorityClassName),
		[]string{fmt.Sprintf(`kubectl -n %s patch daemonset %s --type=json -p '[{"op":"remove","path":"/spec/template/spec/priorityClassName"}]'`, d.Namespace, d.Name), "# or make the DaemonSet in kube-system"}
}
