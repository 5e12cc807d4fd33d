// Package acceptance tests the program from outside, by its commands, on dumps and on a
// real control plane. A scenario is judged in scenario_test.go (its dump), live_test.go
// and replay_test.go (live); a promise of `make promises` has a file promise_*_test.go.
// What only looks into the program is tested in
// cmd/internal/program and cmd/internal/service.
package acceptance
