package guard

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

func TestParse(t *testing.T) {
	all := `
nodesInFlight: 2
poolUnavailablePercent: 25
breaker: {percent: 50, atLeast: 4, window: 5m, failures: 2, failureWindow: 30m}
evictionsPerPlan: 0
evictionsPerHour: 7
coolDown: 0s
oppositeWithin: 48h
planTTL: 90s
freeze:
- {cron: "0 18 * * 5", duration: 62h, timezone: Europe/Berlin}
- {cron: "0 0 24 12 *", duration: 72h}
twoPersons: {modeChange: false, nodes: 0, evictions: 5, higherPriority: false}
`
	some := Defaults()
	some.Breaker.Percent = 30
	for _, c := range []struct {
		name, text string
		want       Limits
	}{
		{"nothing", "", Defaults()},
		{"a comment", "# as it comes\n", Defaults()},
		{"nulls", "coolDown:\nbreaker: {percent: null}\nfreeze:\n", Defaults()},
		{"a part", "breaker: {percent: 30}", some},
		{"all", all, Limits{
			NodesInFlight: 2, PoolUnavailablePercent: 25,
			Breaker:          Breaker{50, 4, 5 * time.Minute, 2, 30 * time.Minute},
			EvictionsPerPlan: 0, EvictionsPerHour: 7, CoolDown: 0, OppositeWithin: 48 * time.Hour, PlanTTL: 90 * time.Second,
			Freeze: []Freeze{{"0 18 * * 5", 62 * time.Hour, "Europe/Berlin"}, {"0 0 24 12 *", 72 * time.Hour, "UTC"}},
		}.withTwo(TwoPersons{false, 0, 5, false})},
	} {
		if got, err := Parse([]byte(c.text)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
}

func (l Limits) withTwo(p TwoPersons) Limits { l.TwoPersons = p; return l }

func TestParseRefuses(t *testing.T) {
	const number = "it must be a whole number from "
	const span = "it must be a duration such as 90s, 15m or 24h, of at least "
	for text, want := range map[string]string{
		"nodesInFlight: 0":                                       "nodesInFlight is 0: " + number + "1 to 1000000",
		"nodesInFlight: -1":                                      "nodesInFlight is -1: " + number + "1 to 1000000",
		"nodesInFlight: 1.5":                                     "nodesInFlight is 1.5: " + number + "1 to 1000000",
		"nodesInFlight: '1'":                                     "nodesInFlight is 1: " + number + "1 to 1000000",
		"nodesInFlight: 1e30":                                    "nodesInFlight is 1e+30: " + number + "1 to 1000000",
		"poolUnavailablePercent: 101":                            "poolUnavailablePercent is 101: " + number + "0 to 100",
		"poolUnavailablePercent: 10%":                            "poolUnavailablePercent is 10%: " + number + "0 to 100",
		"breaker: {percent: 101}":                                "breaker.percent is 101: " + number + "0 to 100",
		"breaker: {atLeast: 0}":                                  "breaker.atLeast is 0: " + number + "1 to 1000000",
		"breaker: {failures: 0}":                                 "breaker.failures is 0: " + number + "1 to 1000000",
		"breaker: {window: 0s}":                                  "breaker.window is 0s: " + span + "1s",
		"breaker: {failureWindow: 60}":                           "breaker.failureWindow is 60: " + span + "1s",
		"breaker: 20":                                            "breaker is 20: it must have percent, atLeast, window, failures, failureWindow",
		"breaker: {open: true}":                                  "breaker.open is not known: there are percent, atLeast, window, failures, failureWindow",
		"evictionsPerPlan: -1":                                   "evictionsPerPlan is -1: " + number + "0 to 1000000",
		"evictionsPerHour: many":                                 "evictionsPerHour is many: " + number + "0 to 1000000",
		"coolDown: -1s":                                          "coolDown is -1s: " + span + "0s",
		"oppositeWithin: 1d":                                     "oppositeWithin is 1d: " + span + "0s",
		"planTTL: 0s":                                            "planTTL is 0s: " + span + "1s",
		"twoPersons: {modeChange: 1}":                            "twoPersons.modeChange is 1: it must be true or false",
		"twoPersons: {nodes: -1}":                                "twoPersons.nodes is -1: " + number + "0 to 1000000",
		"NodesInFlight: 1":                                       "NodesInFlight is not known: there are nodesInFlight, poolUnavailablePercent, breaker, evictionsPerPlan, evictionsPerHour, coolDown, oppositeWithin, planTTL, twoPersons, freeze",
		"coolDown: -1s\nnodesInFlight: 0":                        "coolDown is -1s: " + span + "0s\nnodesInFlight is 0: " + number + "1 to 1000000",
		"freeze: {cron: x}":                                      "freeze must be a list of cron, duration and timezone",
		"freeze: [weekend]":                                      "freeze[0] must have cron, duration and timezone",
		"freeze: [{duration: 1h}]":                               "freeze[0] must have cron and duration",
		"freeze: [{cron: '0 0 * * *'}]":                          "freeze[0] must have cron and duration",
		window("@daily", "1h", "UTC"):                            "freeze[0].cron is @daily: it must be minute, hour, day of month, month and day of week: parser does not accept descriptors: @daily",
		window("0 24 * * *", "1h", "UTC"):                        "freeze[0].cron is 0 24 * * *: it must be minute, hour, day of month, month and day of week: end of range (24) above maximum (23): 24",
		window("0 0 30 2 *", "1h", "UTC"):                        "freeze[0].cron is 0 0 30 2 *: it never happens",
		window("TZ=UTC", "1h", "UTC"):                            "freeze[0].cron is TZ=UTC: the zone belongs into timezone",
		window("", "1h", "UTC"):                                  "freeze[0].cron is : it must be a text that is not empty",
		window("0 0 * * *", "0s", "UTC"):                         "freeze[0].duration is 0s: " + span + "1m",
		window("0 0 * * *", "1h", "Mars"):                        "freeze[0].timezone is Mars: no such zone is known; it must be one such as Europe/Berlin or UTC",
		window("0 0 * * *", "1h", "Local"):                       "freeze[0].timezone is Local: it must be a zone such as Europe/Berlin or UTC",
		"freeze: [{cron: '0 0 * * *', duration: 1h, zone: UTC}]": "freeze[0].zone is not known: there are cron, duration, timezone",
		"coolDown: 1h\n---\ncoolDown: 0s\n":                      "it is more than one document",
		"coolDown: 1h\ncoolDown: 0s\n":                           `error converting YAML to JSON: yaml: unmarshal errors:` + "\n" + `  line 2: key "coolDown" already set in map`,
	} {
		l, err := Parse([]byte(text))
		if err == nil || err.Error() != "read limits.yaml: "+want {
			t.Errorf("%s:\n got %v\nwant read limits.yaml: %s", text, err, want)
		}
		if !reflect.DeepEqual(l, Defaults()) {
			t.Errorf("%s: what is wrong has changed a limit: %+v", text, l)
		}
	}
}

func window(cron, duration, zone string) string {
	return "freeze: [{cron: '" + cron + "', duration: " + duration + ", timezone: " + zone + "}]"
}

// What is shown of the limits is what can be put into the ConfigMap.
func TestShownAsRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := Defaults()
		n := func(label string, least, most int) int { return rapid.IntRange(least, most).Draw(r, label) }
		d := func(label string, least int) time.Duration {
			return time.Duration(n(label, least, 1<<30)) * time.Second
		}
		b := func(label string) bool { return rapid.Bool().Draw(r, label) }
		l.NodesInFlight, l.PoolUnavailablePercent = n("nodes", 1, 1000000), n("pool", 0, 100)
		l.Breaker = Breaker{n("percent", 0, 100), n("atLeast", 1, 99), d("window", 1), n("failures", 1, 99), d("failureWindow", 1)}
		l.EvictionsPerPlan, l.EvictionsPerHour = n("perPlan", 0, 99), n("perHour", 0, 99)
		l.CoolDown, l.OppositeWithin, l.PlanTTL = d("coolDown", 0), d("opposite", 0), d("ttl", 1)
		l.TwoPersons = TwoPersons{b("mode"), n("twoNodes", 0, 99), n("twoEvictions", 0, 99), b("priority")}
		for range n("windows", 0, 3) {
			l.Freeze = append(l.Freeze, Freeze{"0 18 * * 5", d("duration", 60), rapid.SampledFrom([]string{"UTC", "Asia/Tokyo"}).Draw(r, "zone")})
		}
		text, err := yaml.Marshal(l)
		if err != nil {
			r.Fatal(err)
		}
		if got, err := Parse(text); err != nil || !reflect.DeepEqual(got, l) {
			r.Fatalf("%s\ngot  %+v, %v\nwant %+v", text, got, err, l)
		}
	})
}

func TestDefaultsAsShown(t *testing.T) {
	got, err := json.Marshal(Defaults())
	want := `{"breaker":{"atLeast":3,"failureWindow":"1h","failures":3,"percent":20,"window":"10m"},"coolDown":"1h","evictionsPerHour":100,"evictionsPerPlan":30,` +
		`"freeze":[],"nodesInFlight":1,"oppositeWithin":"24h","planTTL":"15m","poolUnavailablePercent":10,"twoPersons":{"evictions":10,"higherPriority":true,"modeChange":true,"nodes":1}}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

// No text makes Parse panic, and what it takes it can judge by.
func TestParseOfAnything(t *testing.T) {
	word := rapid.SampledFrom([]string{"TZ", "CRON_TZ", "=", " ", "*", "/", "-", ",", "0", "7", "60", "L", "?", "@every 1s", "UTC", "mon", "'", "\t"})
	taken := 0
	rapid.Check(t, func(r *rapid.T) {
		cron := strings.Join(rapid.SliceOfN(word, 0, 12).Draw(r, "words"), "")
		if rapid.Bool().Draw(r, "plausible") {
			cron = strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"*", "0", "1-5", "*/2", "1,7", "31"}), 5, 5).Draw(r, "fields"), " ")
		}
		text, err := yaml.Marshal(map[string]any{"freeze": []any{map[string]any{"cron": cron, "duration": "1h"}}})
		if err != nil {
			r.Fatal(err)
		}
		l, err := Parse(text)
		if err != nil {
			return
		}
		taken++
		if _, err := l.Freeze[0].end(noon); err != nil {
			r.Fatalf("%q was taken: %v", cron, err)
		}
	})
	if taken == 0 {
		t.Error("the generator made no window that is taken")
	}
}

func TestPaused(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "false": false, " false\n": false, "": true, "no": true, "False": true} {
		if got := Paused(map[string]string{"paused": text}); got != want {
			t.Errorf("%q: got %t", text, got)
		}
	}
	if Paused(nil) || Paused(map[string]string{"limits.yaml": "true"}) {
		t.Error("paused without a switch")
	}
}

// A window that crosses the change of the clocks lasts as long as it says.
func TestFreezeAcrossSummerTime(t *testing.T) {
	f := Freeze{"0 1 * * 0", 4 * time.Hour, "Europe/Berlin"} // on 29 March 2026, 2:00 is 3:00
	start := time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		at   time.Time
		want time.Time
	}{
		{start.Add(-time.Second), time.Time{}},
		{start, start.Add(4 * time.Hour)},
		{start.Add(4*time.Hour - time.Second), start.Add(4 * time.Hour)},
		{start.Add(4 * time.Hour), time.Time{}},
	} {
		if got, err := f.end(c.at); err != nil || !got.Equal(c.want) {
			t.Errorf("%s: got %s, %v; want %s", c.at, got, err, c.want)
		}
	}
}
