package edit

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// A patch of what a container asks has what is other, takes away what is gone, and does
// not speak of what stays.
func TestListsPatch(t *testing.T) {
	was := corev1.ResourceRequirements{Requests: rcatest.List("cpu", "2", "memory", "1Gi", "nvidia.com/gpu", "1"), Limits: rcatest.List("nvidia.com/gpu", "1")}
	is := corev1.ResourceRequirements{Requests: rcatest.List("cpu", "1", "memory", "1024Mi", string(mig1g), "1"), Limits: rcatest.List(string(mig1g), "1")}
	const want = `{"limits":{"nvidia.com/gpu":null,"nvidia.com/mig-1g.5gb":"1"},"requests":{"cpu":"1","nvidia.com/gpu":null,"nvidia.com/mig-1g.5gb":"1"}}`
	if got := asJSON(t, listsPatch(was, is)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := asJSON(t, listsPatch(was, was)); got != `{}` {
		t.Errorf("%s for what is the same", got)
	}
}

// What a container asks is changed alone in what the change is about; a limit is written
// where there is one, and of devices, which need one.
func TestContainersAreEdited(t *testing.T) {
	for name, tc := range map[string]struct {
		was  corev1.ResourceRequirements
		edit func(*corev1.ResourceRequirements)
		want string
	}{
		"no limit of CPU is made up":    {corev1.ResourceRequirements{Requests: rcatest.List("cpu", "4")}, AskAtMost(rcatest.List("cpu", "2")), `{"requests":{"cpu":"2"}}`},
		"a limit of CPU goes along":     {corev1.ResourceRequirements{Requests: rcatest.List("cpu", "4"), Limits: rcatest.List("cpu", "4", "memory", "1")}, AskAtMost(rcatest.List("cpu", "2")), `{"limits":{"cpu":"2","memory":"1"},"requests":{"cpu":"2"}}`},
		"devices need a limit":          {corev1.ResourceRequirements{Requests: rcatest.List("nvidia.com/gpu", "4")}, AskAtMost(rcatest.List("nvidia.com/gpu", "2")), `{"limits":{"nvidia.com/gpu":"2"},"requests":{"nvidia.com/gpu":"2"}}`},
		"a limit stands in":             {corev1.ResourceRequirements{Limits: rcatest.List("cpu", "4")}, AskAtMost(rcatest.List("cpu", "2")), `{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}`},
		"who asks no more keeps it":     {corev1.ResourceRequirements{Requests: rcatest.List("nvidia.com/gpu", "2")}, AskAtMost(rcatest.List("nvidia.com/gpu", "2")), `{"requests":{"nvidia.com/gpu":"2"}}`},
		"another maker's by its name":   {corev1.ResourceRequirements{Requests: rcatest.List("amd.com/gpu", "1"), Limits: rcatest.List("amd.com/gpu", "1")}, AskOther("amd.com/gpu", "amd.com/cpx_nps4"), `{"limits":{"amd.com/cpx_nps4":"1"},"requests":{"amd.com/cpx_nps4":"1"}}`},
		"another resource instead":      {corev1.ResourceRequirements{Limits: rcatest.List("nvidia.com/gpu", "2")}, AskOther(view.WholeGPU, mig1g), `{"limits":{"nvidia.com/mig-1g.5gb":"2"},"requests":{"nvidia.com/mig-1g.5gb":"2"}}`},
		"on top of what is asked of it": {corev1.ResourceRequirements{Limits: rcatest.List("nvidia.com/gpu", "2", string(mig1g), "1")}, AskOther(view.WholeGPU, mig1g), `{"limits":{"nvidia.com/mig-1g.5gb":"3"},"requests":{"nvidia.com/mig-1g.5gb":"3"}}`},
		"who asks none is left alone":   {corev1.ResourceRequirements{Limits: rcatest.List("cpu", "1", "nvidia.com/gpu", "0")}, AskOther(view.WholeGPU, mig1g), `{"limits":{"cpu":"1","nvidia.com/gpu":"0"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.edit(&tc.was); asJSON(t, tc.was) != tc.want {
				t.Errorf("%s, want %s", asJSON(t, tc.was), tc.want)
			}
		})
	}
}

const mig1g = corev1.ResourceName("nvidia.com/mig-1g.5gb")

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Of less CPU a pod is slower, of less than half of its memory or disk nobody knows whether it runs.
func TestHowMuchLessIsAsked(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList { return rcatest.List("cpu", cpu, "memory", memory) }
	for name, tc := range map[string]struct {
		asks   corev1.ResourceList
		cut    int64
		halves bool
	}{
		"half of the memory":          {list("4", "8Gi"), 500, false},
		"less than half of it":        {list("4", "8191Mi"), 501, true},
		"a quarter of the CPU":        {list("1", "16Gi"), 750, false},
		"what it does not ask at all": {rcatest.List("ephemeral-storage", "1Gi"), 0, false},
		"nothing":                     {nil, 0, false},
	} {
		var ch Change
		if ch.AsksLess(list("4", "16Gi"), tc.asks); ch.Cut != tc.cut || ch.Halves != tc.halves {
			t.Errorf("%s: %d, %v", name, ch.Cut, ch.Halves)
		}
	}
}
