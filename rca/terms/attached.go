package terms

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Full is a node to which a driver may attach no more volumes.
type Full struct {
	Driver      string
	Used, Limit int
}

// FullOf says of which driver of the pod's volumes a node has all that its CSINode allows; nil where
// nothing that was read says so.
func (c *Volumes) FullOf(n *view.Node) *Full {
	st := c.Cluster.State
	if st.Unread["CSINode"]+st.Unread["PersistentVolumeClaim"]+st.Unread["Pod"] != "" {
		return nil
	}
	for name := range c.drivers(c.Pod) {
		limit := attachable(st.CSINodes, n.Name, name)
		if limit < 0 {
			continue
		}
		used := map[string]bool{}
		for _, p := range n.Pods {
			if !view.Ended(p) {
				for volume := range c.volumesOf(p, name) {
					used[volume] = true
				}
			}
		}
		if len(used) >= limit {
			return &Full{Driver: name, Used: len(used), Limit: limit}
		}
	}
	return nil
}

// Says names the limit and what of it is used.
func (f *Full) Says() string {
	return fmt.Sprintf("no more volumes of %s may be attached there: %d are, of %d that its CSINode allows", f.Driver, f.Used, f.Limit)
}

func (f *Full) evidence(n *view.Node) diagnosis.Evidence {
	return diagnosis.Fact("CSINode/"+n.Name, fmt.Sprintf("%s: allocatable.count %d", f.Driver, f.Limit), diagnosis.That("spec.drivers[name="+f.Driver+"].allocatable.count", "", diagnosis.Is, fmt.Sprint(f.Limit)), diagnosis.That("", "", diagnosis.Exists, "").Of(n.Ref()))
}

func attachable(all []*storagev1.CSINode, node, driver string) int {
	for _, k := range all {
		if k.Name != node {
			continue
		}
		for _, d := range k.Spec.Drivers {
			if d.Name == driver && d.Allocatable != nil && d.Allocatable.Count != nil {
				return int(*d.Allocatable.Count)
			}
		}
	}
	return -1
}

// drivers are those of a pod's claims.
func (c *Volumes) drivers(p *corev1.Pod) map[string]bool {
	out := map[string]bool{}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			if driver, _ := c.driverOf(p.Namespace, v.PersistentVolumeClaim.ClaimName); driver != "" {
				out[driver] = true
			}
		}
	}
	return out
}

// volumesOf are a pod's volumes of a driver.
func (c *Volumes) volumesOf(p *corev1.Pod, driver string) map[string]bool {
	out := map[string]bool{}
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if by, volume := c.driverOf(p.Namespace, v.PersistentVolumeClaim.ClaimName); by == driver {
			out[volume] = true
		}
	}
	return out
}

// driverOf is who attaches a claim's volume, and that volume: by the volume, or by the class where
// there is none yet (nodevolumelimits/csi.go).
func (c *Volumes) driverOf(namespace, claim string) (driver, volume string) {
	st := c.Cluster.State
	for _, k := range st.PVCs {
		if k.Namespace != namespace || k.Name != claim {
			continue
		}
		for _, pv := range st.PVs {
			if pv.Name != k.Spec.VolumeName {
				continue
			}
			if pv.Spec.CSI == nil {
				return "", "" // whatever its class says, no driver attaches it
			}
			return pv.Spec.CSI.Driver, pv.Spec.CSI.VolumeHandle
		}
		for _, s := range st.StorageClasses {
			if k.Spec.StorageClassName != nil && s.Name == *k.Spec.StorageClassName {
				return s.Provisioner, namespace + "/" + claim
			}
		}
	}
	return "", ""
}
