package causes

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack"
	"github.com/unpend/unpend/rca/stack/makers"
	"github.com/unpend/unpend/rca/view"
)

// Announcer is the device plugin that, by its name, is for a resource that no node offers.
type Announcer struct {
	Set *appsv1.DaemonSet
	Pod *corev1.Pod // one that does not work, else one that does; nil: it has none
	// Pods are all that it has.
	Pods []*corev1.Pod
	// Trouble is what keeps that pod from working, in its own words; empty: it works, and has announced nothing.
	Trouble  string
	evidence []diagnosis.Evidence
}

// pluginSockets is where device plugins find their kubelet (k8s.io/kubelet, deviceplugin/v1beta1): who is none has
// nothing to do there.
const pluginSockets = "kubelet/device-plugins"

// AnnouncerOf looks for the DaemonSet of a device plugin whose name or image speaks of the resource; nil where there is
// none, or these were not read.
func AnnouncerOf(c *Case, name corev1.ResourceName) *Announcer {
	if c.Cluster.State.Unread["Pod"] != "" {
		return nil
	}
	var a *Announcer
	least := 0
	for _, d := range c.Cluster.State.DaemonSets {
		at := speaksOf(d, name)
		if at == byDomain && strings.HasPrefix(string(name), nvidiaDomain) {
			continue // whose device plugin has that in its name whatever it announces
		}
		if at > 0 && (a == nil || at < least) && isPlugin(d) {
			a, least = &Announcer{Set: d}, at
		}
	}
	if sets := makers.PluginSets(c.Cluster, name); a == nil && len(sets) > 0 {
		a = &Announcer{Set: sets[0].DaemonSet}
	}
	if a == nil {
		return nil
	}
	a.look(c)
	return a
}

// look finds the pod that tells most.
func (a *Announcer) look(c *Case) {
	ref := view.ObjectRef("DaemonSet", a.Set.Namespace, a.Set.Name)
	a.evidence = []diagnosis.Evidence{diagnosis.Fact(ref, "is a device plugin: it uses the kubelet's folder for them", diagnosis.That("spec.template.spec.volumes", "", diagnosis.Contains, pluginSockets))}
	if !usesSockets(a.Set) {
		all := a.Set.Spec.Template.Spec.Containers
		k := all[max(0, slices.IndexFunc(all, pluginsImage))]
		a.evidence = []diagnosis.Evidence{diagnosis.Fact(ref, "is a device plugin by its image", diagnosis.That("spec.template.spec.containers[name="+k.Name+"].image", "", diagnosis.Is, k.Image))}
	}
	var told diagnosis.Evidence
	for _, p := range c.Cluster.State.Pods {
		if by := metav1.GetControllerOfNoCopy(p); by == nil || by.UID != a.Set.UID || p.Namespace != a.Set.Namespace || view.Ended(p) {
			continue
		}
		a.Pods = append(a.Pods, p)
		says, evidence, is := stack.Of(c.Cluster).Trouble(p)
		if a.Pod == nil || is && a.Trouble == "" {
			a.Pod, a.Trouble, told = p, says, evidence
		}
	}
	switch {
	case a.Pod == nil:
	case a.Trouble != "":
		a.evidence = append(a.evidence, told)
	default:
		a.evidence = append(a.evidence, diagnosis.Fact(view.PodRef(a.Pod), "is Ready on "+a.Pod.Spec.NodeName, diagnosis.That("status.conditions[type=Ready].status", "", diagnosis.Is, "True"), diagnosis.That("spec.nodeName", "", diagnosis.Is, a.Pod.Spec.NodeName)))
	}
}

// Name is that of the DaemonSet.
func (a *Announcer) Name() string { return a.Set.Namespace + "/" + a.Set.Name }

// Says is how far it has come.
func (a *Announcer) Says() string {
	name := "the device plugin " + a.Name() + ", which is for it by its name, "
	switch {
	case a.Pod == nil:
		return name + "has no pod"
	case a.Trouble != "":
		return fmt.Sprintf("%sdoes not work: %s (%s)", name, a.Trouble, a.Pod.Name)
	}
	return name + "runs on " + a.Pod.Spec.NodeName + " and has none to give there"
}

// pluginImage is in the names of the images of device plugins.
const pluginImage = "device-plugin"

func isPlugin(d *appsv1.DaemonSet) bool {
	return usesSockets(d) || slices.ContainsFunc(d.Spec.Template.Spec.Containers, pluginsImage)
}
func pluginsImage(k corev1.Container) bool { return strings.Contains(path.Base(k.Image), pluginImage) }

func usesSockets(d *appsv1.DaemonSet) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.HostPath != nil && strings.HasSuffix(path.Clean(v.HostPath.Path), pluginSockets)
	})
}

// speaksOf says whether a DaemonSet's name, or an image of it, has a word of a resource's name in it: 1 for one of the
// resource itself, 2 for one of who names it (its domain), 0 for none.
func speaksOf(d *appsv1.DaemonSet, name corev1.ResourceName) int {
	domain, own, _ := strings.Cut(string(name), "/")
	texts := []string{strings.ToLower(d.Name)}
	for _, k := range d.Spec.Template.Spec.Containers {
		texts = append(texts, strings.ToLower(path.Base(k.Image)), strings.ToLower(path.Base(path.Dir(k.Image))))
	}
	for i, of := range []string{own, domain} {
		for _, word := range strings.FieldsFunc(strings.ToLower(of), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if len(word) >= leastWord && !slices.Contains(sayNothing, word) && slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, word) }) {
				return i + 1
			}
		}
	}
	return 0
}

// byDomain is what speaksOf says where a DaemonSet speaks of no more than the resource's domain.
const byDomain = 2

// leastWord is how long a word is that can tell one device from another.
const leastWord = 4

// sayNothing are words of resources' names that stand in many a plugin's name.
var sayNothing = []string{"device", "devices", "plugin", "shared", "amazon", "kubernetes", "google", "node", "cloud"}
