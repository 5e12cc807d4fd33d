package scaling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	in     = corev1.NodeSelectorOpIn
	notIn  = corev1.NodeSelectorOpNotIn
	exists = corev1.NodeSelectorOpExists
	absent = corev1.NodeSelectorOpDoesNotExist
)

func needs(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

// asking is a pod whose affinity has a term for each of the requirements.
func asking(terms ...corev1.NodeSelectorRequirement) *corev1.Pod {
	selector := &corev1.NodeSelector{}
	for _, t := range terms {
		selector.NodeSelectorTerms = append(selector.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{t}})
	}
	return &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: selector}}}}
}

// What pod and pool want of one label has to leave a value that both accept; of a label that
// the pool does not speak of, only what the cloud sets is left open.
func TestLabelsThatPodAndPoolWant(t *testing.T) {
	pool := []corev1.NodeSelectorRequirement{needs("tier", in, "a", "b"), needs("old", absent), needs("zone", notIn, "x", "y"), needs("any", exists)}
	labels := map[string]string{"team": "ml"}
	for name, k := range map[string]struct {
		want corev1.NodeSelectorRequirement
		fits bool
	}{
		"one of the pool's values":            {needs("tier", in, "b", "c"), true},
		"none of the pool's values":           {needs("tier", in, "c", "d"), false},
		"all of the pool's values are out":    {needs("tier", notIn, "a", "b"), false},
		"one of the pool's values is left":    {needs("tier", notIn, "a"), true},
		"the pool's machines have it":         {needs("tier", exists), true},
		"the pool's machines all have it":     {needs("tier", absent), false},
		"the pool's machines have some value": {needs("any", absent), false},
		"some value may be this one":          {needs("any", in, "v"), true},
		"the pool has none of it":             {needs("old", exists), false},
		"the pool has no value of it":         {needs("old", in, "v"), false},
		"neither wants it":                    {needs("old", absent), true},
		"the pool has none, so not this":      {needs("old", notIn, "v"), true},
		"only what the pool excludes":         {needs("zone", in, "x", "y"), false},
		"one that the pool does not exclude":  {needs("zone", in, "x", "z"), true},
		"both exclude":                        {needs("zone", notIn, "x"), true},
		"a pool that excludes may have none":  {needs("zone", absent), true},
		"the template's label":                {needs("team", in, "hr", "ml"), true},
		"another value than the template's":   {needs("team", in, "hr"), false},
		"not the template's value":            {needs("team", notIn, "ml"), false},
		"other than the template's value":     {needs("team", notIn, "hr"), true},
		"the template has it":                 {needs("team", exists), true},
		"the template has it, unwanted":       {needs("team", absent), false},
		"nobody speaks of it":                 {needs("color", in, "red"), false},
		"nobody speaks of it at all":          {needs("color", exists), false},
		"nobody speaks of it, nor wants it":   {needs("color", absent), true},
		"nobody speaks of it, not this":       {needs("color", notIn, "red"), true},
		"numbers are not compared":            {needs("tier", corev1.NodeSelectorOpGt, "4"), true},
		"Karpenter's own":                     {needs("karpenter.sh/capacity-type", in, "spot"), true},
		"a provider's":                        {needs("karpenter.k8s.aws/instance-gpu-name", exists), true},
		"the zone, by the cloud":              {needs(corev1.LabelTopologyZone, in, "eu-1a"), true},
		"the zone of a cloud's own disks":     {needs("topology.ebs.csi.aws.com/zone", in, "eu-1a"), true},
		"the architecture":                    {needs(corev1.LabelArchStable, in, "arm64"), true},
		"the instance type":                   {needs(corev1.LabelInstanceTypeStable, in, "p4d.24xlarge"), true},
		"Azure's":                             {needs("kubernetes.azure.com/mode", exists), true},
		"Auto Mode's":                         {needs("eks.amazonaws.com/instance-gpu-name", in, "l4"), true},
		"what only sounds like the cloud's":   {needs("node.example.com/type", exists), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Claim{Requirements: pool, Labels: labels}
			if got := c.Suits(asking(k.want)); got != k.fits {
				t.Errorf("%v", got)
			}
		})
	}
}

// The node selector is held in full; of affinity, all of one term.
func TestSelectorAndAffinityTogether(t *testing.T) {
	c := &Claim{Labels: map[string]string{"team": "ml", "tier": "a"}}
	of := func(p *corev1.Pod, selector map[string]string) *corev1.Pod {
		p.Spec.NodeSelector = selector
		return p
	}
	two := asking(needs("team", in, "ml"))
	term := &two.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	term.MatchExpressions = append(term.MatchExpressions, needs("tier", in, "b"))
	preferred := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{}}}}}}
	for name, k := range map[string]struct {
		pod  *corev1.Pod
		fits bool
	}{
		"nothing is asked":              {&corev1.Pod{}, true},
		"the selector fits":             {of(&corev1.Pod{}, map[string]string{"team": "ml", "tier": "a"}), true},
		"half of the selector fits":     {of(&corev1.Pod{}, map[string]string{"team": "ml", "tier": "b"}), false},
		"a term fits":                   {asking(needs("team", in, "hr"), needs("tier", in, "a")), true},
		"no term fits":                  {asking(needs("team", in, "hr"), needs("tier", in, "b")), false},
		"half of the only term fits":    {two, false},
		"the selector and no term":      {of(asking(needs("tier", in, "b")), map[string]string{"team": "ml"}), false},
		"a term and not the selector":   {of(asking(needs("tier", in, "a")), map[string]string{"team": "hr"}), false},
		"what is preferred is not held": {preferred, true},
		"only pods are asked for":       {&corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.Suits(k.pod); got != k.fits {
				t.Errorf("%v", got)
			}
		})
	}
}

// A machine's taints have to be tolerated, all of them; a preference keeps nobody, and what
// the cluster's controllers set with its state goes with that.
func TestTaintsOfMachines(t *testing.T) {
	gpu, team := corev1.Taint{Key: gpuResource, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: "team", Value: "ml", Effect: corev1.TaintEffectNoExecute}
	mild := corev1.Taint{Key: "team", Effect: corev1.TaintEffectPreferNoSchedule}
	passing := corev1.Taint{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: gpuResource, Operator: corev1.TolerationOpExists}}}}
	for name, k := range map[string]struct {
		taints []corev1.Taint
		fits   bool
	}{
		"none":                     {nil, true},
		"tolerated":                {[]corev1.Taint{gpu}, true},
		"one is not":               {[]corev1.Taint{gpu, team}, false},
		"a preference":             {[]corev1.Taint{mild}, true},
		"of the node's state":      {[]corev1.Taint{passing}, true},
		"behind the node's states": {[]corev1.Taint{passing, mild, team}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Tolerates(pod, k.taints); got != k.fits {
				t.Errorf("%v", got)
			}
			if got := (&Claim{Taints: k.taints}).Suits(pod); got != k.fits {
				t.Errorf("a claim: %v", got)
			}
			if got := (&Pool{Taints: k.taints, Limits: limitOf("nvidia.com/gpu", "1")}).Suits(pod); (got == Yes) != k.fits || (got == No) == k.fits {
				t.Errorf("a pool: %v", got)
			}
		})
	}
}

func limitOf(name corev1.ResourceName, n string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(n)}
}

// A pool is for GPUs where it counts, uses or guards them, or its machines all have them; it is
// not where none has, and where nothing tells it may be.
func TestPoolsOfGPUs(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}}
	of := func(all ...corev1.NodeSelectorRequirement) Pool { return Pool{Requirements: all} }
	const aws, azure, family, kind = "karpenter.k8s.aws/", "karpenter.azure.com/", "karpenter.k8s.aws/instance-family", corev1.LabelInstanceTypeStable
	for name, k := range map[string]struct {
		pool Pool
		fit  Fit
	}{
		"nothing tells":              {Pool{}, Maybe},
		"a limit of GPUs":            {Pool{Limits: limitOf("nvidia.com/gpu", "0")}, Yes},
		"a limit of CPU":             {Pool{Limits: limitOf("cpu", "8")}, Maybe},
		"GPUs in use":                {Pool{Used: limitOf("nvidia.com/gpu", "1")}, Yes},
		"none in use":                {Pool{Used: limitOf("nvidia.com/gpu", "0")}, Maybe},
		"a taint for GPUs":           {Pool{Taints: []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}}}, Yes},
		"another taint":              {Pool{Taints: []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}}, Maybe},
		"a GPU's name":               {of(needs(aws+"instance-gpu-name", in, "t4")), Yes},
		"any GPU":                    {of(needs(azure+"sku-gpu-name", exists)), Yes},
		"more than no GPU":           {of(needs(aws+"instance-gpu-count", corev1.NodeSelectorOpGt, "0")), Yes},
		"no GPU":                     {of(needs(aws+"instance-gpu-count", absent)), No},
		"a name that is not wanted":  {of(needs(aws+"instance-gpu-name", notIn, "t4")), Maybe},
		"NVIDIA's":                   {of(needs(aws+"instance-gpu-manufacturer", in, "nvidia")), Yes},
		"AMD's":                      {of(needs(aws+"instance-gpu-manufacturer", in, "amd")), No},
		"categories with GPUs":       {of(needs(aws+"instance-category", in, "g", "p", "gr")), Yes},
		"some of them":               {of(needs(aws+"instance-category", in, "c", "g")), Maybe},
		"categories without":         {of(needs(aws+"instance-category", in, "c", "m")), No},
		"not categories without":     {of(needs(aws+"instance-category", notIn, "c", "m")), Maybe},
		"families":                   {of(needs(family, in, "g5", "g5g", "g7", "p4d", "p6-b200", "gr6", "a2")), Yes},
		"a family of AMD's":          {of(needs(family, in, "g4ad")), No},
		"a family without":           {of(needs(family, in, "c7g", "m5")), No},
		"types":                      {of(needs(kind, in, "g5g.xlarge", "a3-highgpu-8g", "Standard_NC24ads_A100_v4")), Yes},
		"types of AMD's":             {of(needs(kind, in, "g4ad.xlarge", "Standard_NV8as_v4", "Standard_ND96isr_MI300X_v5")), No},
		"a type of each":             {of(needs(kind, in, "m5.large", "p5.48xlarge")), Maybe},
		"Azure's family":             {of(needs(azure+"sku-family", in, "N")), Yes},
		"Azure's family without":     {of(needs(azure+"sku-family", in, "D")), No},
		"a family, and then no GPU":  {of(needs(family, in, "g5"), needs(aws+"instance-gpu-count", absent)), No},
		"no GPU, and then a family":  {of(needs(aws+"instance-gpu-count", absent), needs(family, in, "g5")), No},
		"a GPU, and then more words": {of(needs(aws+"instance-gpu-name", exists), needs(kind, in, "m5.large", "p5.48xlarge"), needs("a/b", in, "c")), Yes},
	} {
		t.Run(name, func(t *testing.T) {
			if got := k.pool.Suits(pod); got != k.fit {
				t.Errorf("%v, want %v", got, k.fit)
			}
		})
	}
	if got := (&Pool{Limits: limitOf("nvidia.com/gpu", "1"), Labels: map[string]string{"team": "ml"}}).Suits(asking(needs("team", in, "hr"))); got != No {
		t.Errorf("of GPUs, for others: %v", got)
	}
}

// A pod that selects, or in each term of its affinity wants, a label that Karpenter alone writes is meant for its nodes.
func TestWhoAsksForKarpentersNodes(t *testing.T) {
	term := func(key string, op corev1.NodeSelectorOperator) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}, {Key: key, Operator: op}}}
	}
	const its = "karpenter.k8s.aws/instance-gpu-name"
	for name, tc := range map[string]struct {
		selector map[string]string
		terms    []corev1.NodeSelectorTerm
		want     bool
	}{
		"nothing":           {nil, nil, false},
		"it selects":        {map[string]string{"a": "b", its: "l4"}, nil, true},
		"another label":     {map[string]string{"a": "b"}, nil, false},
		"each term":         {nil, []corev1.NodeSelectorTerm{term(its, corev1.NodeSelectorOpExists), term("karpenter.sh/nodepool", corev1.NodeSelectorOpIn)}, true},
		"one of the terms":  {nil, []corev1.NodeSelectorTerm{term(its, corev1.NodeSelectorOpExists), term("b", corev1.NodeSelectorOpIn)}, false},
		"it wants none":     {nil, []corev1.NodeSelectorTerm{term(its, corev1.NodeSelectorOpDoesNotExist)}, false},
		"it wants another":  {nil, []corev1.NodeSelectorTerm{term(its, corev1.NodeSelectorOpNotIn)}, false},
		"an empty affinity": {nil, []corev1.NodeSelectorTerm{}, false},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: tc.selector}}
		if tc.terms != nil {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: tc.terms}}}
		}
		if got := AsksKarpenter(p); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
