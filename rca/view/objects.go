package view

import (
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/whatif"
)

// Objects is what the scheduler's plugins look at in a state.
func Objects(st *cluster.State) whatif.Objects {
	objs := whatif.Objects{Nodes: st.Nodes, Pods: st.Pods}
	for _, o := range st.Namespaces {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.PVCs {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.PVs {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.StorageClasses {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.CSINodes {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.ReplicaSets {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.StatefulSets {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.TaintedSlices() {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.ResourceClaims {
		objs.Others = append(objs.Others, o)
	}
	for _, o := range st.DeviceClasses {
		objs.Others = append(objs.Others, o)
	}
	return objs
}

// Rank sorts what is true before what is not.
func Rank(first bool) int {
	if first {
		return 0
	}
	return 1
}
