//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/cenkalti/backoff/v4"

	"github.com/unpend/unpend/nodeprobe"
)

// Options of a Reader.
type Options struct {
	// Library is the driver's library; libnvidia-ml.so.1 by default.
	Library nvml.Interface
	// ProfileName asks the driver for the name of a profile, by its NVML enum. By
	// default nvmlDeviceGetGpuInstanceProfileInfoV, as far as the library has it.
	ProfileName func(nvml.Device, int) (string, nvml.Return)
	// Kernel lists the GPUs that the kernel module has, a folder for each; by
	// default /proc/driver/nvidia/gpus.
	Kernel fs.FS
	Now    func() time.Time // default time.Now
	Logger *slog.Logger     // default: discard
}

// Reader reads the GPUs of this node. Not for concurrent use. Close ends it.
//
// It keeps the driver open from one Read to the next, for events and because
// opening is slow without the persistence daemon; except while a change of MIG
// mode waits for a GPU reset, which no open handle may stand in the way of (MIG
// user guide R580, "Enable MIG Mode").
type Reader struct {
	opts  Options
	lib   nvml.Interface
	open  bool
	retry backoff.BackOff
	next  time.Time // of Init after it failed
	why   error

	offers map[offerKey]offered // what the open driver has said

	watch   nvml.EventSet // nil: there is none, or not now
	watched map[string]bool
	broken  map[string]string // UUID → what happened to it; "" : to any
}

// New makes a Reader. The driver is not touched before the first Read.
func New(opts Options) *Reader {
	if opts.Library == nil {
		opts.Library = nvml.New()
	}
	if opts.Kernel == nil {
		opts.Kernel = os.DirFS("/proc/driver/nvidia/gpus")
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &Reader{opts: opts, lib: opts.Library, offers: map[offerKey]offered{}, broken: map[string]string{}}
	r.retry = backoff.NewExponentialBackOff(backoff.WithInitialInterval(5*time.Second), backoff.WithMaxInterval(time.Minute), backoff.WithMaxElapsedTime(0))
	return r
}

// Read says what the driver says now. The error is one sentence about what is
// missing: the library, the driver, the right to ask. What a single GPU would
// not say stands with that GPU. After an error the driver is opened again by a
// later Read, after 5 s at first, later after a minute at most.
func (r *Reader) Read(ctx context.Context) (nodeprobe.Reading, error) {
	if err := r.init(); err != nil {
		return nodeprobe.Reading{}, err
	}
	out, err := r.read(ctx)
	if err != nil {
		r.Close()
		clear(r.broken) // a driver that comes back has reset its GPUs
		return nodeprobe.Reading{}, err
	}
	for _, g := range out.GPUs {
		if g.MIG != nil && g.MIG.Current != g.MIG.Pending {
			r.Close()
			break
		}
	}
	return out, nil
}

// Close lets go of the driver. A later Read opens it again.
func (r *Reader) Close() {
	r.unfollow()
	clear(r.offers)
	if r.open {
		r.open = false
		if ret := r.lib.Shutdown(); ret != nvml.SUCCESS { // the next Init says more
			r.opts.Logger.Debug("close the driver", "why", text(ret))
		}
	}
}

// init opens the driver. After a failed Init not one function of the library may
// be called: without it, the next call ends the process.
func (r *Reader) init() error {
	if r.open {
		return nil
	}
	if r.why != nil && r.opts.Now().Before(r.next) {
		return r.why
	}
	if ret := r.lib.Init(); ret != nvml.SUCCESS {
		r.why = errors.New(missing(ret))
		r.next = r.opts.Now().Add(r.retry.NextBackOff())
		return r.why
	}
	r.retry.Reset()
	r.open, r.why = true, nil
	return nil
}

func (r *Reader) read(ctx context.Context) (nodeprobe.Reading, error) {
	var out nodeprobe.Reading
	version, ret := r.lib.SystemGetDriverVersion()
	if gone(ret) {
		return out, errors.New(missing(ret))
	}
	if ret == nvml.SUCCESS {
		out.DriverVersion = version
	}
	n, ret := r.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return out, errors.New(missing(ret))
	}
	r.follow()
	for i := range n {
		if err := ctx.Err(); err != nil {
			return out, fmt.Errorf("read GPUs: %w", err)
		}
		g, ret := r.gpu(i)
		if gone(ret) {
			return out, errors.New(missing(ret))
		}
		out.GPUs = append(out.GPUs, g)
	}
	out.Hidden = r.hidden(n)
	return out, nil
}

// hidden counts the GPUs that the kernel module drives beyond the n that the
// library lists: it leaves out those whose /dev/nvidia<n> it cannot open, and says
// nothing of them (seen with driver 580.159.04; nvml.h says that it counts them).
// Excluded ones are left out on purpose (NVreg_ExcludedGpus). 0 where the kernel
// does not tell.
func (r *Reader) hidden(n int) int {
	gpus, err := fs.ReadDir(r.opts.Kernel, ".")
	if err != nil || len(gpus) <= n { // what they say of themselves takes longer than all of NVML
		return 0
	}
	bound := 0
	for _, gpu := range gpus {
		says, err := fs.ReadFile(r.opts.Kernel, gpu.Name()+"/information")
		if err == nil && !excluded.Match(says) {
			bound++
		}
	}
	return max(0, bound-n)
}

var excluded = regexp.MustCompile(`(?m)^GPU Excluded:\s*Yes`)

// has says whether the driver is new enough to have a function: calling one that
// it lacks ends the process.
func (r *Reader) has(functions ...string) bool {
	for _, f := range functions {
		if r.lib.Extensions().LookupSymbol(f) != nil {
			return false
		}
	}
	return true
}
