// Package nvml reads a node's GPUs from NVIDIA's driver, through
// libnvidia-ml.so.1. It needs cgo; without, it is empty. Nothing is ever set.
package nvml
