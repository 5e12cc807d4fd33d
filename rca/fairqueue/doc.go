// Package fairqueue decides which incident is diagnosed next. Namespaces take turns, so that
// nobody waits for what somebody else has made; what changed is looked at again soon, and
// what keeps changing without becoming anything else is looked at less often.
package fairqueue
