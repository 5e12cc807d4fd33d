// Package events follows the Events that an incident or a diagnosis is made from, and
// keeps no more of them than it needs. Who may create an Event in a namespace may
// say anything in it, as often and at any length: each is cut when it comes, those that
// nobody reads are not kept, and one namespace cannot crowd out another's.
//
// Start at keep.go, which says what is kept; bound.go says how much, and source.go how
// it is read without costing the API server more than us.
package events
