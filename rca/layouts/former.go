package layouts

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/view"
)

// Former is a count of whole GPUs that no GPU stands behind any more: the kubelet keeps the names of a former layout, and
// a device plugin that has not looked since keeps their counts. What such a pod gets no scheduler's filter shows.
type Former struct {
	Says   string
	Claims []diagnosis.Claim
}

// FormerWhole is that of a node that nothing reports on: its instances, as GPU feature discovery counts them too, and the
// whole GPUs that it offers are of more GPUs than it has.
func FormerWhole(n *view.Node) *Former {
	whole := n.Allocatable(view.WholeGPU)
	total, err := strconv.ParseInt(n.Labels[view.LabelGPUCount], 10, 64)
	if n.Geometry != nil || whole == 0 || err != nil || n.Manager().Strategy != "mixed" {
		return nil
	}
	parted, texts := int64(0), []string(nil)
	claims := append(n.Labelled(view.LabelGPUCount), n.Advertises()...)
	for _, name := range view.SortedNames(n.Status.Allocatable) {
		a := view.Ask{Resource: name, Profile: strings.TrimPrefix(string(name), view.MIGPrefix)}
		count := n.Allocatable(name)
		if a.Profile == string(name) || count == 0 || Shares(n, a) || int64(Counted(n, a)) != count {
			continue
		}
		parted, texts = max(parted, fewestGPUs(n, a.Profile, count)), append(texts, fmt.Sprintf("%d of %s", count, a.Profile))
		claims = append(claims, n.Labelled(string(name)+".count")...)
	}
	if parted == 0 || whole+parted <= total {
		return nil
	}
	return &Former{fmt.Sprintf("its %s=%d is of a former layout, for it has %s, and on them are %s", view.WholeGPU, whole, view.CountOf(int(total), "GPU"), strings.Join(texts, ", ")), claims}
}

// fewestGPUs is how many GPUs so many instances of a profile take at least.
func fewestGPUs(n *view.Node, profile string, count int64) int64 {
	for _, p := range n.Profiles() {
		if view.Spelled(p.Name) == profile && p.Max > 0 {
			return (count + int64(p.Max) - 1) / int64(p.Max)
		}
	}
	return 1
}

// WholeDoubt says why nobody knows whether the whole GPUs that a node offers are there: it offers instances too, was laid
// out otherwise before, and nothing tells how many GPUs it has.
func WholeDoubt(n *view.Node, asks corev1.ResourceName) string {
	if asks != view.WholeGPU || n.Geometry != nil || n.Labels[view.LabelGPUCount] != "" || n.Allocatable(view.WholeGPU) == 0 || !OffersProfiles(n) {
		return ""
	}
	former := slices.DeleteFunc(slices.Sorted(maps.Keys(n.Status.Capacity)), func(name corev1.ResourceName) bool {
		return !strings.HasPrefix(string(name), view.MIGPrefix) || n.Capacity(name) > 0
	})
	if len(former) == 0 {
		return ""
	}
	return fmt.Sprintf("nothing tells how many GPUs %s has: it was laid out otherwise before, for it keeps %s at 0, and so its %s=%d beside MIG instances may be of then", n.Name, former[0], view.WholeGPU, n.Allocatable(view.WholeGPU))
}
