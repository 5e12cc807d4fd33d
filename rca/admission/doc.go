// Package admission is the arithmetic by which the API server refuses pods: quotas,
// LimitRanges, requests of devices that validation does not take, classes that do not exist. It
// says who lacks pods because of that and why, what a quota would need to take the next one, and
// which bound a pod breaks; which cause each of these is, rca/causes says.
package admission
