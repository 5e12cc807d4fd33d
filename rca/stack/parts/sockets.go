package parts

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Sockets is the folder in which the kubelet of a machine hears of device plugins, wherever else it keeps its
// own (k8s.io/kubelet, deviceplugin/v1beta1; k8s.io/kubernetes, cm/devicemanager).
const Sockets = "/var/lib/kubelet/device-plugins"

// Astray is the folder of the machine that pods of such a template are given for that one, where it is
// another: what is announced there no kubelet hears, unless it is the same folder by another name. Empty
// where it is the kubelet's own, or none is given.
func Astray(spec *corev1.PodSpec) (volume, folder string) {
	for _, k := range spec.Containers {
		for _, m := range k.VolumeMounts {
			if path.Clean(m.MountPath) != Sockets {
				continue
			}
			i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name && v.HostPath != nil })
			if i < 0 {
				continue
			}
			if at := spec.Volumes[i].HostPath.Path; path.Clean(at) != Sockets {
				return m.Name, at
			}
		}
	}
	return "", ""
}
