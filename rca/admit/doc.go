// Package admit has what helps pods that the API server refuses: quotas raised or waited for,
// requests stated, corrected or brought within bounds, what their pods name and nobody made.
// Why they are refused is of rca/admission.
//
// To add what helps against such a refusal: a function here that takes the workload and returns
// Changes, and its line in rca/changes/remedies.go.
package admit
