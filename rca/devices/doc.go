// Package devices holds the ResourceClaims of a pod against the devices that drivers offer,
// clause by clause of the CEL selectors: which claim is missing, which clause fails on which
// device, what comes nearest, who holds what matches.
//
// It tells a cause for one node (Claims.CauseOn); the words about it are in rca/causes.
package devices
