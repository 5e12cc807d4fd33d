package deploy_test

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
)

// An uninstall gives back every marked node first, and says so, where an executor marks
// nodes and nobody has said to leave them as they are.
func TestReleaseOnUninstall(t *testing.T) {
	for name, tc := range map[string]struct {
		with     values
		releases bool
	}{
		"approve":            {values{"mode": "approve"}, true},
		"approve, not asked": {values{"mode": "approve", "remediate": values{"releaseOnUninstall": false}}, false},
		"observe":            {values{}, false},
		"observe, asked":     {values{"remediate": values{"releaseOnUninstall": true}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var hooks []string
			for _, o := range objects(t, tc.with) {
				if when := o.GetAnnotations()["helm.sh/hook"]; when == "pre-delete" {
					hooks = append(hooks, o.GetKind()+" "+o.GetName())
				}
			}
			var want []string
			if tc.releases {
				want = []string{"Job unpend-executor-release"}
				command := one[batchv1.Job](t, objects(t, tc.with), "Job").Spec.Template.Spec.Containers[0].Args
				if len(command) < 2 || command[0] != "release" || !slices.Contains(command, "--all") || !slices.Contains(command, "--yes") || !slices.Contains(command, "--parked=false") {
					t.Errorf("it runs %q", command)
				}
			}
			if !slices.Equal(hooks, want) {
				t.Errorf("before it deletes it makes %q, want %q", hooks, want)
			}
			files, err := render(t, tc.with)
			if err != nil {
				t.Fatal(err)
			}
			if says := strings.Contains(files["unpend/templates/NOTES.txt"], "first gives back every node"); says != tc.releases {
				t.Errorf("the notes say so: %v", says)
			}
		})
	}
}
