// Package watcher follows the waiting pods of a cluster and turns many signals about them
// into incidents, one per workload and request shape: published when it is new, when it has
// changed, and when it is over. What an incident is stands in watcher/incident.
package watcher
