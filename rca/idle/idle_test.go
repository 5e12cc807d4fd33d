package idle

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/testdata/prometheus"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// story is what one pod's device did: its value at a time before noon; ok is false
// where there is no sample.
type story struct {
	metric string
	labels string
	value  func(ago time.Duration) (v float64, ok bool)
}

const interval = 30 * time.Second

// record writes the samples of 3 h as an exporter and Prometheus would have them.
func record(stories []story) string {
	var out strings.Builder
	for _, metric := range []string{engineActive, engineRatio, gpuUtil, gpuRatio} {
		fmt.Fprintf(&out, "# TYPE %s gauge\n", metric)
		for _, s := range stories {
			if s.metric != metric {
				continue
			}
			for ago := 3 * time.Hour; ago >= 0; ago -= interval {
				if v, ok := s.value(ago); ok {
					fmt.Fprintf(&out, "%s{%s} %s %d\n", metric, s.labels, number(v), noon.Add(-ago).Unix())
				}
			}
		}
	}
	return out.String() + "# EOF\n"
}

func number(v float64) string {
	if math.IsNaN(v) {
		return "NaN"
	}
	return fmt.Sprintf("%g", v)
}

func always(v float64) func(time.Duration) (float64, bool) {
	return func(time.Duration) (float64, bool) { return v, true }
}

// during is v from so long ago to so long ago, and otherwise something else.
func during(from, to time.Duration, v, otherwise float64) func(time.Duration) (float64, bool) {
	return func(ago time.Duration) (float64, bool) {
		if ago <= from && ago >= to {
			return v, true
		}
		return otherwise, true
	}
}

// missing has no sample in a time.
func missing(from, to time.Duration) func(time.Duration) (float64, bool) {
	return func(ago time.Duration) (float64, bool) { return 0, ago > from || ago < to }
}

// whole are the labels of a GPU without MIG, mig those of an instance.
func whole(pod string, gpu int) string {
	return fmt.Sprintf(`gpu="%d",UUID="GPU-%s-%d",device="nvidia%d",modelName="NVIDIA A100-SXM4-40GB",Hostname="gpu-1",container="main",namespace="demo",pod="%s"`, gpu, pod, gpu, gpu, pod)
}

func mig(pod string, instance int) string {
	return whole(pod, 0) + fmt.Sprintf(`,GPU_I_PROFILE="1g.5gb",GPU_I_ID="%d"`, instance)
}

// renamed is how a scrape without honor_labels leaves them.
func renamed(labels, exporter string) string {
	r := strings.NewReplacer(`container="`, `exported_container="`, `namespace="`, `exported_namespace="`, `pod="`, `exported_pod="`)
	return r.Replace(labels) + fmt.Sprintf(`,container="exporter",namespace="gpu-operator",pod="%s"`, exporter)
}

const (
	hour   = time.Hour
	window = 30 * time.Minute
	// notSeen is said of a pod with whole GPUs: nothing is passed over in silence.
	notSeen = "Prometheus has no series of its GPUs (looked for DCGM_FI_PROF_GR_ENGINE_ACTIVE, DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO, DCGM_FI_DEV_GPU_UTIL, DCGM_FI_DEV_GPU_UTIL_RATIO)"
)

// Each pod is one case; what Prometheus holds is real, the whole window of it.
func TestIdleIsSeenForTheWholeWindow(t *testing.T) {
	ran := noon.Add(-2 * hour)
	cases := []struct {
		pod     string
		holder  diagnosis.Holder // Devices 1 and running for 2 h unless said otherwise
		untold  bool             // since when it runs
		stories []story
		want    diagnosis.Use
	}{
		{pod: "idle", stories: []story{{engineActive, whole("idle", 0), during(3*hour, 95*time.Minute, 0.9, 0.01)}},
			want: diagnosis.Use{Idle: true, Max: 1, Since: noon.Add(-94 * time.Minute)}},
		{pod: "idle-by-util", stories: []story{{gpuUtil, whole("idle-by-util", 0), always(0)}},
			want: diagnosis.Use{Idle: true, Since: ran}},
		{pod: "idle-mig", holder: diagnosis.Holder{MIG: true}, stories: []story{{engineActive, mig("idle-mig", 13), always(0.04)}},
			want: diagnosis.Use{Idle: true, Max: 4, Since: ran}},
		{pod: "idle-renamed", stories: []story{{engineActive, renamed(whole("idle-renamed", 0), "dcgm-a"), always(0)}},
			want: diagnosis.Use{Idle: true, Since: ran}},
		{pod: "idle-exporter-restarted", stories: []story{
			{engineActive, renamed(whole("idle-exporter-restarted", 0), "dcgm-a"), missing(10*time.Minute, 0)},
			{engineActive, renamed(whole("idle-exporter-restarted", 0), "dcgm-b"), missing(4*hour, 10*time.Minute)}},
			want: diagnosis.Use{Idle: true, Since: ran}},
		{pod: "idle-strategy-single", stories: []story{
			{engineActive, mig("idle-strategy-single", 7), always(0)},
			{gpuUtil, whole("idle-strategy-single", 0), always(99)}}, // of the GPU: others work on it
			want: diagnosis.Use{Idle: true, Since: ran}},
		// From dcgm-exporter 4.9 on the names are others, and utilisation is a ratio.
		{pod: "idle-by-ratio", stories: []story{{engineRatio, whole("idle-by-ratio", 0), always(0.03)}},
			want: diagnosis.Use{Idle: true, Max: 3, Since: ran}},
		{pod: "idle-by-gpu-ratio", stories: []story{{gpuRatio, whole("idle-by-gpu-ratio", 0), always(0.02)}},
			want: diagnosis.Use{Idle: true, Max: 2, Since: ran}},
		{pod: "idle-mig-by-ratio", holder: diagnosis.Holder{MIG: true}, stories: []story{{engineRatio, mig("idle-mig-by-ratio", 13), always(0.01)}},
			want: diagnosis.Use{Idle: true, Max: 1, Since: ran}},
		{pod: "idle-exporter-upgraded", stories: []story{
			{engineActive, whole("idle-exporter-upgraded", 0), missing(10*time.Minute, 0)},
			{engineRatio, whole("idle-exporter-upgraded", 0), missing(4*hour, 10*time.Minute)}},
			want: diagnosis.Use{Idle: true, Since: ran}},
		{pod: "idle-under-two-exporters", holder: diagnosis.Holder{Devices: 2}, stories: []story{
			{gpuUtil, whole("idle-under-two-exporters", 0), always(1)}, {gpuRatio, whole("idle-under-two-exporters", 1), always(0.01)}},
			want: diagnosis.Use{Idle: true, Max: 1, Since: ran}},
		{pod: "works-by-gpu-ratio", stories: []story{{gpuRatio, whole("works-by-gpu-ratio", 0), always(0.5)}}, want: diagnosis.Use{Max: 50}},
		{pod: "works-by-ratio", stories: []story{
			{gpuUtil, whole("works-by-ratio", 0), always(0)}, {engineRatio, whole("works-by-ratio", 0), always(0.25)}}, want: diagnosis.Use{Max: 25}},
		{pod: "idle-strategy-single-by-ratio", stories: []story{
			{engineRatio, mig("idle-strategy-single-by-ratio", 7), always(0)},
			{gpuRatio, whole("idle-strategy-single-by-ratio", 0), always(0.99)}},
			want: diagnosis.Use{Idle: true, Since: ran}},

		{pod: "working", stories: []story{{engineActive, whole("working", 0), always(0.8)}}, want: diagnosis.Use{Max: 80}},
		{pod: "at-the-threshold", stories: []story{{gpuUtil, whole("at-the-threshold", 0), always(5)}}, want: diagnosis.Use{Max: 5}},
		{pod: "paused", stories: []story{{engineActive, whole("paused", 0), during(20*time.Minute, 0, 0, 0.95)}}, want: diagnosis.Use{Max: 95}},
		{pod: "worked-once", stories: []story{{engineActive, whole("worked-once", 0), during(17*time.Minute, 17*time.Minute, 1, 0)}}, want: diagnosis.Use{Max: 100}},
		{pod: "one-of-two-works", holder: diagnosis.Holder{Devices: 2}, stories: []story{
			{engineActive, whole("one-of-two-works", 0), always(0)}, {engineActive, whole("one-of-two-works", 1), always(0.5)}}, want: diagnosis.Use{Max: 50}},
		{pod: "util-works", stories: []story{
			{engineActive, whole("util-works", 0), always(0)}, {gpuUtil, whole("util-works", 0), always(70)}}, want: diagnosis.Use{Max: 70}},
		{pod: "works-in-gaps", stories: []story{{engineActive, whole("works-in-gaps", 0), func(ago time.Duration) (float64, bool) { return 0.6, ago == 9*time.Minute }}}, want: diagnosis.Use{Max: 60}},

		{pod: "young", holder: diagnosis.Holder{Running: noon.Add(-10 * time.Minute)}, stories: []story{{engineActive, whole("young", 0), always(0)}},
			want: diagnosis.Use{Unknown: "runs for 10 min, less than the window of 30 min"}},
		{pod: "started-not-told", untold: true, stories: []story{{engineActive, whole("started-not-told", 0), always(0)}},
			want: diagnosis.Use{Unknown: "since when it runs is not told"}},
		{pod: "series-began-late", stories: []story{{engineActive, whole("series-began-late", 0), missing(4*hour, 10*time.Minute)}},
			want: diagnosis.Use{Unknown: "no sample in 10 of 15 parts of the last 30 min"}},
		{pod: "series-ended", stories: []story{{engineActive, whole("series-ended", 0), missing(7*time.Minute, 0)}},
			want: diagnosis.Use{Unknown: "no sample in 3 of 15 parts of the last 30 min"}},
		{pod: "gap", stories: []story{{engineActive, whole("gap", 0), missing(20*time.Minute, 13*time.Minute)}},
			want: diagnosis.Use{Unknown: "no sample in 3 of 15 parts of the last 30 min"}},
		{pod: "not-a-number", stories: []story{{engineActive, whole("not-a-number", 0), during(20*time.Minute, 11*time.Minute, math.NaN(), 0)}},
			want: diagnosis.Use{Unknown: "no sample in 4 of 15 parts of the last 30 min"}},
		{pod: "one-of-two-seen", holder: diagnosis.Holder{Devices: 2}, stories: []story{{engineActive, whole("one-of-two-seen", 0), always(0)}},
			want: diagnosis.Use{Unknown: "Prometheus has series of 1 of its 2 GPUs"}},
		{pod: "not-seen", want: diagnosis.Use{Unknown: notSeen}},
		{pod: "mig-by-util", holder: diagnosis.Holder{MIG: true}, stories: []story{
			{gpuUtil, whole("mig-by-util", 0), always(0)}, {gpuUtil, mig("mig-by-util", 3), always(0)}, {engineActive, whole("mig-by-util", 0), always(0)}},
			want: diagnosis.Use{Unknown: "Prometheus has no series of its GPUs (looked for DCGM_FI_PROF_GR_ENGINE_ACTIVE, DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO)"}},
		{pod: "other.namespace", stories: []story{{engineActive, strings.ReplaceAll(whole("other.namespace", 0), "demo", "dema"), always(0)}},
			want: diagnosis.Use{Unknown: notSeen}},
	}
	var stories []story
	var holders []diagnosis.Holder
	want := map[diagnosis.PodName]diagnosis.Use{}
	for _, k := range cases {
		stories = append(stories, k.stories...)
		h := k.holder
		h.PodName, h.Devices = diagnosis.PodName{Namespace: "demo", Name: k.pod}, max(h.Devices, 1)
		if h.Running.IsZero() && !k.untold {
			h.Running = ran
		}
		holders = append(holders, h)
		u := k.want
		u.Watched = window
		want[h.PodName] = u
	}
	c := client(t, Options{Address: prometheus.Record(t, record(stories))})
	got, err := c.Measure(t.Context(), noon, holders)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Among more pods than are asked for by name they are told the same.
	crowd := slices.Clone(holders)
	for i := range maxNamed {
		name := diagnosis.PodName{Namespace: "demo", Name: fmt.Sprintf("crowd-%d", i)}
		crowd = append(crowd, diagnosis.Holder{PodName: name, Devices: 1, Running: ran})
		want[name] = diagnosis.Use{Watched: window, Unknown: notSeen}
	}
	got, err = c.Measure(t.Context(), noon, crowd)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	// A day later nothing of it is left in the window.
	got, err = c.Measure(t.Context(), noon.Add(24*hour), holders)
	if err != nil || len(got) != len(holders) {
		t.Fatal(len(got), err)
	}
	for pod, u := range maps.All(got) {
		if u.Idle || u.Unknown == "" {
			t.Errorf("%s a day later: %+v", pod.Name, u)
		}
	}
}

func client(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{
		"no address":     {},
		"no host":        {Address: "http://"},
		"another scheme": {Address: "file:///etc/passwd"},
		"a password":     {Address: "http://me:secret@prometheus:9090"},
		"a query":        {Address: "http://prometheus:9090/?x=y"},
		"not an address": {Address: "http://[::1"},
		"short window":   {Address: "http://prometheus:9090", Window: time.Millisecond},
		"long window":    {Address: "http://prometheus:9090", Window: 8 * 24 * hour},
		"below zero":     {Address: "http://prometheus:9090", Threshold: -1},
		"above hundred":  {Address: "http://prometheus:9090", Threshold: 101},
	} {
		if c, err := New(o); err == nil {
			t.Errorf("%s is taken: %+v", name, c.opts)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s is shown: %v", name, err)
		}
	}
	c := client(t, Options{Address: "https://prometheus.example/base/"})
	if got := []any{c.opts.Window, c.opts.Threshold, c.opts.Deadline}; !cmp.Equal(got, []any{30 * time.Minute, 5.0, 2 * time.Second}) {
		t.Errorf("defaults %v", got)
	}
}
