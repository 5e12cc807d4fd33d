package bus

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	troubles *prometheus.GaugeVec
	failures *prometheus.CounterVec
	dead     prometheus.Gauge
}

func newMetrics(topics []Topic) *metrics {
	m := &metrics{
		troubles: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "unpend_bus_trouble", Help: "1 for the reason why messages are not taken now."}, []string{"reason"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "unpend_bus_publish_failures_total", Help: "Messages that were not taken, by topic and reason; most are tried again."}, []string{"topic", "reason"}),
		dead:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "unpend_dead_letters", Help: "Messages that could not be dealt with and are parked, until a later one of the same key could."}),
	}
	for _, r := range reasons {
		for _, t := range topics {
			m.failures.WithLabelValues(t.subject, string(r))
		}
	}
	m.trouble(nil)
	return m
}

// trouble sets the one that there is.
func (m *metrics) trouble(is *Trouble) {
	for _, r := range reasons {
		on := 0.0
		if is != nil && is.Reason == r {
			on = 1
		}
		m.troubles.WithLabelValues(string(r)).Set(on)
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.troubles, m.failures, m.dead}
}

func (m *metrics) register(with prometheus.Registerer) error {
	if with == nil {
		return nil
	}
	for _, c := range m.all() {
		if err := with.Register(c); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

func (m *metrics) unregister(with prometheus.Registerer) {
	if with == nil {
		return
	}
	for _, c := range m.all() {
		with.Unregister(c)
	}
}
