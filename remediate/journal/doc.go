// Package journal carries a plan out step by step so that it survives a crash: every step
// stands in the Remediation's status before it acts, and who takes over goes on from there.
//
// New reads the journal that is there and refuses one that this program cannot have
// written; Machine.Advance goes on until there is nothing to do but wait, ToTheEnd until
// the plan has ended. What the steps are it does not know: a Program says (act has the one
// of the plans).
//
// A step is a look at the world that does what is left to do. It may be asked any number of
// times, also after a crash, and must do no harm when all was done before. Do not keep
// anything here, or in a step, that is neither in the journal nor in the cluster; do not
// rename a step: plans under way are read by its name.
package journal
