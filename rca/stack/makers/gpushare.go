package makers

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
)

// gpushare shares NVIDIA's GPUs by their memory (AliyunContainerService/gpushare-device-plugin, and its scheduler's extender).
var gpushare = &Maker{
	Whose: "gpushare's", Has: "has GPUs that gpushare is to share", Plug: "gpushare's device plugin", Plugin: parts.SharePlugin,
	Announces: func(r corev1.ResourceName) bool { return strings.HasPrefix(string(r), "aliyun.com/gpu-") },
	Labels:    []string{"gpushare", "cgpu"},
	Behind:    "the driver serves no card, or NVIDIA's is not the runtime by default", Image: "gpushare-plugin", Driver: "nvidia", Shows: "nvidia-smi",
	Steps: []string{"have NVIDIA's driver and runtime on the machine, as the runtime by default", "label the node gpushare=true, and install gpushare's device plugin and its scheduler's extender"},
	Install: func(node string) []string {
		return []string{"kubectl label node " + node + " gpushare=true", "kubectl create -f https://raw.githubusercontent.com/AliyunContainerService/gpushare-device-plugin/master/device-plugin-rbac.yaml -f https://raw.githubusercontent.com/AliyunContainerService/gpushare-device-plugin/master/device-plugin-ds.yaml"}
	},
}
