package layouts

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/rcatest"
	"github.com/unpend/unpend/rca/view"
)

// blind takes the node's report away.
func blind(w *rcatest.World) { delete(w.Geometries, "n") }

// component adds a pod of a DaemonSet on the node.
func component(w *rcatest.World, of, name string, edit func(*corev1.Pod)) {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "g", Name: name, OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: of, UID: "d", Controller: &yes}}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if edit != nil {
		edit(p)
	}
	w.Pods = append(w.Pods, p)
}

// has sets what the node has of a resource.
func has(name, count string) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		q := rcatest.List("x", count)["x"]
		n.Status.Capacity[corev1.ResourceName(name)], n.Status.Allocatable[corev1.ResourceName(name)] = q, q
	}
}

// up says since when the node is Ready.
func up(ago time.Duration) func(*corev1.Node, *nodeprobe.NodeGeometry) {
	return func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(rcatest.Noon.Add(-ago))
	}
}

const mig1, mig2 = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb"

// Without a report a layout that was applied is lost where the node came up since and offers
// nothing of it, unless the device plugin is at fault or may still be about to offer it.
func TestALayoutIsLost(t *testing.T) {
	gone := func(more ...func(*corev1.Node, *nodeprobe.NodeGeometry)) edits {
		return append(edits{has(mig1, "0")}, more...)
	}
	const before = "lost, likely: mig.config \"all-1g.5gb\" was applied before the node last came up, and it offers nothing of it: the layout is lost\n"
	const nothing = "lost, possible: mig.config \"all-1g.5gb\" was applied, and the node offers nothing of it\n"
	const counted = "lost, likely: its GPUs have 1g.5gb, as GPU feature discovery counts, and its device plugin offers none: it looks when it starts\n"
	const fewer = "lost, likely: its GPUs have 7 of 1g.5gb, as GPU feature discovery counts, and its device plugin offers 2: it looks when it starts\n"
	const rest = "mismatch, possible: does not offer 1g.5gb, though nobody can be on 1 of its GPUs\n"
	const inUse = "in use, proven: fewer 1g.5gb instances are free than it asks\n"
	plugin := func(ready bool) func(*rcatest.World) {
		return func(w *rcatest.World) {
			component(w, "nvidia-device-plugin", "nvidia-device-plugin-daemonset-x", func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(rcatest.Noon)}}}}
			})
		}
	}
	elsewhere := func(w *rcatest.World) {
		w.AddNode(sim.Node{Name: "m"})
		plugin(true)(w)
		w.Pods[len(w.Pods)-1].Spec.NodeName = "m"
	}
	for name, tc := range map[string]struct {
		edits edits
		fill  func(*rcatest.World)
		want  string
	}{
		"it came up since":                 {gone(written(view.LabelMIGState, time.Hour), up(time.Minute)), nil, before + rest},
		"it came up as it was applied":     {gone(written(view.LabelMIGState, time.Hour), up(time.Hour)), nil, rest},
		"and it offers another thing":      {gone(written(view.LabelMIGState, time.Hour), up(time.Hour), has(mig2, "1")), nil, nothing + rest},
		"they are counted there":           {gone(written(view.LabelMIGState, time.Hour), up(time.Hour), has(mig2, "1"), label(mig1+".count", "7")), nil, counted + rest},
		"none is counted there":            {gone(written(view.LabelMIGState, time.Hour), up(time.Hour), has(mig2, "1"), label(mig1+".count", "0")), nil, nothing + rest},
		"counted before it came up":        {gone(written(view.LabelMIGState, time.Hour), up(time.Minute), has(mig2, "1"), label(mig1+".count", "7")), nil, before + rest},
		"when, nobody knows":               {gone(up(time.Minute), has(mig2, "1")), nil, nothing + rest},
		"the plugin may be about to":       {gone(written(view.LabelMIGState, 2*time.Minute-time.Second), up(time.Minute)), nil, rest},
		"the plugin had its time":          {gone(written(view.LabelMIGState, 2*time.Minute), up(time.Minute)), nil, before + rest},
		"the plugin runs":                  {gone(written(view.LabelMIGState, time.Hour), up(time.Minute)), plugin(true), before + rest},
		"the plugin does not":              {gone(written(view.LabelMIGState, time.Hour), up(time.Minute)), plugin(false), rest},
		"the plugin is on others":          {gone(written(view.LabelMIGState, time.Hour), up(time.Minute)), elsewhere, rest},
		"another entry":                    {gone(label(view.LabelMIGConfig, "all-2g.10gb"), written(view.LabelMIGState, time.Hour), up(time.Minute)), nil, rest},
		"it was not applied":               {gone(label(view.LabelMIGState, "rebooting"), written(view.LabelMIGState, time.Hour), up(time.Minute)), nil, rest},
		"it still has the capacity":        {edits{has(mig1, "7"), written(view.LabelMIGState, time.Hour), up(time.Minute)}, nil, inUse + rest},
		"it offers fewer than are counted": {edits{has(mig1, "2"), written(view.LabelMIGState, time.Hour), up(time.Minute), label(mig1+".count", "7")}, nil, inUse + fewer + rest},
		"it offers all that are counted":   {edits{has(mig1, "7"), written(view.LabelMIGState, time.Hour), label(mig1+".count", "7")}, nil, inUse + rest},
		"each of them is shared":           {edits{has(mig1, "2"), written(view.LabelMIGState, time.Hour), label(mig1+".count", "7"), label(mig1+".replicas", "2")}, nil, inUse + rest},
		"strategy none names no instances": {gone(label(view.LabelMIGStrategy, "none"), written(view.LabelMIGState, time.Hour), up(time.Minute)), nil, "mismatch, possible: does not offer 1g.5gb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fill := []func(*rcatest.World){blind}
			if tc.fill != nil {
				fill = append(fill, tc.fill)
			}
			if got := (row{sim.Node{Name: "n", Config: "all-1g.5gb"}, tc.edits, nil, mig1, 1, ""}).told(t, fill...); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Where no MIG manager sees to a node, its instances are lost where it came up since its device plugin's pod is there, that
// runs, and nothing of what it offered is left; less sure where nothing tells that it came up.
func TestALayoutIsLostAtBoot(t *testing.T) {
	const lost = "lost at boot, likely: offers none of its 1g.5gb since it came up at 2026-11-20 11:00 UTC: MIG instances do not survive a reboot, and no MIG manager makes them again there\n"
	const maybe = "lost at boot, possible: has offered 1g.5gb and offers nothing, though its device plugin runs: its MIG instances may be gone, as they are after a reboot\n"
	const rest = "mismatch, possible: does not offer 1g.5gb, though nobody can be on 1 of its GPUs\n"
	plugin := func(made, started time.Duration, ready bool) func(*rcatest.World) {
		return func(w *rcatest.World) {
			component(w, "nvidia-device-plugin", "nvidia-device-plugin-daemonset-x", func(p *corev1.Pod) {
				p.CreationTimestamp = metav1.NewTime(rcatest.Noon.Add(-made))
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(rcatest.Noon.Add(-started))}}}}
			})
		}
	}
	day := 24 * time.Hour
	for name, tc := range map[string]struct {
		edits edits
		fill  []func(*rcatest.World)
		want  string
	}{
		"it came up since":        {edits{up(time.Hour)}, []func(*rcatest.World){plugin(day, time.Hour, true)}, lost + rest},
		"it did not":              {edits{up(day)}, []func(*rcatest.World){plugin(day, time.Hour, true)}, maybe + rest},
		"the plugin has its time": {edits{up(time.Hour)}, []func(*rcatest.World){plugin(day, 2*time.Minute-time.Second, true)}, rest},
		"the plugin had its time": {edits{up(time.Hour)}, []func(*rcatest.World){plugin(day, 2*time.Minute, true)}, lost + rest},
		"the plugin does not run": {edits{up(time.Hour)}, []func(*rcatest.World){plugin(day, time.Hour, false)}, rest},
		"there is none":           {edits{up(time.Hour)}, nil, rest},
		"another is offered":      {edits{up(time.Hour), has(mig2, "1")}, []func(*rcatest.World){plugin(day, time.Hour, true)}, rest},
		"whole GPUs are offered":  {edits{up(time.Hour), has(view.WholeGPU, "1")}, []func(*rcatest.World){plugin(day, time.Hour, true)}, "mismatch, possible: does not offer 1g.5gb\n"},
		"a layout is asked for":   {edits{up(time.Hour), label(view.LabelMIGConfig, "all-2g.10gb")}, []func(*rcatest.World){plugin(day, time.Hour, true)}, rest},
		"MIG manager is there": {edits{up(time.Hour)}, []func(*rcatest.World){plugin(day, time.Hour, true), func(w *rcatest.World) {
			component(w, "nvidia-mig-manager", "nvidia-mig-manager-x", nil)
		}}, rest},
		"never had any": {edits{up(time.Hour), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { delete(n.Status.Capacity, mig1) }}, []func(*rcatest.World){plugin(day, time.Hour, true)}, rest},
	} {
		t.Run(name, func(t *testing.T) {
			r := row{sim.Node{Name: "n"}, append(edits{label(view.LabelMIGState, ""), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { delete(n.Labels, view.LabelMIGConfig) }, has(mig1, "0")}, tc.edits...), nil, mig1, 1, ""}
			if got := r.told(t, append([]func(*rcatest.World){blind}, tc.fill...)...); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Without a report counts tell what they can: that slices are too few in all, or that there is
// a GPU that nobody can be on; else no more than that nothing is offered.
func TestWhatCountsTell(t *testing.T) {
	const big = "nvidia.com/mig-3g.20gb"
	const full, offers = "full, possible: not enough unheld slices for 3g.20gb\n", "mismatch, possible: does not offer 3g.20gb"
	for name, tc := range map[string]struct {
		edits edits
		fill  func(*rcatest.World)
		asks  string
		want  string
	}{
		"nobody is there":           {nil, nil, big, offers + ", though nobody can be on 1 of its GPUs\n"},
		"somebody is":               {nil, func(w *rcatest.World) { holder(w, "h", mig1) }, big, offers + "\n"},
		"too few slices in all":     {nil, func(w *rcatest.World) { holder(w, "h", big); holder(w, "i", mig1) }, big, full},
		"just enough slices":        {nil, func(w *rcatest.World) { holder(w, "h", big) }, big, offers + "\n"},
		"no MIG by its label":       {edits{label(view.LabelMIGCapable, "false"), label("nvidia.com/gpu.product", "NVIDIA-L4")}, nil, big, offers + "\nnot capable, likely: NVIDIA-L4 has no MIG\n"},
		"a board without it":        {nil, nil, "nvidia.com/mig-1g.12gb", "mismatch, possible: does not offer 1g.12gb\nunsupported, likely: NVIDIA-A100-SXM4-40GB has no profile 1g.12gb; the nearest is 1g.10gb\n"},
		"layouts that have no name": {edits{label(view.LabelMIGStrategy, "single"), label("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-INVALID")}, nil, view.WholeGPU, "strategy, proven: strategy single finds GPUs that it cannot name: MIG is on without instances, on beside off, or of several profiles (nothing reports which), so nothing is offered\n"},
		"single, of one layout":     {edits{label(view.LabelMIGStrategy, "single")}, nil, view.WholeGPU, ""},
		"whole GPUs are cut":        {edits{has(mig1, "7")}, nil, view.WholeGPU, "strategy, likely: its GPUs are partitioned, strategy mixed offers nvidia.com/mig-*\n"},
		"and nothing is offered":    {edits{has(mig1, "0")}, nil, view.WholeGPU, ""},
		"one was whole": {edits{has(mig1, "7"), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.Status.Capacity[view.WholeGPU] = rcatest.List("x", "1")["x"]
		}}, nil, view.WholeGPU, ""},
		"one is whole":           {edits{has(mig1, "7"), has(view.WholeGPU, "1")}, nil, view.WholeGPU, ""},
		"instances under single": {edits{label(view.LabelMIGStrategy, "single"), has(mig1, "1")}, nil, mig1, "in use, proven: fewer 1g.5gb instances are free than it asks\nmismatch, possible: does not offer 1g.5gb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			fill := []func(*rcatest.World){blind}
			if tc.fill != nil {
				fill = append(fill, tc.fill)
			}
			r := row{sim.Node{Name: "n"}, append(edits{label(view.LabelMIGState, ""), func(n *corev1.Node, _ *nodeprobe.NodeGeometry) { delete(n.Labels, view.LabelMIGConfig) }}, tc.edits...), nil, tc.asks, 1, ""}
			if got := r.told(t, fill...); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// holder adds a pod that holds one of a resource of the node.
func holder(w *rcatest.World, name, asks string) {
	p := rcatest.Victim(name, 0, 0, 0, name)
	p.Spec.NodeName, p.UID = "n", "uid"
	list := rcatest.List(asks, "1")
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	w.Pods = append(w.Pods, p)
}

// A layout that MIG manager does not get through with is told with who is still there: pods on
// the GPUs, and those of a component that was told to leave.
func TestWhoIsInMIGManagersWay(t *testing.T) {
	paused := label("nvidia.com/gpu.deploy.dcgm-exporter", view.Paused)
	leaving := func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: rcatest.Noon}
	}
	const host = ", and no pod holds a GPU of it: what does may run on the host (DCGM, nvidia-persistenced, nvidia_drm)"
	const told = ", g/d was told to leave and has not"
	for name, tc := range map[string]struct {
		edits edits
		fill  func(*rcatest.World)
		want  string
	}{
		"nobody":                  {nil, nil, host},
		"pods were not read":      {nil, func(w *rcatest.World) { w.Unread["Pod"] = "x" }, ""},
		"two":                     {nil, func(w *rcatest.World) { holder(w, "h", mig1); holder(w, "i", mig1) }, ", 2 pods (a/h, …) still run on its GPUs"},
		"a component":             {edits{paused}, func(w *rcatest.World) { component(w, "nvidia-dcgm-exporter", "d", leaving) }, told + host},
		"by its plain name":       {edits{paused}, func(w *rcatest.World) { component(w, "dcgm-exporter", "d", leaving) }, told + host},
		"one that does not leave": {edits{paused}, func(w *rcatest.World) { component(w, "nvidia-dcgm-exporter", "d", nil) }, host},
		"one that is not paused":  {nil, func(w *rcatest.World) { component(w, "nvidia-dcgm-exporter", "d", leaving) }, host},
		"another component":       {edits{paused}, func(w *rcatest.World) { component(w, "nvidia-driver", "d", leaving) }, host},
		"one of a user's": {edits{paused}, func(w *rcatest.World) {
			component(w, "dcgm-exporter", "d", leaving)
			w.Pods[1].OwnerReferences[0].Kind = "Job"
		}, host},
		"of nobody":                    {edits{paused}, func(w *rcatest.World) { component(w, "dcgm-exporter", "d", leaving); w.Pods[1].OwnerReferences = nil }, host},
		"of two that begin alike":      {edits{paused, label("nvidia.com/gpu.deploy.dcgm", view.Paused)}, func(w *rcatest.World) { component(w, "nvidia-dcgm-exporter", "d", leaving) }, told + host},
		"a name that a driver has not": {edits{label(view.LabelMIGConfig, "all-3g.20gb")}, blind, host + ", or its driver does not know the name 3g.20gb"},
		"names that all drivers have":  {nil, blind, host},
		"a report knows the names":     {edits{label(view.LabelMIGConfig, "all-3g.20gb")}, nil, host},
	} {
		t.Run(name, func(t *testing.T) {
			var fill []func(*rcatest.World)
			if tc.fill != nil {
				fill = append(fill, tc.fill)
			}
			got, _, _ := strings.Cut((row{ones, append(edits{label(view.LabelMIGState, "failed")}, tc.edits...), nil, mig2, 1, ""}).told(t, fill...), "\n")
			got = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(got, "failed, proven: MIG manager could not apply "), `"all-1g.5gb"`), `"all-3g.20gb"`)
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

// Pending for longer than anybody waits is stuck; when nobody knows since when, capacity that
// is gone tells.
func TestPendingForTooLong(t *testing.T) {
	for name, tc := range map[string]struct {
		edits edits
		want  string
	}{
		"capacity is gone":      {edits{has(mig1, "0")}, "in progress, possible: its MIG layout is being changed\nstuck, likely: MIG manager is stuck\n"},
		"some capacity is left": {edits{has(mig1, "0"), has(mig2, "1")}, "in progress, possible: its MIG layout is being changed\n"},
		"there never was any": {edits{func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			delete(n.Status.Capacity, mig1)
			delete(n.Status.Allocatable, mig1)
		}}, "in progress, possible: its MIG layout is being changed\n"},
		"it reboots":          {edits{label(view.LabelMIGState, "rebooting"), written(view.LabelMIGState, time.Minute)}, "in progress, proven: its MIG layout is being changed now\n"},
		"it reboots for long": {edits{label(view.LabelMIGState, "rebooting"), written(view.LabelMIGState, time.Hour)}, ""},
		"by its own writing": {edits{func(n *corev1.Node, _ *nodeprobe.NodeGeometry) {
			n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "nvidia-mig-manager", Time: &metav1.Time{Time: rcatest.Noon}}, {Manager: "kubectl", Time: &metav1.Time{Time: rcatest.Noon.Add(-time.Hour)}}, {Manager: "nvidia-mig-manager"}}
		}}, "in progress, proven: its MIG layout is being changed now\n"},
		"the newest writing counts": {edits{written(view.LabelMIGState, time.Hour), written(view.LabelMIGState, time.Minute), written(view.LabelMIGState, 2*time.Hour), written("other", 0)}, "in progress, proven: its MIG layout is being changed now\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := row{ones, append(edits{label(view.LabelMIGState, "pending")}, tc.edits...), nil, mig2, 1, ""}.told(t)
			got, _, _ = strings.Cut(got, "full,")
			if got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}
