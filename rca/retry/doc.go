// Package retry has what helps a pod that a kubelet refused: it is tried again where nothing
// speaks against that, else what was behind the refusal is mended first, or less is asked. What
// was behind it is of rca/kubelet.
package retry
