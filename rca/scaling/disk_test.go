package scaling

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The disk for pods' files is that of the image's family, as large as the class says, else 20Gi; where the
// machine's own disks are taken, or nobody knows the family, the class does not decide.
func TestDisksOfNodeClasses(t *testing.T) {
	const own = "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 50Gi}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 70Gi}}]"
	for name, k := range map[string]struct{ kind, spec, disk, device string }{
		"it says nothing":         {"EC2NodeClass", "amiFamily: AL2023", "20Gi", "/dev/xvda"},
		"by its alias":            {"EC2NodeClass", "amiSelectorTerms: [{alias: bottlerocket@latest}]", "20Gi", "/dev/xvdb"},
		"the family before it":    {"EC2NodeClass", "{amiFamily: AL2, amiSelectorTerms: [{alias: bottlerocket@latest}]}", "20Gi", "/dev/xvda"},
		"it says how large":       {"EC2NodeClass", "{amiFamily: AL2023, " + own + "}", "50Gi said", "/dev/xvda"},
		"of the other device":     {"EC2NodeClass", "{amiFamily: Bottlerocket, " + own + "}", "70Gi said", "/dev/xvdb"},
		"of another device alone": {"EC2NodeClass", "{amiFamily: AL2, blockDeviceMappings: [{deviceName: /dev/sdz, ebs: {volumeSize: 50Gi}}]}", "20Gi", "/dev/xvda"},
		"of no size":              {"EC2NodeClass", "{amiFamily: AL2, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {encrypted: true}}]}", "20Gi", "/dev/xvda"},
		"of the root":             {"EC2NodeClass", "{amiFamily: AL2, blockDeviceMappings: [{deviceName: /dev/sdz, rootVolume: true, ebs: {volumeSize: 90Gi}}, {deviceName: /dev/xvda, ebs: {volumeSize: 50Gi}}]}", "90Gi said", "/dev/xvda"},
		"the machines' own":       {"EC2NodeClass", "{amiFamily: AL2023, instanceStorePolicy: RAID0}", "0", ""},
		"an image of one's own":   {"EC2NodeClass", "amiFamily: Custom", "0", ""},
		"another cloud's":         {"AKSNodeClass", "amiFamily: AL2023", "0", ""},
	} {
		spec := map[string]any{}
		if err := yaml.Unmarshal([]byte(k.spec), &spec); err != nil {
			t.Fatal(err)
		}
		c := Class{Kind: k.kind}
		c.read(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
		disk := c.Disk.String()
		if c.DiskSaid {
			disk += " said"
		}
		if disk != k.disk || c.Device != k.device {
			t.Errorf("%s: %s of %q", name, disk, c.Device)
		}
	}
}

// Of a disk a tenth is kept free and 1Gi reserved, unless the class says itself what is.
func TestWhatADiskHolds(t *testing.T) {
	for name, k := range map[string]struct {
		spec, asked string
		want        bool
	}{
		"all but what is reserved": {"amiFamily: AL2", "17Gi", true},
		"a little more":            {"amiFamily: AL2", "17825793Ki", false},
		"by its own reserve":       {"{amiFamily: AL2, kubelet: {kubeReserved: {cpu: 1}}}", "20Gi", true},
		"by its own eviction":      {"{amiFamily: AL2, kubelet: {evictionHard: {nodefs.available: 1%}}}", "20Gi", true},
		"by the system's":          {"{amiFamily: AL2, kubelet: {systemReserved: {cpu: 1}}}", "20Gi", true},
		"more than there is":       {"{amiFamily: AL2, kubelet: {systemReserved: {cpu: 1}}}", "20971521Ki", false},
		"another word of kubelet":  {"{amiFamily: AL2, kubelet: {maxPods: 8}}", "18Gi", false},
	} {
		spec := map[string]any{}
		if err := yaml.Unmarshal([]byte(k.spec), &spec); err != nil {
			t.Fatal(err)
		}
		c := Class{Kind: "EC2NodeClass"}
		c.read(&unstructured.Unstructured{Object: map[string]any{"spec": spec}})
		if got := c.DiskHolds(resource.MustParse(k.asked)); got != k.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The role of a class's machines is what it names for them.
func TestRolesOfNodeClasses(t *testing.T) {
	for want, spec := range map[string]map[string]any{"r": {"role": "r", "instanceProfile": "p"}, "p": {"instanceProfile": "p"}, "": {}} {
		c := Class{}
		if c.read(&unstructured.Unstructured{Object: map[string]any{"spec": spec}}); c.Role != want {
			t.Errorf("%v: %q", spec, c.Role)
		}
	}
}

// Oracle's shapes are named by their GPUs, and what it has none of in words of its own.
func TestOraclesWords(t *testing.T) {
	for shape, want := range map[string]bool{"VM.GPU.A10.2": true, "BM.GPU.H100.8": true, "BM.GPU4.8": true, "BM.GPU.MI300X.8": false, "VM.Standard.E5.Flex": false} {
		if HasNVIDIA(shape) != want {
			t.Errorf("%s: %v", shape, !want)
		}
	}
	if all := Codes("InternalError", "Out of host capacity."); Names(all) != "Out of host capacity" || !Has(all, Stockout) {
		t.Errorf("%v", all)
	}
	if all := Codes("LimitExceeded"); !Has(all, Quota) {
		t.Errorf("%v", all)
	}
}
