// Package diagnosis is the contract of rca: what a diagnosis says, the catalogue of causes
// and of kinds of fixes, the actions of a fix and the hash that names their plan, the answer
// to "can I get one more", and what is asked about the use of GPUs.
//
// It holds no judgement and reads no cluster, so that what only shows, stores or sends a
// diagnosis links nothing of the scheduler. Who tells a cause is in rca/causes, who offers a
// fix in rca/changes. Everything here travels as JSON: add fields, rename none.
package diagnosis
