package executor

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/v1alpha1"
)

// metrics are the executor's figures. Their labels are closed sets: phases.
type metrics struct {
	ended  *prometheus.CounterVec
	took   *prometheus.HistogramVec
	plans  *prometheus.GaugeVec
	parked prometheus.Gauge
	newer  prometheus.Gauge
	stops  *prometheus.GaugeVec
}

func newMetrics() metrics {
	m := metrics{
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_remediations_total", Help: "Plans that have ended, by what they came to."}, []string{"outcome"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "unpend_remediation_duration_seconds", Help: "From a plan's first step to its end, by what it came to.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12)}, []string{"outcome"}), // 1 s to 34 min
		plans:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "unpend_remediations", Help: "Plans that are recorded, by phase, as the leader sees them."}, []string{"phase"}),
		parked: prometheus.NewGauge(prometheus.GaugeOpts{Name: "unpend_remediation_parked_nodes", Help: "Nodes that were left cordoned on purpose, as the leader sees them."}),
		newer:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "unpend_remediation_newer", Help: "Plans and marked nodes that a newer unpend has written and the leader leaves alone."}),
		stops:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "unpend_remediation_stopped", Help: "1 for what keeps every plan from beginning, as the leader sees it: the open breaker, or the kill switch (paused)."}, []string{"by"}),
	}
	m.stopped(false, false)
	for _, p := range v1alpha1.Phases() {
		m.plans.WithLabelValues(outcome(p))
		if p.Ended() {
			m.ended.WithLabelValues(outcome(p))
		}
	}
	return m
}

func (m metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.ended, m.took, m.plans, m.parked, m.newer, m.stops} {
		if err := r.Register(c); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// end counts a plan that has ended, and how long one took that had begun.
func (m metrics) end(s *v1alpha1.RemediationStatus) {
	m.ended.WithLabelValues(outcome(s.Phase)).Inc()
	if s.Began != nil && s.Ended != nil {
		m.took.WithLabelValues(outcome(s.Phase)).Observe(s.Ended.Sub(s.Began.Time).Seconds())
	}
}

// stopped tells what keeps every plan from beginning.
func (m metrics) stopped(breaker, paused bool) {
	for by, is := range map[string]bool{"breaker": breaker, "paused": paused} {
		on := 0.0
		if is {
			on = 1
		}
		m.stops.WithLabelValues(by).Set(on)
	}
}

// stand counts what is there.
func (m metrics) stand(plans []v1alpha1.Remediation, nodes []corev1.Node) {
	count := map[v1alpha1.Phase]int{}
	for i := range plans {
		phase := plans[i].Status.Phase
		if phase == "" {
			phase = v1alpha1.Pending
		}
		count[phase]++
	}
	for _, p := range v1alpha1.Phases() {
		m.plans.WithLabelValues(outcome(p)).Set(float64(count[p]))
	}
	parked := 0
	every := make([]*corev1.Node, len(nodes))
	for i := range nodes {
		every[i] = &nodes[i]
		if mark, err := diagnosis.OperationOn(&nodes[i]); err == nil && mark != nil && mark.Parked != "" {
			parked++
		}
	}
	m.parked.Set(float64(parked))
	m.newer.Set(float64(len(newerOf(every, plans))))
}
