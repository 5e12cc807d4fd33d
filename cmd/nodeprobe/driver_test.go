//go:build cgo && linux

package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/nodeprobe"
)

type kubelet struct {
	v1.UnimplementedPodResourcesListerServer
}

// List: one pod by UUID of its second compute instance, one by DRA, on the L4.
func (kubelet) List(context.Context, *v1.ListPodResourcesRequest) (*v1.ListPodResourcesResponse, error) {
	return &v1.ListPodResourcesResponse{PodResources: []*v1.PodResources{
		{Namespace: "ml", Name: "train", Containers: []*v1.ContainerResources{{Name: "main", Devices: []*v1.ContainerDevices{{ResourceName: "nvidia.com/mig-3g.20gb", DeviceIds: []string{"MIG-three-b"}}}}}},
		{Namespace: "ml", Name: "serve", Containers: []*v1.ContainerResources{{Name: "main", DynamicResources: []*v1.DynamicResource{{ClaimResources: []*v1.ClaimResource{{DriverName: "gpu.nvidia.com", DeviceName: "gpu-0"}}}}}}},
	}}, nil
}

func output(t *testing.T, env []string, name string, args ...string) (out, complaints string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var c strings.Builder
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), &c
	data, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, c.String())
	}
	return string(data), c.String()
}

// TestRealBinary runs the program itself with a driver's library, compiled from
// testdata, and a kubelet: through the loader, go-nvml and gRPC, of drivers of
// three ages. A call of a function that the library lacks would kill it.
func TestRealBinary(t *testing.T) {
	dir, err := os.MkdirTemp("", "nodeprobe") // a short path, for the socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, program := filepath.Join(dir, "kubelet.sock"), filepath.Join(dir, "nodeprobe")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server, served := grpc.NewServer(), make(chan error, 1)
	v1.RegisterPodResourcesListerServer(server, kubelet{})
	go func() { served <- server.Serve(l) }()
	defer func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	output(t, nil, "go", "build", "-o", program, ".")
	header, _ := output(t, nil, "go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml")

	train, serve := nodeprobe.Holder{Namespace: "ml", Pod: "train", Container: "main"}, nodeprobe.Holder{Namespace: "ml", Pod: "serve", Container: "main"}
	l4 := nodeprobe.GPU{Index: 1, UUID: "GPU-l4", Product: "NVIDIA L4", MemoryMiB: 23034, Healthy: true, Holders: []nodeprobe.Holder{serve}}
	a100 := nodeprobe.GPU{Index: 0, UUID: "GPU-a100", Product: "NVIDIA A100-SXM4-40GB", MemoryMiB: 40960, Healthy: true}
	parted := func(mark string) nodeprobe.GPU {
		g := a100
		g.MIG = &nodeprobe.MIGMode{Current: true, Pending: true}
		g.Profiles = []nodeprobe.Profile{
			{Name: "1g.5gb" + mark, ID: 19, ComputeSlices: 1, MemorySlices: 1, MemoryMiB: 4864, Max: 7, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
			{Name: "3g.20gb" + mark, ID: 9, ComputeSlices: 3, MemorySlices: 4, MemoryMiB: 19968, Max: 2, Starts: []int{0, 4}},
		}
		g.Instances = []nodeprobe.Instance{
			{Profile: "1g.5gb" + mark, ID: 13, Start: 0, Size: 1, UUIDs: []string{"MIG-one"}},
			{Profile: "3g.20gb" + mark, ID: 1, Start: 4, Size: 4, UUIDs: []string{"MIG-three-a", "MIG-three-b"}, Holder: &train},
		}
		return g
	}
	for age, tc := range map[string]struct {
		macros []string
		want   nodeprobe.GPU
		says   string
	}{
		"R510": {nil, parted("!"), ""},
		"R470": {[]string{"-DBEFORE_NAMES"}, parted(""), ""},
		"R440": {[]string{"-DBEFORE_MIG"}, a100, "device MIG-three-b, held by ml/train, is on no GPU that was read"},
	} {
		t.Run(age, func(t *testing.T) {
			lib := t.TempDir()
			output(t, nil, "gcc", append(tc.macros, "-shared", "-fPIC", "-w", "-I", strings.TrimSpace(header), "-o", filepath.Join(lib, "libnvidia-ml.so.1"), "testdata/driver.c")...)
			out, says := output(t, []string{"LD_LIBRARY_PATH=" + lib}, program, "--once", "--node", "n", "--pod-resources-socket", socket)
			var got nodeprobe.NodeGeometry
			if err := yaml.UnmarshalStrict([]byte(out), &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got.Report.ObservedAt.Reset()
			want := nodeprobe.Report{Source: nodeprobe.SourceNVML, DriverVersion: "580.126.09", GPUs: []nodeprobe.GPU{tc.want, l4}}
			if diff := cmp.Diff(want, got.Report); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
			if (says == "") != (tc.says == "") || !strings.Contains(says, tc.says) {
				t.Errorf("it says %q", says)
			}
		})
	}
}
