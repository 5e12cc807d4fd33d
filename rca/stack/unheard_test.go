package stack

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// strays gives a DaemonSet's pods another folder than the kubelet's for device plugins.
func strays(d *appsv1.DaemonSet, folder string) {
	spec := &d.Spec.Template.Spec
	spec.Volumes = []corev1.Volume{{Name: "sockets", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}}}}
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "sockets", MountPath: parts.Sockets}}
}

// A device plugin that announces GPUs where no kubelet listens is told by its DaemonSet, on a machine that is known
// to have GPUs and on one of which nothing is known but that a person has put the plugin there.
func TestAPluginThatNoKubeletHears(t *testing.T) {
	const astray = "/var/lib/rancher/k3s/agent/kubelet/device-plugins"
	const where = "its device plugin runs and announces them in " + astray + ", where no kubelet listens: it does in " + parts.Sockets
	for name, k := range map[string]struct {
		folder   string
		told     bool
		want     string
		unproven bool
	}{
		"a machine with GPUs":        {astray, true, "has GPUs and offers none: " + where, false},
		"a machine of nothing known": {astray, false, "may have GPUs that nobody hears of: " + where, true},
		"the kubelet's folder":       {parts.Sockets, true, "has GPUs and offers none, though its device plugin runs", false},
	} {
		l := newLab()
		strays(l.sets[parts.Plugin], k.folder)
		if k.told {
			l.gpuNode("n")
		} else {
			l.chartNode(map[string]string{})
			l.DaemonSets = []*appsv1.DaemonSet{l.sets[parts.Plugin]}
		}
		l.pod(parts.Plugin, "n", nil)
		if k.told {
			l.pod(parts.Driver, "n", nil)
			l.pod(parts.Toolkit, "n", nil)
		}
		w := view.New(l.State)
		s, n := Of(w), w.Nodes["n"]
		f := s.On(n)
		if !k.told {
			f = s.Untold(n)
		}
		if f == nil || f.Says != k.want || f.Cause != diagnosis.DevicePluginDown {
			t.Errorf("%s: %+v", name, f)
			continue
		}
		if k.folder != parts.Sockets && (f.Certainty != diagnosis.Likely || (f.Mends[0].Unproven != "") != k.unproven || !strings.Contains(f.Mends[0].Commands[0], `{"name":"sockets","hostPath":{"path":"/var/lib/kubelet/device-plugins"}}`)) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Another maker's plugin is heard in the same folder.
func TestAPluginOfAMDsThatNoKubeletHears(t *testing.T) {
	l := newLab()
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "amd", UID: "amd"}}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "dp", Image: "rocm/k8s-device-plugin"}}
	strays(ds, "/elsewhere")
	l.sets[parts.AMDPlugin], l.DaemonSets = ds, append(l.DaemonSets, ds)
	l.chartNode(map[string]string{"feature.node.kubernetes.io/amd-gpu": "true"})
	l.pod(parts.AMDPlugin, "n", nil)
	w := view.New(l.State)
	if f := Of(w).OfMaker(w.Nodes["n"], "amd.com/gpu"); f == nil || !strings.Contains(f.Says, "announces them in /elsewhere") || f.Mends[0].Unproven == "" {
		t.Errorf("%+v", f)
	}
}

// What works on another node is told beside a plugin that does not here: it is this machine's.
func TestAPluginThatWorksElsewhere(t *testing.T) {
	l := newLab()
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "amd", UID: "amd"}}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "dp", Image: "rocm/k8s-device-plugin"}}
	l.sets[parts.AMDPlugin], l.DaemonSets = ds, append(l.DaemonSets, ds)
	sign := map[string]string{"feature.node.kubernetes.io/amd-gpu": "true"}
	l.chartNode(sign)
	l.chartNode(sign).Name = "m"
	l.pod(parts.AMDPlugin, "n", crashes("denied"))
	l.pod(parts.AMDPlugin, "m", nil)
	for offered, want := range map[int64]string{0: "denied)", 2: "denied), while it works on m"} {
		l.Nodes[len(l.Nodes)-1].Status.Allocatable = corev1.ResourceList{"amd.com/gpu": *quantity(offered)}
		w := view.New(l.State)
		if f := Of(w).OfMaker(w.Nodes["n"], "amd.com/gpu"); f == nil || !strings.HasSuffix(f.Says, want) {
			t.Errorf("%d offered: %+v", offered, f)
		}
	}
}
