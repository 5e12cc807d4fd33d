package admit

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/admission"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
)

// LookAtRefusal is what a person does about a refusal that no cause of the catalogue is
// about. Names are those of objects: what the API server's text names is only quoted.
func LookAtRefusal(c *edit.Workload) []edit.Change {
	if len(c.Refused.All) == 0 {
		return nil
	}
	o, r := c.Refused.All[0].Owner, c.Refused.Refuses()
	a := &answer{c: c, reason: r, ns: c.Refused.Next().Namespace,
		describe: fmt.Sprintf("kubectl -n %s describe %s/%s", o.Namespace, strings.ToLower(o.Kind), o.Name),
		again:    fmt.Sprintf("kubectl -n %s annotate --overwrite %s/%s %s=now  # its controller tries again at once", o.Namespace, strings.ToLower(o.Kind), o.Name, annotationRetry)}
	a.Change = edit.Change{Kind: diagnosis.Manual, Manual: true, Risk: diagnosis.NoRisk, Minutes: 5, Until: "the API server takes its pods", Title: "look at why its pods are refused", Commands: []string{a.describe}}
	switch say := answers[r.Kind]; {
	case r.Gone:
		a.Kind, a.Title, a.Until, a.Commands = diagnosis.Wait, "wait until its controller tries again, or touch it", "its controller tries again", []string{a.again}
	case r.Kind == "" && c.Refused.Says() == "":
		a.unmade(o)
	case say != nil:
		say(a)
	}
	return []edit.Change{a.Change}
}

// answer is what a person is told to do about one refusal: its change is what they read.
type answer struct {
	edit.Change
	c        *edit.Workload
	reason   admission.APIRefusal
	ns       string // of the pods
	describe string // the command that shows who makes the pods
	again    string // the command that has it try again
}

// answers are those to refusals of each kind: to one that is not here, that who makes the pods is to be looked at.
var answers = map[string]func(*answer){
	admission.NoPriorityClass:  (*answer).noPriorityClass,
	admission.PriorityStated:   (*answer).priorityStated,
	admission.NoRuntimeClass:   (*answer).noRuntimeClass,
	admission.NoServiceAccount: (*answer).noServiceAccount,
	admission.PodSecurity:      (*answer).podSecurity,
	admission.NoSCC:            (*answer).noSCC,
	admission.WebhookDenies:    (*answer).keepToPolicy,
	admission.UnnamedClaim:     (*answer).unnamedClaim,
	admission.InvalidSpec:      (*answer).invalidSpec,
	admission.NoPodGroup:       (*answer).noPodGroup,
	admission.WebhookDown:      (*answer).webhookDown,
	admission.WebhookLocksOut:  (*answer).webhookLocksOut,
	admission.QuotaUncounted:   (*answer).quotaUncounted,
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
