package diagnosis

// OperationAnnotation marks a node that unpend is at work on, or keeps closed.
const OperationAnnotation = "unpend.dev/operation"

// Operation is what is read here of that mark.
type Operation struct {
	Prior       string `json:"priorMigConfig"` // the config that was in force before
	Parked      string `json:"parked"`
	Quarantined string `json:"quarantined"`
}
