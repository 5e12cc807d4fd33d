package rca

// gpuNotMIGCapable: MIG was asked of a model that has none.
var gpuNotMIGCapable = Rule{ID: GPUNotMIGCapable, gpu: true, Tell: func(_ *Case, n *nodeView, b *blocker) *finding {
	if _, ok := b.mig(); !ok {
		return nil
	}
	if len(n.reported()) > 0 {
		if n.read().mig {
			return nil
		}
		return &finding{Proven, n.product() + " has no MIG", []Evidence{{n.reportRef(), "no GPU of the node reports a MIG mode"}}}
	}
	if n.Labels[labelMIGCapable] != "false" {
		return nil
	}
	return &finding{Likely, n.product() + " has no MIG", []Evidence{{n.ref(), "label " + labelMIGCapable + "=false"}}}
}}
