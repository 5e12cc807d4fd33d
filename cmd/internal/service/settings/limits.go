package settings

import (
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// check holds every duration and size of the configuration to what can be meant by it. Each
// that cannot is told by its key.
func (c *Config) check() error {
	d := &c.Remediate.Deadlines
	wrong := []error{
		between("watcher.sweep", c.Watcher.Sweep.Duration, time.Second, time.Hour),
		between("watcher.debounce", c.Watcher.Debounce.Duration, time.Millisecond, time.Minute),
		c.Web.check(),
		between("rca.idleWindow", c.RCA.IdleWindow.Duration, time.Minute, 30*24*time.Hour),
	}
	if p := c.RCA.IdleThreshold; !(p > 0 && p <= 100) { // NaN is neither
		wrong = append(wrong, fmt.Errorf("rca.idleThreshold is %v: it has to be more than 0 and at most 100 percent", p))
	}
	wrong = append(wrong, c.Slack.check(), c.Knowledge.Check(QuotedIn(), c.Slack.AppTokenFile))
	wrong = append(wrong, c.Jira.check(), c.checkPaging(), c.Narrate.check())
	wrong = append(wrong, c.Bus.check())
	if at := c.Web.MCP; at != "" && !loopback(at) {
		wrong = append(wrong, fmt.Errorf("web.mcp is %q: it has to be a loopback address and a port, such as 127.0.0.1:8081, for callers send their tokens in plain text", at))
	}
	for _, optional := range []struct {
		key      string
		is       time.Duration
		min, max time.Duration
	}{
		{"remediate.poll", c.Remediate.Poll.Duration, 10 * time.Millisecond, time.Minute},
		{"remediate.deadlines.evict", d.Evict.Duration, time.Second, 24 * time.Hour},
		{"remediate.deadlines.leave", d.Leave.Duration, time.Second, 24 * time.Hour},
		{"remediate.deadlines.manager", d.Manager.Duration, time.Second, 24 * time.Hour},
		{"remediate.deadlines.wedge", d.Wedge.Duration, time.Second, 24 * time.Hour},
		{"remediate.deadlines.run", d.Run.Duration, time.Second, 24 * time.Hour},
	} {
		if optional.is != 0 { // not given: it has a default
			wrong = append(wrong, between(optional.key, optional.is, optional.min, optional.max))
		}
	}
	return errors.Join(wrong...)
}

// The bounds of what all streams hold together: below, one storm drops incidents; above, a
// number has a digit too many.
const (
	minBytes = 4 << 20
	maxBytes = 1 << 40
)

// maxReplicas is what nats-server takes for a stream (its StreamMaxReplicas).
const maxReplicas = 5

// loopback says whether an address is reached from this machine alone.
func loopback(address string) bool {
	host, port, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && port != "" && (host == "localhost" || ip != nil && ip.IsLoopback())
}

func between(key string, is, low, high time.Duration) error {
	if is < low || is > high {
		return fmt.Errorf("%s is %s: it has to be between %s and %s", key, is, low, high)
	}
	return nil
}

func size(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }
