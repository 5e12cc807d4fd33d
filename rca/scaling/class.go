package scaling

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Class is the node class that a NodePool names: how its machines are made in a cloud. A pool
// whose class is not Ready makes none.
type Class struct {
	Kind, Name string
	// Ready is empty where the class was not read, or says nothing of itself. Why are the
	// conditions that are not met and stand behind it.
	Ready Condition
	Why   []Condition
	// MaxPods is how many pods its machines take, where it says so (EC2NodeClass); else 0.
	MaxPods int64
	// Role is the identity in the cloud by which its machines join, where it says so; else empty.
	Role string
	// Disk is what each of its machines has for pods' own files (ephemeral-storage), whatever the
	// machine's type, and Device what that volume is; zero where it is not the class that decides.
	Disk   resource.Quantity
	Device string
	// DiskSaid: the class itself says how large it is. Reserves: it says what of it pods do not get.
	DiskSaid, Reserves bool
	// Subnets and Reservations are, by the cloud's names, those that it has found for its machines.
	Subnets, Reservations []string
}

// DiskHolds says whether pods could have so much of its machines' disk: kubelet keeps a tenth free, and
// 1Gi is reserved, where the class says nothing else (karpenter-provider-aws
// pkg/providers/instancetype/types.go).
func (c Class) DiskHolds(asked resource.Quantity) bool {
	left := c.Disk.Value()
	if !c.Reserves {
		left -= left/10 + 1<<30
	}
	return asked.Value() <= left
}

// Ref is how the class is referred to; empty where the pool names none.
func (c Class) Ref() string {
	if c.Name == "" {
		return ""
	}
	return c.Kind + "/" + c.Name
}

// Unauthorized is the role that, as the class says, may not join machines to the cluster (EKS Auto Mode); empty for none.
func (c Class) Unauthorized() string {
	for _, k := range append([]Condition{c.Ready}, c.Why...) {
		if strings.HasSuffix(k.Reason, "UnauthorizedNodeRole") {
			return c.Role
		}
	}
	return ""
}

// Words are what the class says of itself, the conditions behind it in place of their sum.
func (c Class) Words() string {
	var out []string
	for _, k := range c.Why {
		out = append(out, k.Words())
	}
	if len(out) == 0 {
		return "Ready=" + c.Ready.Status + " " + c.Ready.Words()
	}
	return strings.Join(out, "; ")
}

// read reads what a node class says of itself.
func (c *Class) read(u *unstructured.Unstructured) {
	c.Ready = ConditionOf(u, "Ready")
	c.Role = cmp.Or(text(u, "spec", "role"), text(u, "spec", "instanceProfile"))
	if n, _, err := unstructured.NestedInt64(u.Object, "spec", "kubelet", "maxPods"); err == nil {
		c.MaxPods = n
	}
	if c.Kind == "EC2NodeClass" {
		c.readDisk(u)
		c.Subnets, c.Reservations = ids(u, "subnets"), ids(u, "capacityReservations")
	}
	for _, item := range list(u, "status", "conditions") {
		m, ok := item.(map[string]any)
		kind, named := m["type"].(string)
		if !ok || !named || kind == "Ready" {
			continue
		}
		if k := ConditionOf(u, kind); !k.Met() {
			k.Reason = strings.TrimSpace(kind + "=" + k.Status + " " + k.Reason)
			c.Why = append(c.Why, k)
		}
	}
}

// ids are the cloud's names of what a class lists in its status.
func ids(u *unstructured.Unstructured, of string) []string {
	var out []string
	for _, item := range list(u, "status", of) {
		m, _ := item.(map[string]any)
		if id, _ := m["id"].(string); id != "" {
			out = append(out, id)
		}
	}
	return out
}

// ec2Devices are the volumes that hold pods' files, by the family of images; of one that is not here,
// and of disks that are the machine's own (instanceStorePolicy), the class does not decide.
var ec2Devices = map[string]string{"al2": "/dev/xvda", "al2023": "/dev/xvda", "bottlerocket": "/dev/xvdb"}

// ec2Default is how large that volume is where a class says nothing of it
// (karpenter-provider-aws pkg/providers/amifamily/resolver.go).
var ec2Default = resource.MustParse("20Gi")

// readDisk reads how large the volume for pods' files is on each machine of an EC2NodeClass, as Karpenter
// reckons it (pkg/providers/instancetype/types.go, ephemeralStorage).
func (c *Class) readDisk(u *unstructured.Unstructured) {
	device, known := ec2Devices[ec2Family(u)]
	if !known || text(u, "spec", "instanceStorePolicy") != "" {
		return
	}
	c.Disk, c.Device = ec2Default, device
	root := false
	for _, item := range list(u, "spec", "blockDeviceMappings") {
		m, _ := item.(map[string]any)
		volume, _ := m["ebs"].(map[string]any)
		words, _ := volume["volumeSize"].(string)
		size, err := resource.ParseQuantity(words)
		isRoot, _ := m["rootVolume"].(bool)
		if err == nil && (isRoot || !root && m["deviceName"] == device) {
			c.Disk, c.DiskSaid, root = size, true, isRoot
		}
	}
	for _, key := range []string{"kubeReserved", "systemReserved", "evictionHard"} {
		m, _, err := unstructured.NestedMap(u.Object, "spec", "kubelet", key)
		c.Reserves = c.Reserves || err != nil || len(m) > 0
	}
}

// ec2Family is the family of a class's images: its own word, or that of their alias, as al2023@latest.
func ec2Family(u *unstructured.Unstructured) string {
	family := text(u, "spec", "amiFamily")
	for _, item := range list(u, "spec", "amiSelectorTerms") {
		m, _ := item.(map[string]any)
		if alias, _ := m["alias"].(string); family == "" {
			family, _, _ = strings.Cut(alias, "@")
		}
	}
	return strings.ToLower(family)
}
