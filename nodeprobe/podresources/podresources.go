// Package podresources asks the kubelet of this node which devices it has given
// to which containers.
package podresources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/unpend/unpend/nodeprobe"
)

// Socket is where the kubelet listens.
const Socket = "/var/lib/kubelet/pod-resources/kubelet.sock"

const (
	// timeout of one call; the kubelet answers from memory.
	timeout = 10 * time.Second
	// maxAnswer is above gRPC's own 4 MiB: the answer has the CPUs and memory of
	// every pod of the node in it.
	maxAnswer = 16 << 20
	// draDriver is the DRA driver whose devices are GPUs.
	draDriver = "gpu.nvidia.com"
	// gpus and migs are the prefixes of what NVIDIA's device plugin advertises.
	// Others of nvidia.com are network cards (network operator) or no GPUs of the
	// driver (KubeVirt).
	gpus = "nvidia.com/gpu"
	migs = "nvidia.com/mig-"
)

// List asks the kubelet behind a socket for the GPU devices that containers
// hold, sorted. The error is one sentence: the socket is missing, may not be
// used, nobody listens, no answer, or an answer that is not one. Holders are
// then unknown. Every call dials again: gRPC would stay away from a kubelet that
// restarts for up to two minutes.
func List(ctx context.Context, socket string) ([]nodeprobe.Allocation, error) {
	var dialed atomic.Pointer[error]
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", socket)
		dialed.Store(&err)
		return c, err
	}
	conn, err := grpc.NewClient("passthrough:///kubelet", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", socket, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := v1.NewPodResourcesListerClient(conn).List(ctx, &v1.ListPodResourcesRequest{})
	if err != nil {
		if d := dialed.Load(); d != nil && *d != nil {
			err = *d
		}
		return nil, explain(socket, err)
	}
	return allocations(answer), nil
}

// explain says what stands between us and the kubelet.
func explain(socket string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("no kubelet socket at %s: is the host's folder mounted", socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the kubelet socket %s may not be used: it is root's", socket)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no kubelet listens on %s", socket)
	}
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		return fmt.Errorf("the kubelet does not answer on %s within %s", socket, timeout)
	case codes.Unimplemented:
		return fmt.Errorf("what listens on %s does not serve PodResources v1", socket)
	case codes.ResourceExhausted:
		return fmt.Errorf("the kubelet refuses for now: too many calls, or an answer above %d MiB", maxAnswer>>20)
	}
	return fmt.Errorf("list pod resources: %w", err)
}

// allocations picks the GPUs out of the kubelet's answer.
func allocations(answer *v1.ListPodResourcesResponse) []nodeprobe.Allocation {
	var out []nodeprobe.Allocation
	for _, pod := range answer.GetPodResources() {
		for _, c := range pod.GetContainers() {
			h := nodeprobe.Holder{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: c.GetName()}
			for _, d := range c.GetDevices() {
				advertised := strings.HasPrefix(d.GetResourceName(), gpus) || strings.HasPrefix(d.GetResourceName(), migs)
				for _, id := range d.GetDeviceIds() {
					if advertised || ours(id) {
						out = append(out, nodeprobe.Allocation{Holder: h, Name: id})
					}
				}
			}
			for _, claim := range c.GetDynamicResources() {
				for _, r := range claim.GetClaimResources() {
					if r.GetDriverName() == draDriver {
						out = append(out, nodeprobe.Allocation{Holder: h, Name: r.GetDeviceName(), DRA: true})
					}
				}
			}
		}
	}
	slices.SortFunc(out, nodeprobe.Allocation.Compare)
	return slices.Compact(out)
}

// ours says that an id of a renamed resource is a GPU's all the same.
func ours(id string) bool {
	_, err := nodeprobe.ParseDeviceID(id)
	return err == nil
}
