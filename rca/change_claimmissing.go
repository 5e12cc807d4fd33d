package rca

func (c *Bench) lookAtMissing() []change {
	return []change{c.lookAt(DRAClaimMissing, "make what the pod refers to: "+c.claims.missing[0].says, "which devices a claim that does not exist would ask for is not known",
		"kubectl -n "+c.Pod.Namespace+" get pod "+c.Pod.Name+" -o jsonpath='{.spec.resourceClaims}'",
		"kubectl -n "+c.Pod.Namespace+" get resourceclaims,resourceclaimtemplates")}
}
