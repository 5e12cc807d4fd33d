// Package edit has what every change is made of: the Change itself, what it comes to that a
// workload's template is another (the patch, whose pods are made again and in which turn),
// and pods that leave. What could be done about which cause is not known here: rca/changes
// and the rooms below it make Changes of it.
//
// To add a kind of workload: its case in template.go says how its template is changed, the
// one in rolling.go what its controller does then, with the source file that says so.
package edit
