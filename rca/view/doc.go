// Package view is one reading of the cluster for one diagnosis: the nodes with their GPUs,
// layouts, holders, requests and MIG configs, the pods with what matters of them as victims,
// the groups that leave whole, the budgets. It judges nothing: what keeps a pod from a node
// is told in rca/causes.
//
// What several incidents ask is worked out at the first question and kept, once for nodes
// that are alike. What cannot be read is a doubt of the node and is never read as free.
package view
