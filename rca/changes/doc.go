// Package changes works out what could be done about the causes of one case: of each an
// edit.Change, which is one thing about one cause on one node, with its steps, its commands
// and the actions that carry it out. A Bench is where they are made. That a change helps is
// not claimed here: rca/fixes combines changes, proves and orders them.
//
// To add what can be done about a cause: a function in the room of what it is about (admit,
// retry, mend, claims, outside), or here where it needs what the bench works out once, and its
// place in the line of the cause in remedies.go.
//
// To add a kind of fix:
//  1. rca/diagnosis/catalogue.go: its name and its row (its order, how much it disturbs);
//  2. a file here, or in one of those rooms, that makes the edit.Change, from API objects and never from text;
//  3. remedies.go: the causes that admit it;
//  4. remediate/act, if it takes a verb that is not there yet (see that package);
//  5. testdata/scenarios: a folder in which it is the right answer.
package changes
