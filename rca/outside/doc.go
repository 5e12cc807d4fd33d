// Package outside has what helps where others than the scheduler decide: autoscalers and the
// clouds behind them, queues, other schedulers, who owns a gate. Most of it is for people to
// do, with the commands: no copy of the cluster shows what those others make of it.
//
// To add what helps against such a cause: a function here that takes the workload and returns
// Changes, and its line in rca/changes/remedies.go.
package outside
