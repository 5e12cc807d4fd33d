// Package gangs is about pods that start together or not at all: groups that are scheduled
// whole, how many of one exist and fit, and workloads whose members wait for each other while
// those that run hold what the others need.
package gangs
