package acceptance

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/unpend/unpend/testdata/controlplane"
)

// promiseR05: the service is killed at random moments of a storm, with its bus inside. None
// of the incidents is lost: the last one that starts knows and explains all of them, and
// those that were resolved meanwhile are over.
func promiseR05(t *testing.T) {
	needsControlPlane(t)
	kills := controlplane.Of(6, 12)
	if soak() {
		kills = 200
	}
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	bus := fmt.Sprintf("{storeDir: %q}", filepath.Join(t.TempDir(), "nats"))
	moments := rand.New(rand.NewPCG(5, 0))
	var names []string
	o := observe(t, c, bus)
	for n := range kills {
		names = append(names, o.waits(t, fmt.Sprintf("storm-%03d", n), 2)...)
		<-time.After(time.Duration(moments.IntN(2500)) * time.Millisecond)
		o.kill()
		o = observe(t, c, bus)
	}
	o.says(t, "ok", time.Minute)
	took := o.explains(t, names, time.Minute)
	if got := o.figure(t, "unpend_dead_letters"); got != 0 {
		t.Errorf("%v dead letters", got)
	}
	report(t, kills, kills, fmt.Sprintf("kill -9 at random moments: all %d incidents explained %.1f s after the last start, 0 lost", len(names), took.Seconds()))
}
