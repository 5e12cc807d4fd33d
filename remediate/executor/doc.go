// Package executor carries approved plans out: it admits one when people and guard-rails
// say yes, leads one at a time under a lease, resumes what another began, and tells what
// became of it.
//
// Executor.Look is the whole of it for one plan: gate.go says whether it may begin, rails.go
// reads the guard-rails, executor.go proves it once more and hands it to the journal,
// broken.go ends what cannot be trusted, stale.go what is no longer the plan. Run (service.go)
// has Look called and keeps the lease; beside it the breaker is watched, and tell.go tells of
// ends. Apply carries a plan out at a terminal, where no executor leads; Stand, Leader,
// Persons, Rested and Unled say to a terminal how things are.
//
// How a step changes the cluster is act's, how it survives a crash is the journal's. Keep
// nothing here that the API does not have: another leader may be a second away. Do not ask
// a cache what is to be decided on.
package executor
