// Package fixes combines the changes for one case so that each clears every blocker of a
// node, proves them on a fork of the cluster with the scheduler's own code, and orders them.
//
// Candidates come cheapest first and few of a kind are proved, so what orders them has to be
// known before the proof. What became of the proof is in Fix.Proof, refuted ones are logged
// at level debug and shown to nobody.
package fixes
