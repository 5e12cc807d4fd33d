// Package causes tells what keeps a waiting pod from each node: a Case is one incident with
// all that a rule may look at, a Rule claims one blocker of one node, a PodRule a cause that
// is the pod's own. Rules judge by live objects and geometry; a text of the scheduler says
// only where to look. What can be done about a cause is not said here.
//
// To add a cause:
//  1. rca/diagnosis/catalogue.go: its id and its row, with its words in a headline;
//  2. its rule: what it is told from, and where that is documented. That is a function in the room
//     of what it is about (layouts, terms, kubelet, gangs, admission, queues, growth, stack), or
//     a file here where it needs the case itself;
//  3. rules.go: a line in Rules or PodRules that names it, in its order;
//  4. rca/changes/remedies.go: a line, if something can be done about it;
//  5. testdata/scenarios: a folder whose want.yaml was written before the rule.
package causes
