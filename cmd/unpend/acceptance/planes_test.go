package acceptance

import (
	"runtime"
	"testing"

	"github.com/unpend/unpend/testdata/controlplane"
)

// needsControlPlane marks a test that runs on the real control plane, beside others: for
// most of its time it waits for controllers.
func needsControlPlane(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the real control plane")
	}
	t.Parallel()
}

// planes has room for the control planes that run at the same time: each takes 1 GB, and
// a tenth of a processor or more while nothing happens. Nobody waits for a second one in the same goroutine
// but the replay, which is alone with that.
var planes = make(chan struct{}, max(4, runtime.GOMAXPROCS(0)))

// start starts a control plane for a test once there is room for it.
func start(t *testing.T, with controlplane.Extras) *controlplane.ControlPlane {
	t.Helper()
	planes <- struct{}{}
	t.Cleanup(func() { <-planes }) // once it is gone
	return controlplane.StartWith(t, with)
}
