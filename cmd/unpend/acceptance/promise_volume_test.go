package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/unpend/unpend/testdata/controlplane"
)

// volume is 24 MiB that only the service sees, mounted for it by unshare(1), which needs no
// privileges; the kernel shows them to us below the process's root.
const volume = `mount -t tmpfs -o size=24m tmpfs "$1" && if [ "$2" = full ]; then head -c 24M /dev/zero > "$1/ballast"; fi; shift 2; exec "$@"`

// stored starts the service with its store on such a volume.
func stored(t *testing.T, c *controlplane.ControlPlane, how string) (o *observer, ballast string) {
	t.Helper()
	dir := t.TempDir()
	o = observe(t, c, fmt.Sprintf("{storeDir: %q}", filepath.Join(dir, "nats")), "unshare", "-Urm", "sh", "-c", volume, "sh", dir, how)
	return o, filepath.Join("/proc", fmt.Sprint(o.cmd.Process.Pid), "root", dir, "ballast")
}

// promiseR07: the volume of the store is full, again and again, and at the start. The
// service says so within 5 s and stays, and works within 10 s after there is room; what began
// to wait meanwhile is diagnosed, and nothing that was stored is lost.
func promiseR07(t *testing.T) {
	needsControlPlane(t)
	c := start(t, controlplane.Extras{})
	c.AddNode(t, all1g("gpu-1"))
	c.WaitForServiceAccount(t, "default")
	var said, ready, explained time.Duration
	held := 0
	o, ballast := stored(t, c, "empty")
	o.says(t, "ok", time.Minute)
	all := o.waits(t, "before", 2)
	o.explains(t, all, 20*time.Second)
	for round := range 3 {
		if f, err := os.Create(ballast); err == nil {
			for block := make([]byte, 64<<10); err == nil; {
				_, err = f.Write(block)
			}
			must(t, f.Close())
		} else {
			t.Fatal(err)
		}
		said = max(said, o.says(t, "store-full since ", 5*time.Second))
		if got := o.figure(t, `unpend_bus_trouble{reason="store-full"}`); got != 1 {
			t.Errorf("the metric says %v", got)
		}
		meanwhile := o.waits(t, fmt.Sprintf("meanwhile-%d", round), 2)
		<-time.After(3 * time.Second) // they are published, and refused
		o.says(t, "store-full since ", time.Second)
		must(t, os.Remove(ballast))
		began := time.Now()
		ready = max(ready, o.says(t, "ok", 10*time.Second))
		o.explains(t, meanwhile, 10*time.Second)
		explained = max(explained, time.Since(began))
		held++
	}
	o.kill()
	o, ballast = stored(t, c, "full")
	o.says(t, "store-full since ", time.Minute)
	must(t, os.Remove(ballast))
	began := time.Now()
	ready = max(ready, o.says(t, "ok", 10*time.Second))
	o.explains(t, all, 20*time.Second)
	explained = max(explained, time.Since(began))
	if n := o.told("and is parked"); n > 0 {
		t.Errorf("%d messages are parked", n)
	}
	held++
	report(t, held, 4, fmt.Sprintf("a full volume of 24 MiB is said after %.1f s, ready %.1f s after there is room, diagnosed by %.1f s; 0 restarts; once full from the start", said.Seconds(), ready.Seconds(), explained.Seconds()))
}
