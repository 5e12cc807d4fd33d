package scaling

import (
	"regexp"
	"strconv"
	"strings"
)

// gpusOfTypes are how many GPUs machines of a type have, of types whose name does not say it: EC2's by family and size
// (docs.aws.amazon.com/ec2, accelerated computing), and Azure's N series (learn.microsoft.com/azure/virtual-machines/sizes).
var gpusOfTypes = []struct {
	types *regexp.Regexp
	gpus  int64
}{
	{regexp.MustCompile(`^(p2\.16xlarge)$`), 16},
	{regexp.MustCompile(`^(p2\.8xlarge|p3\.16xlarge|p3dn\.24xlarge|p4de?\.24xlarge|p5(e|en)?\.48xlarge|g4dn\.metal|(g5|g6|g6e)\.48xlarge)$`), 8},
	{regexp.MustCompile(`^(p3\.8xlarge|g3\.16xlarge|g4dn\.12xlarge|(g5|g6|g6e)\.(12|24)xlarge)$`), 4},
	{regexp.MustCompile(`^g3\.8xlarge$`), 2},
	{regexp.MustCompile(`^Standard_ND(96a(ms)?(r|sr)(_A100)?_v4|96isr_H[12]00_v5)$`), 8},
	{regexp.MustCompile(`^Standard_N(C24r?|C24rs?_v[23]|C24s_v[23]|C64as_T4_v3|C96ads_A100_v4|V24|V48s_v3)$`), 4},
	{regexp.MustCompile(`^Standard_N(C12|C12s_v[23]|C48ads_A100_v4|C80adis_H100_v5|V12|V24s_v3)$`), 2},
}

// byName is how GCE's and Oracle's types with GPUs say how many: a2-highgpu-4g, BM.GPU.H100.8.
var byName = []*regexp.Regexp{regexp.MustCompile(`^a[234]x?-[a-z]+-(\d+)g`), regexp.MustCompile(`^(?:VM|BM)\.GPU\.[A-Z0-9]+\.(\d+)$`)}

// GPUsOf is how many GPUs a cloud's machines of an instance type have, where that is more than one and known; 0 for any other.
func GPUsOf(instanceType string) int64 {
	for _, k := range gpusOfTypes {
		if k.types.MatchString(instanceType) {
			return k.gpus
		}
	}
	for _, name := range byName {
		if m := name.FindStringSubmatch(instanceType); m != nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(m[1]), 10, 64); err == nil && n > 1 {
				return n
			}
		}
	}
	return 0
}
