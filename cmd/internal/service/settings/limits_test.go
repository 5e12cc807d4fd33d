package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A duration or size that cannot be meant is refused by its key, all of them at once.
func TestConfigIsChecked(t *testing.T) {
	for text, want := range map[string][]string{
		"watcher: {sweep: -5s}":                              {"watcher.sweep is -5s: it has to be between 1s and 1h0m0s"},
		"watcher: {sweep: 5x}":                               {`watcher.sweep is "5x": it has to be a duration, such as 30s, 5m or 24h`},
		"watcher: {sweep: 5}":                                {"watcher.sweep is 5: it has to be a duration"},
		"remediate: {deadlines: {run: true}, poll: fast}":    {"remediate.deadlines.run is true: it has to be a duration", `remediate.poll is "fast": it has to be a duration`},
		"narrate: {perHour: 1.5}":                            {"narrate.perHour is 1.5: it has to be a whole number"},
		"rca: {idleThreshold: low}":                          {`rca.idleThreshold is "low": it has to be a number`},
		"bus: {maxBytes: lots}":                              {`bus.maxBytes is "lots": it has to be a number of bytes, such as 512Mi`},
		"bus: {maxBytes: 1Ki}":                               {"bus.maxBytes is 1024: it has to be between 4194304 (4Mi) and 1099511627776 (1Ti)"},
		"bus: {maxBytes: 1000000000, replicas: three}":       {`bus.replicas is "three": it has to be a whole number`},
		"slack: [C0]":                                        {"slack: it has to be keys with their values"},
		"routes: {to: [slack]}":                              {"routes: it has to be a list"},
		"knowledge: {slack: {channels: gpu-help}}":           {`knowledge.slack.channels is "gpu-help": it has to be a list`},
		"kubectl: {events: sometimes}":                       {`kubectl.events is "sometimes": it has to be true or false`},
		"web: {metrics: {port: 9090}}":                       {"web.metrics: it has to be text"},
		"watcher: {sweep: 0s}":                               {"watcher.sweep is 0s: "},
		"watcher: {debounce: 2h}":                            {"watcher.debounce is 2h0m0s: "},
		"watcher: {sweep: 999h}":                             {"watcher.sweep is 999h0m0s: "},
		"rca: {idleWindow: -1m}":                             {"rca.idleWindow is -1m0s: "},
		"rca: {idleThreshold: -1}":                           {"rca.idleThreshold is -1: "},
		"rca: {idleThreshold: 101}":                          {"rca.idleThreshold is 101: "},
		"slack: {channel: C0}":                               {`slack.channel is "C0" and slack.tokenFile is ""`},
		"slack: {tokenFile: x}":                              {`slack.channel is "" and slack.tokenFile is "x"`},
		"jira: {project: ops}":                               {"jira.tokenFile is not given: ", `jira.deployment is "": it has to be cloud or datacenter`, "jira.url is no address: ", `jira.project is "ops": `, "jira.issueType is not given: "},
		"web: {mcp: ':8081'}":                                {`web.mcp is ":8081": it has to be a loopback address and a port`},
		"web: {mcp: 10.0.0.1:80}":                            {`web.mcp is "10.0.0.1:80": `},
		"web: {mcp: localhost}":                              {`web.mcp is "localhost": `},
		"bus: {maxBytes: -1}":                                {"bus.maxBytes is -1: it has to be between 4194304 (4Mi) and 1099511627776 (1Ti)"},
		"bus: {replicas: -1}":                                {"bus.replicas is -1: it has to be between 1 and 5"},
		"bus: {replicas: 6}":                                 {"bus.replicas is 6: "},
		"bus: {listen: \":4222\"}":                           {`bus.tokenFile is not given and bus.listen is ":4222": it has to be a file that holds a token`},
		"bus: {certFile: a}":                                 {`bus.certFile is "a" and bus.keyFile is "": it has to be both, or neither`},
		"bus: {tokenFile: a, credsFile: b}":                  {"bus.tokenFile and bus.credsFile are two ways to be let in: it has to be one"},
		"slack: {channel: C0, tokenFile: x, heardBy: me}":    {`slack.heardBy is "me": it has to be remediate or notify`},
		"bus: {maxBytes: 1000}":                              {"bus.maxBytes is 1000: "},
		"remediate: {poll: -1s}":                             {"remediate.poll is -1s: it has to be between 10ms and 1m0s"},
		"slack: {channel: C0, tokenFile: x, listen: \":1\"}": {`slack.listen is ":1" and slack.signingSecretFile is "": to hear clicks by HTTP it has to be an address, and a file`},
		"slack: {channel: C0, tokenFile: x, appTokenFile: y, signingSecretFile: z, listen: \":1\"}": {"slack.appTokenFile and slack.listen are two ways for clicks to come: it has to be one"},
		`web: {listen: ":8080"}`:        {`web.listen is ":8080": it has to be on loopback, as 127.0.0.1:8080`},
		"web: {listen: example.com:80}": {`web.listen is "example.com:80": `},
		"web: {listen: 127.0.0.1}":      {`web.listen is "127.0.0.1": `},
		"remediate: {poll: 1ns, deadlines: {evict: -1s, leave: 1ms, manager: 48h, wedge: -1s, run: -1s}}": {"remediate.poll is 1ns: ", "remediate.deadlines.evict is -1s: ",
			"remediate.deadlines.leave is 1ms: ", "remediate.deadlines.manager is 48h0m0s: ", "remediate.deadlines.wedge is -1s: ", "remediate.deadlines.run is -1s: "},
	} {
		path := filepath.Join(t.TempDir(), "unpend.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := ReadConfig(path)
		if err == nil {
			t.Errorf("%s is taken", text)
			continue
		}
		for _, says := range append(want, path+": ") {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", text, err, says)
			}
		}
		if n := strings.Count(err.Error(), "it has to be"); n != len(want) {
			t.Errorf("%s: %d keys are refused: %v", text, n, err)
		}
	}
	path := filepath.Join(t.TempDir(), "unpend.yaml")
	must(t, os.WriteFile(path, []byte("watcher: {sweep: 5s, debounce: 1ms}\nremediate: {poll: 100ms, deadlines: {wedge: 3s}}\nbus: {maxBytes: 4Mi}\nweb: {listen: \"[::1]:0\", hosts: [unpend.example.com], mcp: '[::1]:8081'}\nkubectl: {events: true}\n"), 0o600))
	if c, err := ReadConfig(path); err != nil || c.Bus.MaxBytes != 4<<20 {
		t.Error(c.Bus, err)
	}
	for text, want := range map[string]string{
		"watcher: {swep: 5s}\nslak: {channel: C0}":        "slak: there is no such key\nwatcher.swep: there is no such key",
		"remediate: {identities: [{user: a, mail: b@c}]}": "remediate.identities[0].mail: there is no such key",
		"web: {}\nweb: {}": `key "web" already set in map`,
		"a sentence":       "cannot unmarshal string",
	} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := ReadConfig(path); err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
