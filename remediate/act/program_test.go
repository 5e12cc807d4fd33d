package act

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

var (
	node1  = diagnosis.Target{Kind: "Node", Name: "gpu-1", UID: "n1"}
	webPod = diagnosis.Target{Kind: "Pod", Namespace: "ml", Name: "web-1", UID: "w1"}
	train  = diagnosis.Target{Kind: "Job", Namespace: "ml", Name: "training", UID: "t"}
	deploy = diagnosis.Target{Kind: "Deployment", Namespace: "ml", Name: "api", UID: "d"}
	mig    = diagnosis.Target{Kind: "ConfigMap", Namespace: "gpu-operator", Name: "mig", UID: "m"}
	again  = diagnosis.Action{Verb: diagnosis.VerbRelayout, Target: node1, Relayout: &diagnosis.Relayout{Config: "unpend-1", First: "all-1g.5gb", ConfigMap: &mig, Victims: []diagnosis.Target{webPod}}}
	plugin = diagnosis.Action{Verb: diagnosis.VerbEvict, Target: webPod, Relies: map[string]string{"node": "gpu-1", diagnosis.RemadeBy: "plugin"}}
)

func ids(steps []journal.Step) []string {
	var out []string
	for _, s := range steps {
		id := string(s.ID)
		if s.Parks {
			id += " (parks)"
		}
		out = append(out, id)
	}
	return out
}

// The names of steps stand in the journals of plans under way: another version goes on with
// them. Changed here, they are changed for those plans.
func TestNamesOfSteps(t *testing.T) {
	for name, tc := range map[string]struct {
		actions     []diagnosis.Action
		locks, dry  bool
		there, back []string
	}{
		"evict":    {[]diagnosis.Action{{Verb: diagnosis.VerbEvict, Target: webPod}}, true, false, []string{"0/evict/ml/web-1", "run"}, nil},
		"restart":  {[]diagnosis.Action{plugin}, true, false, []string{"0/evict/ml/web-1", "0/registered", "run"}, nil},
		"uncordon": {[]diagnosis.Action{{Verb: diagnosis.VerbUncordon, Target: node1}}, true, false, []string{"0/uncordon//gpu-1", "run"}, nil},
		"patch":    {[]diagnosis.Action{{Verb: diagnosis.VerbPatch, Target: deploy}}, true, false, []string{"0/patch/ml/api", "run"}, nil},
		"recreate": {[]diagnosis.Action{{Verb: diagnosis.VerbRecreate, Target: train}}, true, false, []string{"0/recreate/ml/training", "run"}, []string{"undo/0/recreate"}},
		"cordon":   {[]diagnosis.Action{{Verb: diagnosis.VerbCordon, Target: node1}}, true, false, []string{"0/lock", "0/cordon", "0/ticket", "0/closed", "0/unlock", "run"}, []string{"undo/0/release", "undo/0/unlock"}},
		"relayout": {[]diagnosis.Action{again}, true, false,
			[]string{"0/lock", "0/cordon", "0/evict/ml/web-1", "0/empty", "0/entry", "0/first", "0/config", "0/manager", "0/release", "0/unlock", "run"},
			[]string{"undo/0/config (parks)", "undo/0/manager (parks)", "undo/0/entry", "undo/0/release (parks)", "undo/0/unlock", "undo/0/park", "undo/0/unlock"}},
		"relayout, to an entry that is there": {[]diagnosis.Action{{Verb: diagnosis.VerbRelayout, Target: node1, Relayout: &diagnosis.Relayout{Config: "all-1g.5gb"}}}, false, false,
			[]string{"0/cordon", "0/empty", "0/config", "0/manager", "0/release", "run"}, []string{"undo/0/config (parks)", "undo/0/manager (parks)", "undo/0/release (parks)", "undo/0/park"}},
		"a dry run": {[]diagnosis.Action{{Verb: diagnosis.VerbCordon, Target: node1}}, true, true, []string{"0/lock", "0/cordon", "0/ticket", "0/closed", "0/unlock", "run"}, []string{"undo/0/release", "undo/0/unlock"}},
		"several": {[]diagnosis.Action{{Verb: diagnosis.VerbUncordon, Target: node1}, {Verb: diagnosis.VerbPatch, Target: deploy}}, false, false,
			[]string{"0/uncordon//gpu-1", "1/patch/ml/api", "run"}, nil},
		"in the order of the cordon": {[]diagnosis.Action{{Verb: diagnosis.VerbUncordon, Target: node1}, {Verb: diagnosis.VerbRelayout, Target: node1, Relayout: &diagnosis.Relayout{Config: "all-1g.5gb"}}}, false, false,
			[]string{"0/cordon", "0/empty", "0/config", "0/manager", "0/release", "1/uncordon//gpu-1", "run"}, []string{"undo/0/config (parks)", "undo/0/manager (parks)", "undo/0/release (parks)", "undo/0/park"}},
		"of no version":             {[]diagnosis.Action{{Verb: "burn", Target: node1}}, false, false, []string{"0/burn//gpu-1", "run"}, nil},
		"a layout that says none":   {[]diagnosis.Action{{Verb: diagnosis.VerbRelayout, Target: node1}}, false, false, []string{"0/relayout//gpu-1", "run"}, nil},
		"an eviction with a layout": {[]diagnosis.Action{{Verb: diagnosis.VerbEvict, Target: webPod, Relayout: &diagnosis.Relayout{}}}, false, false, []string{"0/evict/ml/web-1", "run"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := memory()
			if d.DryRun = tc.dry; tc.locks {
				d.Locks = "unpend"
			}
			p := New(d, this(tc.actions...))
			if diff := cmp.Diff(tc.there, ids(p.Steps())); diff != "" {
				t.Error("there: " + diff)
			}
			if diff := cmp.Diff(append([]string{"undo/nomination"}, tc.back...), ids(p.EveryWayBack())); diff != "" {
				t.Error("back: " + diff)
			}
		})
	}
}

// What this version does not know it refuses, and writes nothing.
func TestUnknownVerbIsRefused(t *testing.T) {
	for _, a := range []diagnosis.Action{{Verb: "burn", Target: node1}, {Verb: diagnosis.VerbRelayout, Target: node1}, {Verb: diagnosis.VerbEvict, Target: webPod, Relayout: &diagnosis.Relayout{}}} {
		_, err := New(memory(), this(a)).Steps()[0].Try(t.Context(), line())
		if want := `refused: action "` + a.Verb + `" is not known`; !errors.Is(err, plan.ErrRefused) || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Every verb that a fix can name is carried out here, and no other.
func TestVerbsAreThoseOfActions(t *testing.T) {
	var here []string
	for name := range verbs {
		here = append(here, name)
	}
	slices.Sort(here)
	if diff := cmp.Diff(diagnosis.Verbs(), here); diff != "" {
		t.Error(diff)
	}
}

// Only what was begun is taken back, the last first; once a node is to be parked, only that
// is seen to, and its lock.
func TestWayBackIsOfWhatWasBegun(t *testing.T) {
	actions := []diagnosis.Action{{Verb: diagnosis.VerbRecreate, Target: train}, {Verb: diagnosis.VerbRelayout, Target: node1, Relayout: &diagnosis.Relayout{Config: "all-1g.5gb"}}, {Verb: diagnosis.VerbPatch, Target: deploy}}
	for name, tc := range map[string]struct {
		begun   []v1alpha1.StepID
		parking v1alpha1.StepID
		want    []string
	}{
		"nothing":              {nil, "", []string{"undo/nomination"}},
		"the first":            {[]v1alpha1.StepID{"0/recreate/ml/training"}, "", []string{"undo/nomination", "undo/0/recreate"}},
		"both":                 {[]v1alpha1.StepID{"0/recreate/ml/training", "1/lock"}, "", []string{"undo/nomination", "undo/1/config (parks)", "undo/1/manager (parks)", "undo/1/release (parks)", "undo/1/unlock", "undo/0/recreate"}},
		"what takes back":      {[]v1alpha1.StepID{"undo/nomination", "undo/1/config"}, "", []string{"undo/nomination"}},
		"the node is parked":   {[]v1alpha1.StepID{"0/recreate/ml/training", "1/lock", "undo/1/config"}, "undo/1/config", []string{"undo/1/park", "undo/1/unlock"}},
		"parked by its cordon": {[]v1alpha1.StepID{"0/recreate/ml/training", "1/lock"}, "undo/1/release", []string{"undo/1/park", "undo/1/unlock"}},
	} {
		t.Run(name, func(t *testing.T) {
			rem := this(actions...)
			rem.Status.Parking = tc.parking
			for _, id := range tc.begun {
				rem.Status.Journal = append(rem.Status.Journal, v1alpha1.Entry{Step: id})
			}
			d := memory()
			d.Locks = "unpend"
			if diff := cmp.Diff(tc.want, ids(New(d, rem).WayBack())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What was done and stays is named: it is not a step that has failed, nor one under way,
// nor what is taken back.
func TestWhatIsLeft(t *testing.T) {
	ended := metav1.NewMicroTime(noon)
	rem := this(diagnosis.Action{Verb: diagnosis.VerbPatch, Target: deploy}, diagnosis.Action{Verb: diagnosis.VerbEvict, Target: webPod}, diagnosis.Action{Verb: diagnosis.VerbUncordon, Target: node1},
		diagnosis.Action{Verb: diagnosis.VerbCordon, Target: node1}, diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: train})
	rem.Status.Journal = append(rem.Status.Journal, []v1alpha1.Entry{{Step: "0/patch/ml/api", Ended: &ended}, {Step: "1/evict/ml/web-1", Ended: &ended}, {Step: "2/uncordon//gpu-1", Ended: &ended, Error: "no"}, {Step: "3/cordon", Ended: &ended}, {Step: "4/recreate/ml/training"}}...)
	if got, want := New(memory(), rem).Left(), "patch deployment/api, pod ml/web-1 was evicted"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A plan by which no pod was to run says what it did instead, and that nobody filed a ticket.
func TestAchieved(t *testing.T) {
	rem := this(diagnosis.Action{Verb: diagnosis.VerbCordon, Target: node1})
	rem.Status.Pod = "ml/training-1"
	if got := New(memory(), rem).Achieved(); got != "ml/training-1 runs" {
		t.Error(got)
	}
	rem.Spec.Kinds = []diagnosis.FixKind{diagnosis.QuarantineGPU}
	const closed = "gpu-1 is quarantined: cordoned until somebody opens it; no hardware ticket was filed, "
	if got := New(memory(), rem).Achieved(); got != closed+"its text is Event default/unpend-ticket-this-plan-of-min; the pod still waits" {
		t.Error(got)
	}
	rem.Status.Journal = []v1alpha1.Entry{{Step: "0/ticket", Note: journal.Untold}}
	if got := New(memory(), rem).Achieved(); got != closed+"its text could not be made an Event; it is in the plan; the pod still waits" {
		t.Error(got)
	}
	rem = this(again)
	rem.Spec.Kinds = []diagnosis.FixKind{diagnosis.RevertMIGConfig}
	if got := New(memory(), rem).Achieved(); got != `gpu-1 has the layout "unpend-1"; the pod still waits` {
		t.Error(got)
	}
}

// Who approves a plan needs the rights that its writes take, each once; for a node, which
// the executor writes, the virtual verb.
func TestRights(t *testing.T) {
	var got []string
	for _, a := range Rights(this(diagnosis.Action{Verb: diagnosis.VerbEvict, Target: webPod}, plugin, diagnosis.Action{Verb: diagnosis.VerbPatch, Target: deploy},
		diagnosis.Action{Verb: diagnosis.VerbPatch, Target: diagnosis.Target{Kind: "ResourceQuota", Namespace: "ml", Name: "gpus"}}, diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: train},
		diagnosis.Action{Verb: diagnosis.VerbRecreate, Target: webPod}, again, diagnosis.Action{Verb: diagnosis.VerbUncordon, Target: node1}, diagnosis.Action{Verb: diagnosis.VerbCordon, Target: diagnosis.Target{Kind: "Node", Name: "gpu-2"}})) {
		got = append(got, inWords(a))
	}
	want := []string{"create pods/eviction ml", "patch apps deployments ml", "patch resourcequotas ml", "delete batch jobs ml", "create batch jobs ml", "delete pods ml", "create pods ml", "repartition nodes gpu-1", "repartition nodes gpu-2"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func inWords(a authorizationv1.ResourceAttributes) string {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return strings.Join(strings.Fields(strings.Join([]string{a.Verb, a.Group, resource, a.Namespace, a.Name}, " ")), " ")
}
