package view

import "github.com/unpend/unpend/rca/diagnosis"

// Finding is what a room found out about a pod: what is the matter, how sure that is, and
// which objects show it. Which cause it is, and whether it leads, the rules say.
type Finding struct {
	Certainty diagnosis.Certainty
	Says      string
	Evidence  []diagnosis.Evidence
}

// Found makes one.
func Found(certainty diagnosis.Certainty, says string, evidence ...diagnosis.Evidence) *Finding {
	return &Finding{Certainty: certainty, Says: says, Evidence: evidence}
}
