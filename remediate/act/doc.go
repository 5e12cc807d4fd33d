// Package act has what plans do to the cluster: one type a verb, in one table (verbs), with
// its steps, its way back, the rights it takes and what it checks. The journal carries the
// steps out; here is what each of them does, as if it had never been asked before.
//
// Start at verbs.go; uncordon.go is the shortest verb. The shared parts: run.go has what all
// verbs act with, facts.go reads objects again and holds them to the plan, marked.go has the
// node that is ours while our mark is on it, lock.go its lock. Who waits, runs or was stopped,
// before a plan and after it, is counted in remediate/tally: verbs do not count.
//
// # To add a verb
//
//  1. Name it in rca/diagnosis/action.go, and say in that table what it may be done to,
//     whether it evicts and whether it closes a node: the guard-rails go by that.
//  2. Write act/x.go: a type that embeds action and has steps, rights and, where it can be
//     taken back, wayBack.
//  3. Add its line to the table verbs.
//  4. Give the executor, and those who approve, its rights in the chart's ClusterRoles.
//
// A change that produces the verb is rca's to make.
//
// # What not to do
//
// Write nothing before it was read again and held to what the plan relies on (fresh, look,
// drift), and write on the version that was read. Remember nothing in memory: what a step
// has to know after a crash is in the journal's note, or in the mark on the node. Never
// delete a pod: evict asks the Eviction API, and only that.
package act
