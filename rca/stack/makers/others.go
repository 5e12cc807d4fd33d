package makers

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
	"github.com/unpend/unpend/rca/view"
)

// neuron is AWS' Inferentia and Trainium (awsdocs-neuron, "Deploy Neuron Device Plugin"): whole devices and their cores.
var neuron = &Maker{
	Whose: "AWS Neuron's", Has: "has devices of AWS Neuron's", Plug: "AWS Neuron's device plugin", Plugin: parts.NeuronPlugin,
	Announces: func(r corev1.ResourceName) bool { return strings.HasPrefix(string(r), "aws.amazon.com/neuron") },
	Several:   true,
	Labels:    []string{"karpenter.k8s.aws/instance-accelerator-manufacturer=aws"},
	Machines:  regexp.MustCompile(`^(inf|trn)[0-9]\w*\.`),
	Behind:    "the machine's image has no driver of Neuron's", Image: "neuron-device-plugin", Driver: "neuron; EKS' images AL2023_x86_64_NEURON have it, AL2_x86_64_GPU had", Shows: "ls /sys/module/neuron /dev/neuron0",
	Steps: []string{"have an image on the machines that has Neuron's driver: EKS' AL2023_x86_64_NEURON, say", "install Neuron's device plugin"},
	Install: func(string) []string {
		return []string{"helm upgrade --install neuron-helm-chart oci://public.ecr.aws/neuron/neuron-helm-chart --set npd.enabled=false"}
	},
	Look: func(n *view.Node) []string {
		group := n.Labels["eks.amazonaws.com/nodegroup"]
		if group == "" {
			return nil
		}
		return []string{"aws eks describe-nodegroup --cluster-name CLUSTER --nodegroup-name " + group + " --query nodegroup.amiType  # another type is for another group: a group keeps its own"}
	},
	other: "devices",
}

// gaudi is Intel's Gaudi (docs.habana.ai, "Intel Gaudi Device Plugin for Kubernetes").
var gaudi = &Maker{
	Whose: "Gaudi's", Has: "has accelerators of Gaudi's", Plug: "Gaudi's device plugin", Plugin: parts.GaudiPlugin,
	Announces: func(r corev1.ResourceName) bool { return r == "habana.ai/gaudi" },
	// Of node feature discovery, by the class of the device, and of Gaudi's own feature discovery.
	Labels:   []string{"feature.node.kubernetes.io/pci-1200_1da3.present", "karpenter.k8s.aws/instance-accelerator-manufacturer=habana"},
	Written:  []string{"habana.ai/hpu"},
	Machines: regexp.MustCompile(`^dl1\.`),
	Behind:   "the driver (habanalabs) serves no card", Image: "habana", Driver: "habanalabs", Shows: "ls /sys/module/habanalabs /dev/accel",
	Steps: []string{"see that the machine's driver shows the card: modprobe habanalabs", "install Gaudi's device plugin, or its base operator"},
	Install: func(string) []string {
		return []string{"kubectl create -f https://vault.habana.ai/artifactory/docker-k8s-device-plugin/habana-k8s-device-plugin.yaml"}
	},
	other: "accelerators",
}
