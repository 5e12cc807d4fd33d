// Package capacity answers whether so many more of a GPU resource fit: as things are, after
// re-making what nobody holds, after moving somebody; and keeps the gauges of the same. It
// counts nodes that are ready and open. Taints, selectors, CPU and memory are not looked at;
// each answer says so.
package capacity
