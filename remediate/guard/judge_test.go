package guard

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// edge is the boundary of a rule: on one side of it the plan may begin, on the other
// the rule says exactly want.
type edge struct {
	name     string
	may, not func(*setting)
	want     Verdict
}

func check(t *testing.T, edges []edge) {
	t.Helper()
	for _, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			s := quiet()
			e.may(s)
			if got, want := s.judge(), (Verdict{Decision: Allow, Phase: v1alpha1.Running}); got != want {
				t.Errorf("this side: got %+v, want %+v", got, want)
			}
			s = quiet()
			e.not(s)
			if got := s.judge(); got != e.want {
				t.Errorf("other side:\n got %+v\nwant %+v", got, e.want)
			}
		})
	}
}

// older makes a plan that was recorded before the one that is judged.
func older(r *v1alpha1.Remediation) *v1alpha1.Remediation {
	r.CreationTimestamp = metav1.NewTime(noon.Add(-2 * time.Hour))
	return r
}

func TestRulesOfThePlan(t *testing.T) {
	check(t, []edge{
		{"ended",
			func(s *setting) { s.plan.Status.Phase = v1alpha1.Queued },
			func(s *setting) { s.plan.Status.Phase = v1alpha1.Succeeded },
			Verdict{Refuse, "ended", "the plan has ended: Succeeded; a plan is carried out once, ask for a new one", time.Time{}, v1alpha1.Succeeded}},
		{"expired by its own word",
			func(s *setting) { s.plan.Spec.Expires = metav1.NewTime(noon.Add(time.Nanosecond)) },
			func(s *setting) { s.plan.Spec.Expires = metav1.NewTime(noon) },
			Verdict{Refuse, "expired", "the plan expired at 2026-11-20T12:00:00Z, it is 2026-11-20T12:00:00Z; plans are good for 15m, for what they were proved on changes: ask for a new one", time.Time{}, v1alpha1.Expired}},
		{"expired although it says otherwise",
			func(s *setting) {
				s.plan.Spec.Expires, s.plan.CreationTimestamp = metav1.NewTime(noon.AddDate(1, 0, 0)), metav1.NewTime(noon.Add(-15*time.Minute+time.Second))
			},
			func(s *setting) {
				s.plan.Spec.Expires, s.plan.CreationTimestamp = metav1.NewTime(noon.AddDate(1, 0, 0)), metav1.NewTime(noon.Add(-15*time.Minute))
			},
			Verdict{Refuse, "expired", "the plan expired at 2026-11-20T12:00:00Z, it is 2026-11-20T12:00:00Z; plans are good for 15m, for what they were proved on changes: ask for a new one", time.Time{}, v1alpha1.Expired}},
		{"expired, of a plan whose creation is not known",
			func(s *setting) { s.plan.CreationTimestamp = metav1.Time{}; s.view.Plans = nil },
			func(s *setting) { s.plan.CreationTimestamp, s.plan.Spec.Expires = metav1.Time{}, metav1.NewTime(noon) },
			Verdict{Refuse, "expired", "the plan expired at 2026-11-20T12:00:00Z, it is 2026-11-20T12:00:00Z; plans are good for 15m, for what they were proved on changes: ask for a new one", time.Time{}, v1alpha1.Expired}},
		{"superseded by one a second younger",
			func(s *setting) {
				r := planFor(2, "gpu-1")
				r.CreationTimestamp = metav1.NewTime(s.plan.CreationTimestamp.Add(-time.Second))
				s.add(r)
			},
			func(s *setting) {
				r := planFor(2, "gpu-1")
				r.CreationTimestamp = metav1.NewTime(s.plan.CreationTimestamp.Add(time.Second))
				s.add(r)
			},
			Verdict{Refuse, "superseded", "plan gpu-0000000002#1 (00000002) for node gpu-1 is newer (2026-11-20T11:59:01Z, this one 2026-11-20T11:59:00Z): decide on that one", time.Time{}, v1alpha1.Superseded}},
		{"superseded within the second, by name",
			func(s *setting) { s.add(planFor(0, "gpu-1")) },
			func(s *setting) { s.add(planFor(2, "gpu-1")) },
			Verdict{Refuse, "superseded", "plan gpu-0000000002#1 (00000002) for node gpu-1 is newer (2026-11-20T11:59:00Z, this one 2026-11-20T11:59:00Z): decide on that one", time.Time{}, v1alpha1.Superseded}},
		{"superseded for one of the same nodes",
			func(s *setting) { s.add(planFor(2, "gpu-2")) },
			func(s *setting) {
				r := planFor(2, "gpu-2")
				r.Spec.Actions[0].Target.Name = "gpu-1" // what is written counts, not what is said
				s.add(r)
			},
			Verdict{Refuse, "superseded", "plan gpu-0000000002#1 (00000002) for node gpu-1 is newer (2026-11-20T11:59:00Z, this one 2026-11-20T11:59:00Z): decide on that one", time.Time{}, v1alpha1.Superseded}},
		{"superseded by one that has not ended",
			func(s *setting) {
				r := planFor(2, "gpu-1")
				r.Status.Phase = v1alpha1.Rejected
				s.add(r)
			},
			func(s *setting) {
				r := planFor(2, "gpu-1")
				r.Status.Phase = v1alpha1.Pending
				s.add(r)
			},
			Verdict{Refuse, "superseded", "plan gpu-0000000002#1 (00000002) for node gpu-1 is newer (2026-11-20T11:59:00Z, this one 2026-11-20T11:59:00Z): decide on that one", time.Time{}, v1alpha1.Superseded}},
		{"evictions of the plan",
			func(s *setting) { evicting(s.plan, 30) },
			func(s *setting) { evicting(s.plan, 31) },
			Verdict{Refuse, "evictions-per-plan", "the plan stops 31 pods, the limit is 30: choose another fix, or raise evictionsPerPlan in ConfigMap unpend-guards", time.Time{}, v1alpha1.Refused}},
		{"evictions that no hour has room for",
			func(s *setting) { s.limits.EvictionsPerHour = 5; evicting(s.plan, 5) },
			func(s *setting) { s.limits.EvictionsPerHour = 5; evicting(s.plan, 6) },
			Verdict{Refuse, "evictions-per-plan", "the plan stops 6 pods, the limit is 5: choose another fix, or raise evictionsPerHour in ConfigMap unpend-guards", time.Time{}, v1alpha1.Refused}},
	})
}

func TestRulesForAll(t *testing.T) {
	night := Freeze{Cron: "0 22 * * *", Duration: 8 * time.Hour, Timezone: "Asia/Tokyo"} // 13:00 to 21:00 UTC
	check(t, []edge{
		{"paused",
			func(*setting) {},
			func(s *setting) { s.view.Paused = true },
			Verdict{Wait, "paused", "unpend is paused by a person: nothing is written until paused is false in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"breaker",
			func(s *setting) { s.view.Breaker = BreakerState{Why: "history", ResetAt: noon} },
			func(s *setting) {
				s.view.Breaker = BreakerState{Open: true, Why: "3 plans failed", Since: noon.Add(-48 * time.Hour)}
			},
			Verdict{Wait, "breaker", `the breaker is open since 2026-11-18T12:00:00Z: 3 plans failed; when the cause is gone, a person resets it: ` +
				`kubectl patch configmap unpend-breaker --type merge -p "{\"data\":{\"open\":\"false\",\"since\":\"\",\"why\":\"\",\"resetAt\":\"$(date -u +%FT%TZ)\"}}"`, time.Time{}, v1alpha1.Queued}},
		{"breaker that is about to open",
			func(s *setting) {
				s.add(older(in(planFor(7, "gpu-7"), v1alpha1.Failed, noon.Add(-time.Second))), older(in(planFor(8, "gpu-8"), v1alpha1.Parked, noon.Add(-time.Second))))
			},
			func(s *setting) {
				s.add(older(in(planFor(7, "gpu-7"), v1alpha1.Failed, noon.Add(-time.Second))), older(in(planFor(8, "gpu-8"), v1alpha1.Parked, noon.Add(-time.Second))),
					older(in(planFor(9, "gpu-9"), v1alpha1.Failed, noon.Add(-time.Second))))
			},
			Verdict{Wait, "breaker", `the breaker opens: 3 plans failed within 1h (gpu-0000000007#1 (00000007), gpu-0000000008#1 (00000008), gpu-0000000009#1 (00000009)), the limit is 3; when the cause is gone, a person resets it: ` +
				`kubectl patch configmap unpend-breaker --type merge -p "{\"data\":{\"open\":\"false\",\"since\":\"\",\"why\":\"\",\"resetAt\":\"$(date -u +%FT%TZ)\"}}"`, time.Time{}, v1alpha1.Queued}},
		{"freeze begins",
			func(s *setting) { s.limits.Freeze = []Freeze{night}; s.at(noon.Add(time.Hour - time.Nanosecond)) },
			func(s *setting) { s.limits.Freeze = []Freeze{night}; s.at(noon.Add(time.Hour)) },
			Verdict{Wait, "freeze", "nothing is begun in the freeze window (0 22 * * * for 8h, Asia/Tokyo), which lasts until 2026-11-21T06:00:00+09:00, after the plan expires: ask for a new one then; freeze in ConfigMap unpend-guards sets it",
				time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC), v1alpha1.Queued}},
		{"freeze ends",
			func(s *setting) { s.limits.Freeze = []Freeze{night}; s.at(noon.Add(9 * time.Hour)) },
			func(s *setting) { s.limits.Freeze = []Freeze{night}; s.at(noon.Add(9*time.Hour - time.Nanosecond)) },
			Verdict{Wait, "freeze", "nothing is begun in the freeze window (0 22 * * * for 8h, Asia/Tokyo), which lasts until 2026-11-21T06:00:00+09:00; freeze in ConfigMap unpend-guards sets it",
				time.Date(2026, 11, 20, 21, 0, 0, 0, time.UTC), v1alpha1.Queued}},
		{"freeze that ends last",
			func(s *setting) {
				s.limits.Freeze = []Freeze{{Cron: "1 12 * * *", Duration: time.Hour, Timezone: "UTC"}}
			},
			func(s *setting) {
				s.limits.Freeze = []Freeze{{Cron: "0 12 * * *", Duration: time.Minute, Timezone: "UTC"}, {Cron: "0 11 * * *", Duration: 65 * time.Minute, Timezone: "UTC"}}
			},
			Verdict{Wait, "freeze", "nothing is begun in the freeze window (0 11 * * * for 1h5m, UTC), which lasts until 2026-11-20T12:05:00Z; freeze in ConfigMap unpend-guards sets it", noon.Add(5 * time.Minute), v1alpha1.Queued}},
		{"freeze that cannot be read",
			func(*setting) {},
			func(s *setting) { s.limits.Freeze = []Freeze{{Cron: "0 22 * *", Duration: time.Hour, Timezone: "UTC"}} },
			Verdict{Wait, "freeze", "freeze window 0 (0 22 * * for 1h, UTC) cannot be read: it must be minute, hour, day of month, month and day of week: expected exactly 5 fields, found 4: [0 22 * *]; mend freeze in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
	})
}

// at moves the setting to another time, the plan with it.
func (s *setting) at(now time.Time) {
	s.plan.CreationTimestamp, s.plan.Spec.Expires = metav1.NewTime(now.Add(-time.Minute)), metav1.NewTime(now.Add(14*time.Minute))
	s.view.Now = now
}

func TestRulesOfHistory(t *testing.T) {
	evicted := func(i int, phase v1alpha1.Phase, at time.Time, n int) *v1alpha1.Remediation {
		r := older(in(planFor(i, "other"), phase, at))
		r.Status.Evicted = n
		return r
	}
	check(t, []edge{
		{"evictions of the hour",
			func(s *setting) {
				evicting(s.plan, 30)
				s.add(evicted(2, v1alpha1.Succeeded, noon.Add(-50*time.Minute), 40), evicted(3, v1alpha1.Failed, noon.Add(-40*time.Minute), 30))
			},
			func(s *setting) {
				evicting(s.plan, 30)
				s.add(evicted(3, v1alpha1.Failed, noon.Add(-40*time.Minute), 31), evicted(2, v1alpha1.Succeeded, noon.Add(-50*time.Minute), 40))
			},
			Verdict{Wait, "evictions-per-hour", "71 pods were or are being stopped within the hour, with the 30 of this plan it would be 101, the limit is 100: wait, or raise evictionsPerHour in ConfigMap unpend-guards", noon.Add(10 * time.Minute), v1alpha1.Queued}},
		{"evictions an hour ago",
			func(s *setting) {
				evicting(s.plan, 1)
				s.add(evicted(2, v1alpha1.Succeeded, noon.Add(-time.Hour), 100))
			},
			func(s *setting) {
				evicting(s.plan, 1)
				s.add(evicted(2, v1alpha1.Succeeded, noon.Add(-time.Hour+time.Nanosecond), 100))
			},
			Verdict{Wait, "evictions-per-hour", "100 pods were or are being stopped within the hour, with the 1 of this plan it would be 101, the limit is 100: wait, or raise evictionsPerHour in ConfigMap unpend-guards", noon.Add(time.Nanosecond), v1alpha1.Queued}},
		{"evictions still to come",
			func(s *setting) {
				s.limits.NodesInFlight, s.limits.EvictionsPerHour = 2, 12
				s.add(evicted(2, v1alpha1.Running, noon, 3))
				evicting(&s.view.Plans[1], 10)
				evicting(s.plan, 2)
			},
			func(s *setting) {
				s.limits.NodesInFlight, s.limits.EvictionsPerHour = 2, 12
				s.add(evicted(2, v1alpha1.Running, noon, 3))
				evicting(&s.view.Plans[1], 10)
				evicting(s.plan, 3)
			},
			Verdict{Wait, "evictions-per-hour", "10 pods were or are being stopped within the hour, with the 3 of this plan it would be 13, the limit is 12: wait, or raise evictionsPerHour in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"cool-down that ends before the plan expires",
			func(s *setting) { s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Succeeded, noon.Add(-time.Hour)))) },
			func(s *setting) {
				s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Succeeded, noon.Add(-time.Hour+time.Nanosecond))))
			},
			Verdict{Wait, "cool-down", "node gpu-1 was changed at 2026-11-20T11:00:00Z by plan gpu-0000000002#1 (00000002) and is left alone for 1h, until 2026-11-20T12:00:00Z; coolDown in ConfigMap unpend-guards sets it", noon.Add(time.Nanosecond), v1alpha1.Queued}},
		{"cool-down that outlasts the plan",
			func(s *setting) { s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Stale, noon.Add(-time.Minute)))) },
			func(s *setting) { s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Failed, noon.Add(-46*time.Minute)))) },
			Verdict{Refuse, "cool-down", "node gpu-1 was changed at 2026-11-20T11:14:00Z by plan gpu-0000000002#1 (00000002) and is left alone for 1h, until 2026-11-20T12:14:00Z; the plan expires before that, at 2026-11-20T12:14:00Z: ask for a new one then", time.Time{}, v1alpha1.Refused}},
		{"cool-down after a failure that wrote nothing",
			func(s *setting) {
				r := older(in(planFor(2, "gpu-1"), v1alpha1.Failed, noon.Add(-50*time.Minute)))
				r.Status.Journal = nil
				s.add(r)
			},
			func(s *setting) { s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Parked, noon.Add(-50*time.Minute)))) },
			Verdict{Wait, "cool-down", "node gpu-1 was changed at 2026-11-20T11:10:00Z by plan gpu-0000000002#1 (00000002) and is left alone for 1h, until 2026-11-20T12:10:00Z; coolDown in ConfigMap unpend-guards sets it", noon.Add(10 * time.Minute), v1alpha1.Queued}},
		{"cool-down after a refusal that came late",
			func(s *setting) { s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Refused, noon.Add(-50*time.Minute)))) },
			func(s *setting) {
				r := older(in(planFor(2, "gpu-1"), v1alpha1.Refused, noon.Add(-50*time.Minute)))
				r.Status.Evicted = 1
				s.add(r)
			},
			Verdict{Wait, "cool-down", "node gpu-1 was changed at 2026-11-20T11:10:00Z by plan gpu-0000000002#1 (00000002) and is left alone for 1h, until 2026-11-20T12:10:00Z; coolDown in ConfigMap unpend-guards sets it", noon.Add(10 * time.Minute), v1alpha1.Queued}},
		{"cool-down of another node",
			func(s *setting) { s.add(older(in(planFor(2, "gpu-2"), v1alpha1.Succeeded, noon.Add(-time.Minute)))) },
			func(s *setting) {
				r := older(in(planFor(2, "gpu-1"), v1alpha1.Succeeded, noon.Add(-50*time.Minute)))
				r.Status.Ended = nil // the journal tells
				r.Status.Journal = append(r.Status.Journal, v1alpha1.Entry{Began: metav1.NewMicroTime(noon.Add(-56 * time.Minute)), Ended: new(metav1.NewMicroTime(noon.Add(-45 * time.Minute)))})
				s.plan.Spec.Expires = metav1.NewTime(noon.Add(time.Hour)) // and it is good for long
				s.limits.PlanTTL = time.Hour
				s.add(r)
			},
			Verdict{Wait, "cool-down", "node gpu-1 was changed at 2026-11-20T11:15:00Z by plan gpu-0000000002#1 (00000002) and is left alone for 1h, until 2026-11-20T12:15:00Z; coolDown in ConfigMap unpend-guards sets it", noon.Add(15 * time.Minute), v1alpha1.Queued}},
	})
}

func TestRulesOfTheNodes(t *testing.T) {
	other := planFor(2, "gpu-2")
	check(t, []edge{
		{"node marked by another",
			func(s *setting) { s.limits.NodesInFlight = 5; marked(s.view.Nodes[1], other, "") },
			func(s *setting) { s.limits.NodesInFlight = 5; marked(s.view.Nodes[0], other, "") },
			Verdict{Wait, "node-busy", "node gpu-1 has the mark of plan 00000002 (cordon), which is not under way: nobody works on it any more, 'unpend release gpu-1' gives it back", time.Time{}, v1alpha1.Queued}},
		{"node parked",
			func(s *setting) { marked(s.view.Nodes[1], other, "MIG manager says failed") },
			func(s *setting) { marked(s.view.Nodes[0], other, "MIG manager says failed") },
			Verdict{Refuse, "node-busy", "node gpu-1 is parked, cordoned on purpose by plan 00000002: MIG manager says failed; a person has to mend and release it ('unpend release gpu-1'), then ask for a new plan", time.Time{}, v1alpha1.Refused}},
		{"node with a mark that cannot be read",
			func(s *setting) {
				s.limits.NodesInFlight = 2
				s.view.Nodes[1].Annotations = map[string]string{diagnosis.OperationAnnotation: "x"}
			},
			func(s *setting) {
				s.limits.NodesInFlight = 2
				s.view.Nodes[0].Annotations = map[string]string{diagnosis.OperationAnnotation: "x"}
			},
			Verdict{Refuse, "node-busy", `node gpu-1: annotation unpend.dev/operation is not one of ours: "x": take it off ('unpend release gpu-1'), then ask for a new plan`, time.Time{}, v1alpha1.Refused}},
		{"node of a plan under way that has not marked it yet",
			func(s *setting) {
				s.limits.NodesInFlight = 5
				s.add(older(in(planFor(2, "gpu-2"), v1alpha1.Running, noon)))
			},
			func(s *setting) {
				s.limits.NodesInFlight = 5
				s.add(older(in(planFor(2, "gpu-1"), v1alpha1.Undoing, noon)))
			},
			Verdict{Wait, "node-busy", "plan gpu-0000000002#1 (00000002) works on node gpu-1: wait until it has ended", time.Time{}, v1alpha1.Queued}},
		{"in flight: a node and its plan are one",
			func(s *setting) {
				s.limits.NodesInFlight = 2
				r := older(in(planFor(2, "gpu-2"), v1alpha1.Running, noon))
				marked(s.view.Nodes[1], r, "")
				s.add(r)
			},
			func(s *setting) {
				s.limits.NodesInFlight = 2
				marked(s.view.Nodes[1], other, "")
				s.add(older(in(planFor(3, "gpu-3"), v1alpha1.Running, noon)))
			},
			Verdict{Wait, "nodes-in-flight", "2 worked on already (gpu-2, which nobody works on any more: 'unpend release gpu-2', plan gpu-0000000003#1 (00000003)), the limit is 2 at once: wait until that has ended, or raise nodesInFlight in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"in flight: one at a time",
			func(s *setting) {
				r := older(in(planFor(2, "gpu-2"), v1alpha1.Running, noon))
				r.Spec.Nodes, r.Spec.Actions = nil, nil // writes to no node
				s.add(r)
			},
			func(s *setting) { s.add(older(in(planFor(2, "gpu-2"), v1alpha1.Running, noon))) },
			Verdict{Wait, "nodes-in-flight", "1 worked on already (plan gpu-0000000002#1 (00000002)), the limit is 1 at once: wait until that has ended, or raise nodesInFlight in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"in flight: not for a plan that is about no node",
			func(s *setting) {
				s.plan.Spec.Nodes, s.plan.Spec.Actions = nil, nil
				evicting(s.plan, 1)
				marked(s.view.Nodes[1], other, "")
			},
			func(s *setting) { evicting(s.plan, 1); marked(s.view.Nodes[1], other, "") },
			Verdict{Wait, "nodes-in-flight", "1 worked on already (gpu-2, which nobody works on any more: 'unpend release gpu-2'), the limit is 1 at once: wait until that has ended, or raise nodesInFlight in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"in flight: a mark whose plan has ended",
			func(s *setting) { marked(s.view.Nodes[1], s.plan, "") },
			func(s *setting) {
				marked(s.view.Nodes[1], other, "")
				s.add(older(in(planFor(2, "gpu-2"), v1alpha1.Failed, noon.Add(-2*time.Hour))))
			},
			Verdict{Wait, "nodes-in-flight", "1 worked on already (gpu-2, which nobody works on any more: 'unpend release gpu-2'), the limit is 1 at once: wait until that has ended, or raise nodesInFlight in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"in flight: a mark that cannot be read",
			func(s *setting) { s.view.Nodes[1].Annotations = map[string]string{"else": "x"} },
			func(s *setting) { s.view.Nodes[1].Annotations = map[string]string{diagnosis.OperationAnnotation: "x"} },
			Verdict{Wait, "nodes-in-flight", "1 worked on already (gpu-2, whose mark cannot be read), the limit is 1 at once: wait until that has ended, or raise nodesInFlight in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
	})
}

func TestRulesOfThePool(t *testing.T) {
	old := noon.AddDate(0, 0, -1)
	check(t, []edge{
		{"pool: one node may be worked on while the others are within the limit",
			func(s *setting) { cordon(s.view.Nodes[4], old); notReady(s.view.Nodes[3], old) },
			func(s *setting) {
				cordon(s.view.Nodes[4], old)
				notReady(s.view.Nodes[3], old)
				cordon(s.view.Nodes[5], old)
			},
			Verdict{Wait, "pool-unavailable", "3 of 20 GPU nodes are out of use (gpu-4 not Ready, gpu-5 cordoned, gpu-6 cordoned), with gpu-1 it would be 4, the limit is 2 (10 %, at least 1): bring one back, or raise poolUnavailablePercent in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"pool: the percentage is of whole nodes",
			func(s *setting) {
				s.view.Nodes = gpuNodes(20)
				notReady(s.view.Nodes[3], old)
				cordon(s.view.Nodes[4], old)
			},
			func(s *setting) {
				s.view.Nodes = gpuNodes(19)
				notReady(s.view.Nodes[3], old)
				cordon(s.view.Nodes[4], old)
			},
			Verdict{Wait, "pool-unavailable", "2 of 19 GPU nodes are out of use (gpu-4 not Ready, gpu-5 cordoned), with gpu-1 it would be 3, the limit is 1 (10 %, at least 1): bring one back, or raise poolUnavailablePercent in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"pool: a small one, of which one is closed",
			func(s *setting) { s.view.Nodes = gpuNodes(8); s.view.Nodes[1].Status.Conditions = nil },
			func(s *setting) {
				s.view.Nodes = gpuNodes(8)
				s.view.Nodes[1].Status.Conditions = nil
				cordon(s.view.Nodes[2], old)
			},
			Verdict{Wait, "pool-unavailable", "2 of 8 GPU nodes are out of use (gpu-2 not Ready, gpu-3 cordoned), with gpu-1 it would be 3, the limit is 1 (10 %, at least 1): bring one back, or raise poolUnavailablePercent in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"pool: a node that is out of use anyway makes nothing worse",
			func(s *setting) {
				s.view.Nodes = gpuNodes(3)
				cordon(s.view.Nodes[0], old)
				cordon(s.view.Nodes[1], old)
			},
			func(s *setting) {
				s.view.Nodes = gpuNodes(3)
				cordon(s.view.Nodes[1], old)
				cordon(s.view.Nodes[2], old)
			},
			Verdict{Wait, "pool-unavailable", "2 of 3 GPU nodes are out of use (gpu-2 cordoned, gpu-3 cordoned), with gpu-1 it would be 3, the limit is 1 (10 %, at least 1): bring one back, or raise poolUnavailablePercent in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"pool: nodes without GPUs do not count",
			func(s *setting) {
				s.view.Nodes[3].Status.Capacity = nil
				s.view.Nodes[4].Status.Capacity = nil
				cordon(s.view.Nodes[3], old)
				cordon(s.view.Nodes[5], old)
			},
			func(s *setting) {
				s.view.Nodes[3].Status.Capacity, s.view.Nodes[3].Labels = nil, map[string]string{"nvidia.com/gpu.present": "true"}
				s.view.Nodes[4].Status.Capacity = nil
				cordon(s.view.Nodes[3], old)
				cordon(s.view.Nodes[5], old)
			},
			Verdict{Wait, "pool-unavailable", "2 of 19 GPU nodes are out of use (gpu-4 cordoned, gpu-6 cordoned), with gpu-1 it would be 3, the limit is 1 (10 %, at least 1): bring one back, or raise poolUnavailablePercent in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"pool: parked, and soon to be cordoned",
			func(s *setting) { marked(s.view.Nodes[4], planFor(2, "gpu-5"), "stuck") },
			func(s *setting) {
				s.limits.NodesInFlight = 5
				marked(s.view.Nodes[4], planFor(2, "gpu-5"), "stuck")
				s.add(older(in(planFor(3, "gpu-6"), v1alpha1.Running, noon)))
			},
			Verdict{Wait, "pool-unavailable", "2 of 20 GPU nodes are out of use (gpu-5 parked, gpu-6 worked on by plan gpu-0000000003#1 (00000003)), with gpu-1 it would be 3, the limit is 2 (10 %, at least 1): bring one back, or raise poolUnavailablePercent in ConfigMap unpend-guards", time.Time{}, v1alpha1.Queued}},
		{"last healthy node of a shape",
			func(s *setting) { s.offers("gpu-1", "gpu-2"); s.wants("gpu-ffffffffff") },
			func(s *setting) { s.offers("gpu-1"); s.wants("gpu-ffffffffff") },
			Verdict{Refuse, "last-healthy", "gpu-1 is the last node in use that offers nvidia.com/mig-2g.10gb, which incident gpu-ffffffffff waits for: bring another back first, or choose another fix", time.Time{}, v1alpha1.Refused}},
		{"last healthy node of a shape that nobody else waits for",
			func(s *setting) { s.offers("gpu-1"); s.wants(s.plan.Spec.Incident) },
			func(s *setting) { s.offers("gpu-1"); s.wants(s.plan.Spec.Incident, "gpu-eeeeeeeeee", "gpu-dddddddddd") },
			Verdict{Refuse, "last-healthy", "gpu-1 is the last node in use that offers nvidia.com/mig-2g.10gb, which incident gpu-dddddddddd waits for: bring another back first, or choose another fix", time.Time{}, v1alpha1.Refused}},
		{"last healthy node: the other is cordoned",
			func(s *setting) { s.offers("gpu-1", "gpu-2"); s.wants("gpu-ffffffffff"); cordon(s.view.Nodes[2], old) },
			func(s *setting) { s.offers("gpu-1", "gpu-2"); s.wants("gpu-ffffffffff"); cordon(s.view.Nodes[1], old) },
			Verdict{Refuse, "last-healthy", "gpu-1 is the last node in use that offers nvidia.com/mig-2g.10gb, which incident gpu-ffffffffff waits for: bring another back first, or choose another fix", time.Time{}, v1alpha1.Refused}},
		{"last healthy node of a pool of one",
			func(s *setting) { s.view.Nodes = gpuNodes(1); s.wants("gpu-ffffffffff") },
			func(s *setting) { s.view.Nodes = gpuNodes(2); s.offers("gpu-1"); s.wants("gpu-ffffffffff") },
			Verdict{Refuse, "last-healthy", "gpu-1 is the last node in use that offers nvidia.com/mig-2g.10gb, which incident gpu-ffffffffff waits for: bring another back first, or choose another fix", time.Time{}, v1alpha1.Refused}},
	})
}

// offers leaves the shape to some nodes; the others have 0 of it.
func (s *setting) offers(nodes ...string) {
	for _, n := range s.view.Nodes {
		if !slices.Contains(nodes, n.Name) {
			n.Status.Allocatable = corev1.ResourceList{shape: resource.Quantity{}}
		}
	}
}

func (s *setting) wants(incidents ...string) {
	s.view.Wanted = map[string][]corev1.ResourceName{"gpu-0": {"cpu"}}
	for _, i := range incidents {
		s.view.Wanted[i] = []corev1.ResourceName{shape}
	}
}

// A plan that opens a node is not held back by what is closed.
func TestOpeningANodeTakesNoneAway(t *testing.T) {
	s := quiet()
	s.view.Nodes = gpuNodes(2)
	cordon(s.view.Nodes[0], noon.AddDate(0, 0, -1))
	cordon(s.view.Nodes[1], noon.AddDate(0, 0, -1))
	s.plan.Spec.Kind, s.plan.Spec.Kinds = diagnosis.UncordonNode, []diagnosis.FixKind{diagnosis.UncordonNode}
	s.plan.Spec.Actions = []diagnosis.Action{{Verb: diagnosis.VerbUncordon, Target: diagnosis.Target{Kind: "Node", Name: "gpu-1", UID: "uid-gpu-1"}}}
	if got := s.judge(); got.Decision != Allow {
		t.Errorf("got %+v", got)
	}
}

// Once it has begun, only the kill switch stops a plan between two writes.
func TestUnderWay(t *testing.T) {
	for _, phase := range []v1alpha1.Phase{v1alpha1.Running, v1alpha1.Undoing} {
		s := quiet()
		in(s.plan, phase, noon)
		s.view.Breaker.Open, s.plan.Spec.Expires = true, metav1.NewTime(noon.Add(-time.Hour))
		s.add(planFor(2, "gpu-1"))
		if got, want := s.judge(), (Verdict{Decision: Allow, Phase: phase}); got != want {
			t.Errorf("%s: got %+v, want %+v", phase, got, want)
		}
		s.view.Paused = true
		want := Verdict{Wait, "paused", "unpend is paused by a person: nothing is written until paused is false in ConfigMap unpend-guards", time.Time{}, phase}
		if got := s.judge(); got != want {
			t.Errorf("%s, paused: got %+v, want %+v", phase, got, want)
		}
	}
}
