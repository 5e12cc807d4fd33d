package acceptance

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

// fixOf is the fix of a kind that a dump is told.
func fixOf(t *testing.T, path string, kind diagnosis.FixKind) diagnosis.Fix {
	t.Helper()
	d := why(t, "-f", path)
	i := slices.IndexFunc(d.Fixes, func(f diagnosis.Fix) bool { return f.Kind == kind })
	if i < 0 {
		t.Fatalf("no %s among %d fixes", kind, len(d.Fixes))
	}
	return d.Fixes[i]
}

// What is done about a sick GPU is written out, with a ticket to copy, and is one action
// that relies on the cordon alone; nothing in it claims that the pod would run.
func TestQuarantineIsWrittenOut(t *testing.T) {
	f := fixOf(t, filepath.Join(scenarios, "GPUUnhealthy-all"), diagnosis.QuarantineGPU)
	commands := []string{
		"kubectl cordon gpu-1",
		"# Hardware ticket: GPU unhealthy on node gpu-1",
		"# GPU 0: NVIDIA A100-SXM4-40GB, GPU-gpu-1-0, driver 580.126.09, unhealthy",
		"# the device plugin offers 0 of 1 nvidia.com/gpu",
		"# attach, from the node: nvidia-smi -q; dmesg | grep -i xid; nvidia-bug-report.sh",
		"# reported at 2026-11-20 12:00 UTC",
	}
	steps := []string{"cordon gpu-1 (pods that run there keep running)", "write the hardware ticket's text into an Event of the node (file it yourself)", "uncordon gpu-1 once the GPU is mended"}
	if !slices.Equal(f.Commands, commands) || !slices.Equal(f.Steps, steps) {
		t.Errorf("steps %q\ncommands %q", f.Steps, f.Commands)
	}
	var note []string
	for _, c := range commands[1 : len(commands)-1] {
		note = append(note, strings.TrimPrefix(c, "# "))
	}
	action := diagnosis.Action{Verb: diagnosis.VerbCordon, Target: diagnosis.Target{Kind: "Node", Name: "gpu-1", UID: "7c2e4d10-0001-4000-8000-000000000001"},
		Relies: map[string]string{"unschedulable": "false"}, Note: strings.Join(note, "\n")}
	if !f.Automatic || len(f.Actions) != 1 || !reflect.DeepEqual(f.Actions[0], action) || f.Proof.Node != "" || !slices.Equal(f.Cost.Nodes, []string{"gpu-1"}) || !strings.Contains(f.Proof.Why, "schedules none") {
		t.Errorf("fix %+v", f)
	}
}

// MIG manager that is given back the layout that the GPUs have finds nothing to do, and
// starts what it had paused: nobody leaves. Where it does not, a person can.
func TestRevertStartsWhatIsPaused(t *testing.T) {
	dir := filepath.Join(scenarios, "MIGConfigStuck-six-minutes")
	f := fixOf(t, dir, diagnosis.RevertMIGConfig)
	if want := []string{
		"kubectl cordon gpu-1",
		"kubectl label node gpu-1 nvidia.com/mig.config=all-1g.5gb --overwrite",
		"kubectl uncordon gpu-1",
		"kubectl label node gpu-1 nvidia.com/gpu.deploy.device-plugin=true --overwrite  # if still paused once nvidia.com/mig.config.state is success",
	}; !slices.Equal(f.Commands, want) || !f.Automatic {
		t.Errorf("commands %q, automatic %t", f.Commands, f.Automatic)
	}
	relayout := &diagnosis.Relayout{Config: "all-1g.5gb", Layouts: map[int]map[string]int{0: {"1g.5gb": 7}}, GPUs: []int{}}
	if len(f.Actions) != 1 || f.Actions[0].Verb != diagnosis.VerbRelayout || !reflect.DeepEqual(f.Actions[0].Relayout, relayout) || f.Actions[0].Relies["mig"] != "all-2g.10gb pending mixed" {
		t.Errorf("actions %+v", f.Actions)
	}

	// An operation of ours has written down what was in force before it: who sees to
	// that goes back to it.
	text, err := os.ReadFile(filepath.Join(dir, "cluster.yaml"))
	must(t, err)
	marked := strings.Replace(string(text), "  name: gpu-1\n", "  name: gpu-1\n  annotations: {unpend.dev/operation: '{\"id\":\"1\",\"priorMigConfig\":\"all-balanced\"}'}\n", 1)
	f = fixOf(t, write(t, "cluster.yaml", marked), diagnosis.RevertMIGConfig)
	if f.Title != `take gpu-1 back to "all-balanced", as it was before unpend's operation` || f.Commands[0] != "kubectl label node gpu-1 nvidia.com/mig.config=all-balanced --overwrite" ||
		f.Automatic || f.Proof.Why != "by hand: an operation of unpend's holds the node until a person has seen to it" {
		t.Errorf("%s: %q, automatic %t, %s", f.Title, f.Commands, f.Automatic, f.Proof.Why)
	}
}

// Where nobody can tell which layout worked last, a person has to, and is told why.
func TestRevertToWhatIsNotKnown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(scenarios, "MIGConfigStuck-six-minutes", "cluster.yaml"))
	must(t, err)
	for why, edit := range map[string][2]string{
		"by hand: the layout that its GPUs have is no entry of its mig-parted config, and unpend has no record of the one before": {`    - {profile: "1g.5gb", id: 7, start: 6, size: 1, uuids: [MIG-gpu-1-0-7]}` + "\n", ""},
		`by hand: under strategy "single" what it advertises does not tell the layout`:                                            {"mig.strategy: mixed", "mig.strategy: single"},
	} {
		edited := strings.Replace(string(text), edit[0], edit[1], 1)
		if edited == string(text) {
			t.Fatalf("nothing is edited for %q", why)
		}
		if strings.Contains(why, "strategy") {
			edited = strings.ReplaceAll(edited, "nvidia.com/mig-1g.5gb:", "nvidia.com/gpu:")
			edited = strings.ReplaceAll(edited, "nvidia.com/mig-2g.10gb:", "nvidia.com/gpu:")
		}
		f := fixOf(t, write(t, "cluster.yaml", edited), diagnosis.RevertMIGConfig)
		if f.Proof.Why != why || f.Automatic || len(f.Actions) != 0 || !strings.Contains(f.Commands[0], "nvidia.com/mig.config=NAME") {
			t.Errorf("%q, automatic %t, %q", f.Proof.Why, f.Automatic, f.Commands)
		}
	}
}
