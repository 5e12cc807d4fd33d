// Package makers knows the device plugins of others than NVIDIA's for containers: what they announce, and what says that a
// machine has a device of theirs.
package makers

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// Maker is one of GPUs that other device plugins announce than NVIDIA's for containers: which its
// plugin is, what says that a node has a GPU of its, and what brings the plugin. Nothing of
// NVIDIA's for containers has a part in it.
type Maker struct {
	Whose string // "AMD's"
	Has   string // "has GPUs of AMD's"
	Plug  string // "AMD's device plugin"
	// Announces tells the resources that its device plugin announces, and Devices those of them
	// that are GPUs or parts of such, and not what stands beside them.
	Announces, Devices func(corev1.ResourceName) bool
	Plugin             parts.Role
	Before             parts.Role // what its plugin waits for, and is kept off by labels too; empty for none
	// Awaits is, for an init container of its plugin, the part that it waits for.
	Awaits map[string]parts.Role
	// Labels say that a node has one, by "key=value" or by the value "true"; keys that begin as
	// written are its labeller's, of the properties of the card.
	Labels, Written []string
	Machines        *regexp.Regexp // types of machines that have one; nil where no name tells
	Signed          bool           // names of its form are others' too: a node has to say that it has one
	Several         bool           // its plugin announces a device by several names at once, and no name of them replaces another
	Parted          string         // the label that says in which parts its GPUs are; whole ones begin with spx
	Behind          string         // completes "announces none, as where …"
	Image           string         // is in the image of its plugin
	Driver          string         // what has to be loaded on the machine
	Shows           string         // the command by which the machine shows that it serves a card
	Steps           []string       // how the plugin is installed
	Install         func(node string) []string
	// Look are commands that show more of a machine, such as its image; nil for none.
	Look  func(n *view.Node) []string
	other string // what its devices are called, where they are no GPUs
}

// all are those whose device plugins are known.
var all = []*Maker{amd, intel, Virtual, gpushare, vcuda, neuron, gaudi}

// Of is the maker whose device plugin announces a resource; nil for none that is known.
func Of(resource corev1.ResourceName) *Maker {
	for _, m := range all {
		if m.Announces(resource) {
			return m
		}
	}
	return nil
}

// Devs is what its devices are called.
func (m *Maker) Devs() string { return cmp.Or(m.other, "GPUs") }

// Sign is the label by which a node is known to have a GPU of the maker's; empty for none.
func (m *Maker) Sign(n *view.Node) string {
	for _, label := range m.Labels {
		key, value, _ := strings.Cut(label, "=")
		if n.Labels[key] == cmp.Or(value, "true") {
			return key
		}
	}
	if key := corev1.LabelInstanceTypeStable; m.Machines != nil && m.Machines.MatchString(n.Labels[key]) {
		return key
	}
	var written []string
	for key := range n.Labels {
		if slices.ContainsFunc(m.Written, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			written = append(written, key)
		}
	}
	if len(written) == 0 {
		return ""
	}
	return slices.Min(written)
}

// Offers says whether the node offers what the maker's plugin announces, by another name than the one that is asked.
func (m *Maker) Offers(n *view.Node, asked corev1.ResourceName) bool {
	if !m.Several {
		return OtherName(n, asked) != ""
	}
	for name, q := range n.Status.Allocatable {
		if m.Announces(name) && name != asked && !q.IsZero() {
			return true
		}
	}
	return false
}

// OtherName is another name under which the node offers GPUs of the maker of a resource that it
// does not offer; empty for none. Device plugins name GPUs by how they are parted, or by driver.
func OtherName(n *view.Node, resource corev1.ResourceName) corev1.ResourceName {
	m := Of(resource)
	if m == nil || m.Devices == nil || !m.Devices(resource) {
		return ""
	}
	for _, name := range view.SortedNames(n.Status.Allocatable) {
		if q := n.Status.Allocatable[name]; name != resource && m.Devices(name) && !q.IsZero() {
			return name
		}
	}
	return ""
}

// Parts is the label by which the node's GPUs are in parts; empty where they are whole, or nothing
// says so.
func (m *Maker) Parts(n *view.Node) string {
	value := n.Labels[m.Parted]
	if m.Parted == "" || value == "" || strings.HasPrefix(value, "spx") {
		return ""
	}
	return m.Parted + "=" + value
}
