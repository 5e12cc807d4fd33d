//go:build linux

package podresources

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// kubelet serves the real API.
type kubelet struct {
	v1.UnimplementedPodResourcesListerServer
	answer *v1.ListPodResourcesResponse
	err    error
}

func (k *kubelet) List(context.Context, *v1.ListPodResourcesRequest) (*v1.ListPodResourcesResponse, error) {
	return k.answer, k.err
}

// path is short enough for a socket, which t.TempDir may not be.
func path(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "kubelet.sock")
}

func listen(t testing.TB, socket string) net.Listener {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve serves the API on a socket until stopped, or the test ends.
func serve(t testing.TB, socket string, k v1.PodResourcesListerServer) (stop func()) {
	t.Helper()
	l, s := listen(t, socket), grpc.NewServer()
	if k != nil {
		v1.RegisterPodResourcesListerServer(s, k)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	stop = func() {
		s.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return stop
}

func devices(resource string, ids ...string) *v1.ContainerDevices {
	return &v1.ContainerDevices{ResourceName: resource, DeviceIds: ids}
}

func claim(driver, pool, device string) *v1.DynamicResource {
	return &v1.DynamicResource{ClaimName: "c", ClaimNamespace: "ml", ClaimResources: []*v1.ClaimResource{{DriverName: driver, PoolName: pool, DeviceName: device}}}
}

// TestList: every form of id comes back with who holds it; what is no GPU does not.
func TestList(t *testing.T) {
	defer goleak.VerifyNone(t)
	socket := path(t)
	stop := serve(t, socket, &kubelet{answer: &v1.ListPodResourcesResponse{PodResources: []*v1.PodResources{
		{Namespace: "ml", Name: "b", Containers: []*v1.ContainerResources{
			{Name: "main", Devices: []*v1.ContainerDevices{devices("nvidia.com/mig-1g.5gb", "MIG-2", "MIG-1"), devices("nvidia.com/hostdev", "0000:3b:00.2"), devices("nvidia.com/gpu", "nvidia0/gi3")}},
			{Name: "aside"},
		}},
		{Namespace: "ml", Name: "a", Containers: []*v1.ContainerResources{
			{Name: "main", Devices: []*v1.ContainerDevices{devices("nvidia.com/gpu.shared", "GPU-1::3"), devices("example.com/renamed", "GPU-2"), devices("rdma/hca", "mlx5_0")}},
		}},
		{Namespace: "dra", Name: "c", Containers: []*v1.ContainerResources{
			{Name: "main", DynamicResources: []*v1.DynamicResource{claim("gpu.nvidia.com", "node-1", "gpu-0-mig-1g5gb-19-2"), claim("compute-domain.nvidia.com", "node-1", "channel-0")}},
		}},
	}}})
	got, err := List(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := nodeprobe.Holder{Namespace: "ml", Pod: "a", Container: "main"}, nodeprobe.Holder{Namespace: "ml", Pod: "b", Container: "main"}, nodeprobe.Holder{Namespace: "dra", Pod: "c", Container: "main"}
	want := []nodeprobe.Allocation{
		{Holder: c, Name: "gpu-0-mig-1g5gb-19-2", DRA: true},
		{Holder: a, Name: "GPU-1::3"}, {Holder: a, Name: "GPU-2"},
		{Holder: b, Name: "MIG-1"}, {Holder: b, Name: "MIG-2"}, {Holder: b, Name: "nvidia0/gi3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	stop()
}

// TestLargeAnswer: above gRPC's own limit of 4 MiB.
func TestLargeAnswer(t *testing.T) {
	socket := path(t)
	answer := &v1.ListPodResourcesResponse{}
	for i := range 5000 {
		name := fmt.Sprintf("%0200d", i)
		answer.PodResources = append(answer.PodResources, &v1.PodResources{Namespace: name, Name: name, Containers: []*v1.ContainerResources{
			{Name: name, Devices: []*v1.ContainerDevices{devices("nvidia.com/gpu", "GPU-"+name)}, CpuIds: make([]int64, 200)}}})
	}
	serve(t, socket, &kubelet{answer: answer})
	got, err := List(t.Context(), socket)
	if err != nil || len(got) != 5000 {
		t.Errorf("%d allocations, %v", len(got), err)
	}
}

// TestErrors: what is in the way is told apart, in one line.
func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		kubelet v1.PodResourcesListerServer
		bare    bool // listens and serves nothing
		want    string
	}{
		"not served":   {bare: true, want: "does not serve PodResources v1"},
		"rate limited": {kubelet: &kubelet{err: status.Error(codes.ResourceExhausted, "rejected by rate limit")}, want: "the kubelet refuses for now"},
		"its own":      {kubelet: &kubelet{err: errors.New("cpu manager is not ready")}, want: "list pod resources: rpc error: code = Unknown desc = cpu manager is not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			socket := path(t)
			serve(t, socket, tc.kubelet)
			wantError(t, socket, tc.want)
		})
	}
	t.Run("no socket", func(t *testing.T) { wantError(t, path(t), "no kubelet socket at ") })
	t.Run("nobody listens", func(t *testing.T) {
		socket := path(t)
		l := listen(t, socket)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		l.Close()
		wantError(t, socket, "no kubelet listens on ")
	})
	t.Run("not allowed", func(t *testing.T) {
		socket := path(t)
		l := listen(t, socket)
		defer l.Close()
		if err := os.Chmod(socket, 0); err != nil {
			t.Fatal(err)
		}
		if err := explain(socket, dialAsNobody(t, socket)); !strings.Contains(err.Error(), "may not be used: it is root's") {
			t.Error(err)
		}
	})
	t.Run("told to stop", func(t *testing.T) {
		socket := path(t)
		l := listen(t, socket) // and nobody accepts
		defer l.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := List(ctx, socket); err == nil || !strings.Contains(err.Error(), "cancel") {
			t.Error(err)
		}
	})
}

func wantError(t *testing.T, socket, want string) {
	t.Helper()
	got, err := List(t.Context(), socket)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || got != nil {
		t.Errorf("%v, %v; want one line with %q", got, err, want)
	}
}

// dialAsNobody dials with the rights of uid 65534, for tests that run as root.
func dialAsNobody(t *testing.T, socket string) error {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := syscall.Setfsuid(65534); err != nil {
			done <- err
			return
		}
		c, err := net.Dial("unix", socket)
		if err == nil {
			c.Close()
		}
		done <- err
	}()
	err := <-done
	if err == nil {
		t.Fatal("nobody may dial")
	}
	return err
}

// TestKubeletRestarts: the next call finds it.
func TestKubeletRestarts(t *testing.T) {
	socket := path(t)
	serve(t, socket, &kubelet{answer: &v1.ListPodResourcesResponse{}})()
	wantError(t, socket, "no kubelet socket at ")
	serve(t, socket, &kubelet{answer: &v1.ListPodResourcesResponse{}})
	if got, err := List(t.Context(), socket); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}
