// Package admission is the arithmetic by which the API server refuses pods: quotas,
// LimitRanges, requests of devices that validation does not take. It says who lacks pods
// because of that, what a quota would need to take the next one, and which bound a pod
// breaks; the causes are told in rca/causes.
package admission
