// Package rca explains why a workload waits, from the live state of the cluster, and ranks
// fixes that were proved on a copy of it. Diagnose is a straight line through its rooms:
//
//	diagnosis ← view ← evict ← devices, admission ← causes ← edit ← changes ← fixes ← rca
//
// view reads the cluster once, evict knows who could leave and at what cost, devices holds
// claims against what drivers offer, admission has the arithmetic of quotas and limits,
// causes has the rules, edit what every change is made of (claims and outside make them of
// DRA claims, and where others decide), changes what could be done about each cause, fixes combines, proves and orders that. capacity answers "can I get three more"
// from view and evict alone. A room imports those to its left, never one to its right.
//
// How to add a cause is in the documentation of rca/causes, how to add a kind of fix in that
// of rca/changes. Here is only what goes around: what incidents of one call share, the
// headline and the drawing, and what past fixes came to.
package rca
