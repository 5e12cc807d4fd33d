package controlplane

import (
	"testing"
)

// KillAPIServer ends the API server at once. again starts it as it was, and waits until it
// is ready: the others do without it meanwhile.
func (c *ControlPlane) KillAPIServer(tb testing.TB) (again func()) {
	tb.Helper()
	const name = "kube-apiserver"
	was := c.procs.end(name)
	return func() {
		tb.Helper()
		if err := c.procs.start(was.path, was.args...); err != nil {
			tb.Fatal(err)
		}
		if err := c.await(tb.Context(), []component{{name: name, health: c.host + "/readyz"}}); err != nil {
			tb.Fatal(err)
		}
	}
}
