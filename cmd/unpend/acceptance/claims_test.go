package acceptance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unpend/unpend/testdata/oracle"
)

// The oracle sees that a cluster is another than the one that was told of: a value is changed
// in a scenario's dump, and what was said of the dump as it was no longer holds.
func TestChangedDumpContradicts(t *testing.T) {
	for scenario, tc := range map[string]struct{ was, is, want string }{
		"UntoleratedTaint":          {"value: present", "value: other", "spec.taints[key=nvidia.com/gpu,effect=NoSchedule,value=present] exists"},
		"NodeCordoned":              {"unschedulable: true", "unschedulable: false", "spec.unschedulable = true"},
		"MIGConfigFailed":           {"nvidia.com/mig.config.state: failed", "nvidia.com/mig.config.state: success", "metadata.labels[nvidia.com/mig.config.state] = failed"},
		"QuotaExceeded":             {"requests.nvidia.com/gpu: \"4\"", "requests.nvidia.com/gpu: \"9\"", "status.hard[requests.nvidia.com/gpu] = 4"},
		"AutoscalerLimit-karpenter": {"nvidia.com/gpu: '8'", "nvidia.com/gpu: '80'", "spec.limits[nvidia.com/gpu] = 8"},
		"DRAClassMissing":           {"kind: ResourceSlice", "kind: DeviceClass\nmetadata: {name: gpu-l4.nvidia.com}\n---\nkind: ResourceSlice", "DeviceClass/gpu-l4.nvidia.com  absent"},
	} {
		t.Run(scenario, func(t *testing.T) {
			folder, changed := filepath.Join(scenarios, scenario), t.TempDir()
			files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
			must(t, err)
			replaced := 0
			for _, f := range files {
				data, err := os.ReadFile(f)
				must(t, err)
				text := string(data)
				if filepath.Base(f) != "want.yaml" {
					replaced += strings.Count(text, tc.was)
					text = strings.ReplaceAll(text, tc.was, tc.is)
				}
				must(t, os.WriteFile(filepath.Join(changed, filepath.Base(f)), []byte(text), 0o600))
			}
			if replaced == 0 {
				t.Fatalf("no %q in %s", tc.was, scenario)
			}
			var against []string
			for dir, at := range map[string]*[]string{folder: {}, changed: &against} {
				dump, err := oracle.Read(dir)
				must(t, err)
				for _, said := range saidOf(t, folder) {
					denied, _ := dump.Held(said)
					*at = append(*at, denied...)
				}
				if dir == folder && len(*at) > 0 {
					t.Errorf("of the dump as it is: %q", *at)
				}
			}
			if text := strings.Join(against, "\n"); !strings.Contains(text, tc.want) {
				t.Errorf("%q, want %q in it", text, tc.want)
			}
		})
	}
}
