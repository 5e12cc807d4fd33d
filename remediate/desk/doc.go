// Package desk takes what people say of fixes in other places than a terminal: in a chat, on
// a page, from a pager. The place says who and about which plan; the desk finds that fix again
// on fresh state, records the plan as that person, and has their decision made, so that every
// place refuses the same for the same reason.
//
// Begin at Desk. Somebody a place knows by an id comes by Known, somebody whose own Kubernetes
// client is at hand by Self; both give a Visitor, who approves, rejects or tries a fix.
//
// Rules of this package:
//   - Nothing is written but as the person: RBAC and the admission policies judge them.
//   - Of somebody nobody knows, nothing is even read.
//   - A word that comes again is the same word: there is one Remediation and one Approval.
//   - It knows no place: no message, no button and no request is here.
package desk
