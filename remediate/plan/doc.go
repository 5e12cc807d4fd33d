// Package plan keeps plans and what people decide on them: the API's Remediations and
// Approvals as a store. It knows nothing of carrying a plan out.
//
// A plan begins with Propose and is recorded by Store.Record. A person decides at a
// terminal with Store.Say, and from anywhere else through Decider.Decide, the one door for
// words that come in by other places: it maps the caller to a Kubernetes user, and that
// user's own rights judge. How past plans turned out is Store.Outcomes.
//
// Read from the API server, never from a cache: a journal that is a second old has been
// written twice. Do not write a Remediation or an Approval anywhere else, and do not put
// here what looks at nodes or pods: that is act.
package plan
