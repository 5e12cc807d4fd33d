package controlplane

import "os"

// Whole says whether tests play every case of a rule: `make test-all` sets UNPEND_ALL=1. Without
// it a few stand for all, since a case on the control plane costs seconds, as do many at random,
// and the rule itself is held by other tests too.
func Whole() bool { return os.Getenv("UNPEND_ALL") == "1" }

// Some are the cases to play: all where the whole is asked for, else the first of every so
// many.
func Some[C any](cases []C, every int) []C {
	if Whole() {
		return cases
	}
	var some []C
	for i := 0; i < len(cases); i += every {
		some = append(some, cases[i])
	}
	return some
}

// Of is how many of something to play: whole where that is asked for, else few.
func Of(few, whole int) int {
	if Whole() {
		return whole
	}
	return few
}
