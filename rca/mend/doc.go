// Package mend has what mends a node itself: its device plugin started again, a broken link
// between its board and what it offers, what keeps MIG manager from its GPUs, a cordon lifted
// or set for a sick GPU, a reboot. What layout a node goes back to, or is given, is of
// rca/changes.
//
// To add what mends a node: a function here that takes the workload and the node and returns
// Changes, and its line in rca/changes/remedies.go.
package mend
