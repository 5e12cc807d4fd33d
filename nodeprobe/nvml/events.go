//go:build cgo

package nvml

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// anyGPU marks a fault whose GPU could not be told.
const anyGPU = ""

// wanted are the events that say something about layout or health.
const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventMigConfigChange |
	nvml.EventTypeFatalPoisonError | nvml.EventTypeGpuUnavailableError

// innocent are Xids that a program causes and the GPU survives
// (k8s-device-plugin, internal/rm/health.go, which ignores the same).
var innocent = []uint64{13, 31, 43, 45, 68, 109}

// slice is how long one call waits inside the driver, where no context reaches.
const slice = time.Second

// Wait returns when the driver reports a change of layout or health, when d has
// passed, or when ctx ends. Where the driver has no events, it is just d.
func (r *Reader) Wait(ctx context.Context, d time.Duration) {
	end := r.opts.Now().Add(d)
	for ctx.Err() == nil {
		left := end.Sub(r.opts.Now())
		if left <= 0 {
			return
		}
		if r.watch == nil {
			rest(ctx, left)
			return
		}
		data, ret := r.watch.Wait(uint32(max(1, min(left, slice).Milliseconds())))
		switch {
		case ret == nvml.SUCCESS:
			if r.note(data) {
				return
			}
		case ret != nvml.ERROR_TIMEOUT:
			// A GPU is lost, or the set is of no use: the next Read says, and makes another.
			r.opts.Logger.DebugContext(ctx, "events end", "why", text(ret))
			r.unfollow()
		}
	}
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// note takes an event in. False: it changes nothing that is reported.
func (r *Reader) note(e nvml.EventData) bool {
	var says string
	switch e.EventType {
	case nvml.EventMigConfigChange:
		return true
	case nvml.EventTypeXidCriticalError:
		if slices.Contains(innocent, e.EventData) {
			return false
		}
		says = fmt.Sprintf("Xid %d", e.EventData)
	case nvml.EventTypeDoubleBitEccError:
		says = "double bit ECC error"
	case nvml.EventTypeFatalPoisonError:
		says = "fatal poison error"
	case nvml.EventTypeGpuUnavailableError:
		says = "unavailable"
	default:
		return false
	}
	uuid, ret := e.Device.GetUUID()
	if ret != nvml.SUCCESS {
		uuid = anyGPU // better all than the wrong one
	}
	r.broken[uuid] = says
	return true
}

// follow makes the set that events arrive in. Where there is none, time passes
// and the GPUs are read again.
func (r *Reader) follow() {
	if r.watch != nil {
		return
	}
	set, ret := r.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		r.opts.Logger.Debug("the driver has no events, so it is polled", "why", text(ret))
		return
	}
	r.watch, r.watched = set, map[string]bool{}
}

// record has the driver record the events that a GPU has.
func (r *Reader) record(d nvml.Device, uuid string) {
	if r.watch == nil || r.watched[uuid] {
		return
	}
	r.watched[uuid] = true
	types, ret := d.GetSupportedEventTypes()
	if ret == nvml.SUCCESS && types&wanted != 0 {
		ret = d.RegisterEvents(types&wanted, r.watch)
	}
	if ret != nvml.SUCCESS {
		r.opts.Logger.Debug("the GPU has no events, so it is polled", "gpu", uuid, "why", text(ret))
	}
}

func (r *Reader) unfollow() {
	if r.watch != nil {
		if ret := r.watch.Free(); ret != nvml.SUCCESS { // nothing to be done about it
			r.opts.Logger.Debug("free events", "why", text(ret))
		}
		r.watch = nil
	}
}
