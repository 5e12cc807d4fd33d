package diagnosis

// ClaimedDevices is one request for devices that a pod's claim makes, for people. Of
// a claim that is not there only its name is known.
type ClaimedDevices struct {
	// Claim is "ResourceClaim name" or, where it is made from one,
	// "ResourceClaimTemplate name".
	Claim string `json:"claim"`
	Class string `json:"class,omitempty"`
	Count int64  `json:"count"` // 0: all that match
	// Selectors are the clauses of the request's own selectors, in short.
	Selectors []string `json:"selectors,omitempty"`
	// Others counts the alternatives that would do instead, where this is the first.
	Others int `json:"others,omitempty"`
}
