package changes

import (
	"github.com/unpend/unpend/rca/diagnosis"
)

func (c *Bench) lookAtMissing() []Change {
	return []Change{c.lookAt(diagnosis.DRAClaimMissing, "make what the pod refers to: "+c.Claims.Missing[0].Says, "which devices a claim that does not exist would ask for is not known",
		"kubectl -n "+c.Pod.Namespace+" get pod "+c.Pod.Name+" -o jsonpath='{.spec.resourceClaims}'",
		"kubectl -n "+c.Pod.Namespace+" get resourceclaims,resourceclaimtemplates")}
}
