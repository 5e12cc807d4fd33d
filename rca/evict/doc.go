// Package evict knows who could leave so that a pod may run, and what that costs: exact
// search over the pods of a node, room for whole gangs, the tenants of a joint plan.
//
// Who asks is an Asker: a priority and a gang, on a Ledger that all who ask share. Nothing
// here evicts anybody or proves that the victims land; see rca/fixes for the proof.
package evict
