package rca

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/nodeprobe/sim"
	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/watcher"
)

// troubled is a cluster of every sort of GPU node there is trouble with: laid out with
// each profile, whole, tainted, of another zone, cordoned, being re-made, failed, with
// GPUs that are sick; ten pods on each hold what it has. A pod waits for each of asks.
func troubled(nodes int, asks ...string) *cluster.State {
	st := &cluster.State{Now: noon, Geometries: map[string]*nodeprobe.NodeGeometry{}, Unread: map[string]string{}}
	const model = "A100-40GB"
	profiles := []string{"1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"}
	for i := range nodes {
		n := sim.Node{Name: fmt.Sprintf("gpu-%05d", i), Model: model, GPUs: 8, Labels: map[string]string{"zone": fmt.Sprint(i % 3)}, Cordoned: i%16 == 5}
		profile := profiles[i%len(profiles)]
		n.Config = "all-" + profile
		for range n.GPUs {
			n.Layouts = append(n.Layouts, sim.All(model, profile))
		}
		if i%8 == 3 {
			n.Layouts, n.MIGOff, n.Config = nil, []int{0, 1, 2, 3, 4, 5, 6, 7}, "all-disabled"
		}
		if i%8 == 6 {
			n.Taints = []corev1.Taint{{Key: "team", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		}
		o := n.Object(noon.Add(-time.Hour))
		switch i % 32 {
		case 9:
			o.Labels[labelMIGState] = "pending"
		case 10:
			o.Labels[labelMIGState] = "failed"
		case 11:
			o.Status.Allocatable[wholeGPU] = resource.MustParse("7")
		}
		geo := n.Geometry(noon)
		for k := range 10 {
			st.Pods = append(st.Pods, holderOn(o, geo, k))
		}
		st.Nodes, st.Geometries[n.Name] = append(st.Nodes, o), geo
	}
	for i, a := range asks {
		p := benchPod(fmt.Sprintf("waiting-%d", i), a)
		p.Spec.NodeSelector = map[string]string{"zone": "1"}
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		st.Pods = append(st.Pods, p)
	}
	return st
}

func benchPod(name, asks string) *corev1.Pod {
	p := victim(name, 0, 0, time.Hour, "serve")
	p.Spec.NodeName = ""
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceName(asks): resource.MustParse("1")}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	p.OwnerReferences[0].Name = name
	return p
}

// holderOn is the k-th pod of a node: it holds what comes next of its first GPUs.
func holderOn(n *corev1.Node, geo *nodeprobe.NodeGeometry, k int) *corev1.Pod {
	name := fmt.Sprintf("serve-%s-%d", n.Name, k)
	holder := nodeprobe.Holder{Namespace: "a", Pod: name, Container: "c"}
	asks := "example.com/none"
	for g := range geo.Report.GPUs {
		gpu := &geo.Report.GPUs[g]
		if !gpu.MIG.Current {
			if k--; k < 0 {
				gpu.Holders, asks = append(gpu.Holders, holder), wholeGPU
				break
			}
			continue
		}
		if k < len(gpu.Instances) {
			gpu.Instances[k].Holder, asks = &holder, migPrefix+gpu.Instances[k].Profile
			break
		}
		k -= len(gpu.Instances)
	}
	p := benchPod(name, asks)
	p.OwnerReferences[0].Name = "serve-" + n.Name
	p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
	p.Status.StartTime = &metav1.Time{Time: noon.Add(-time.Hour)}
	return p
}

// BenchmarkIncident is what one incident costs: own-ms of all rules (rules-ms),
// candidates, search for victims and ranking, and apart from that whatif-ms in which the
// scheduler's own code judges and proves. The view of the cluster, view-ms, is shared by
// all incidents. own/filterpass is own time by that of one bare pass of the scheduler's
// filters over the same nodes.
func BenchmarkIncident(b *testing.B) {
	asks := []string{"nvidia.com/mig-2g.10gb", "nvidia.com/mig-3g.20gb", "nvidia.com/mig-4g.20gb", "nvidia.com/gpu", "nvidia.com/mig-9g.90gb"}
	own := map[int]float64{}
	for _, n := range []int{1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			st := troubled(n, asks...)
			incidents := watcher.Group(st.Pods, st.Owner)
			if len(incidents) != len(asks) {
				b.Fatalf("%d incidents", len(incidents))
			}
			first, done, err := newWorld(b.Context(), st, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer done()
			var t timed
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				begin := busy(b)
				w := view(st)
				w.snap = first.snap
				t.view += busy(b) - begin
				for _, i := range incidents {
					t.incident(b, w, i)
				}
			}
			rounds := float64(b.N)
			ms := func(d time.Duration) float64 { return d.Seconds() * 1000 / rounds }
			own[n] = ms(t.own) / float64(len(asks))
			b.ReportMetric(own[n], "own-ms/incident")
			b.ReportMetric(ms(t.whatif)/float64(len(asks)), "whatif-ms/incident")
			b.ReportMetric(ms(t.rules)/float64(len(asks)), "rules-ms/incident")
			b.ReportMetric(float64(t.own)/float64(t.pass), "own/filterpass")
			b.ReportMetric(ms(t.view), "view-ms")
			b.ReportMetric(float64(t.tries)/rounds/float64(len(asks)), "proofs/incident")
			if n > 1000 && own[1000] > 0 {
				b.ReportMetric(own[n]/own[1000], "growth")
			}
		})
	}
}

// busy is the processor time of this thread: on a machine that others use too the clock
// tells of them.
func busy(b *testing.B) time.Duration {
	b.Helper()
	const thread = 1 // RUSAGE_THREAD, Linux
	var u syscall.Rusage
	if err := syscall.Getrusage(thread, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// timed adds up where the time of a diagnosis goes.
type timed struct {
	own, whatif, view time.Duration
	rules, pass       time.Duration // the part of own that all rules take; one bare pass of the scheduler's filters
	tries             int
}

func (t *timed) incident(b *testing.B, w *world, i watcher.Incident) {
	begin, whatif := busy(b), time.Duration(0)
	k, err := openCase(newLedger(w), i)
	if err != nil {
		b.Fatal(err)
	}
	judged := busy(b)
	if k.verdict, err = w.snap.Explain(b.Context(), k.Pod); err != nil {
		b.Fatal(err)
	}
	whatif += busy(b) - judged
	ruled := busy(b)
	nodes, causes := k.judge()
	t.rules += busy(b) - ruled
	c := newFinder(k, nil, nil)
	best, err := c.bestOf(b.Context(), c.candidates(nodes), func(ctx context.Context, f *candidate) error {
		begin := busy(b)
		err := c.prove(ctx, f)
		whatif += busy(b) - begin
		t.tries++
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	fixes := c.ranked(best, causes)
	d := diagnosis(k, nodes, orderCauses(k, causes, fixes), fixes)
	t.own += busy(b) - begin - whatif
	t.whatif += whatif
	passed := busy(b)
	if _, err := w.snap.Fits(b.Context(), c.Pod); err != nil {
		b.Fatal(err)
	}
	t.pass += busy(b) - passed
	if len(d.Nodes) != len(w.nodes) || len(d.Causes) < 3 || d.Fixes[0].Proof.Verdict != Schedules {
		b.Fatalf("%d nodes, %d causes, fix %q", len(d.Nodes), len(d.Causes), d.Fixes[0].Title)
	}
}
