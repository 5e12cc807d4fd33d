//go:build cgo

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// missing is one sentence for why the driver cannot be used at all.
func missing(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "no driver: libnvidia-ml.so.1 is not here (in a pod it comes with runtimeClassName nvidia)"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "no driver: /dev/nvidiactl is not here, or the nvidia kernel module is not loaded"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return "the driver was changed: its library and its kernel module have different versions; the pod must be restarted, the node if that is not enough"
	case nvml.ERROR_NO_PERMISSION:
		return "no right to use the driver: /dev/nvidiactl cannot be opened"
	case nvml.ERROR_UNINITIALIZED:
		return "the driver closed itself"
	}
	return "the driver cannot be used: " + text(ret)
}

// gone says that the driver itself is out of reach, whatever was asked of it.
func gone(ret nvml.Return) bool {
	return ret == nvml.ERROR_UNINITIALIZED || ret == nvml.ERROR_DRIVER_NOT_LOADED || ret == nvml.ERROR_LIB_RM_VERSION_MISMATCH
}

// lost says that this GPU does not answer any more.
func lost(ret nvml.Return) bool {
	return ret == nvml.ERROR_GPU_IS_LOST || ret == nvml.ERROR_RESET_REQUIRED || ret == nvml.ERROR_IRQ_ISSUE
}

// text is a return value in words. nvml's own would call the library.
func text(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_NO_PERMISSION:
		return "no permission"
	case nvml.ERROR_NOT_SUPPORTED:
		return "not supported"
	case nvml.ERROR_GPU_IS_LOST:
		return "the GPU is lost"
	case nvml.ERROR_RESET_REQUIRED:
		return "the GPU must be reset"
	case nvml.ERROR_IRQ_ISSUE:
		return "the GPU's interrupts do not arrive"
	case nvml.ERROR_INSUFFICIENT_POWER:
		return "the GPU's power cables are not attached"
	case nvml.ERROR_IN_USE:
		return "in use"
	case nvml.ERROR_NOT_FOUND:
		return "not found"
	case nvml.ERROR_INVALID_ARGUMENT:
		return "invalid argument"
	case nvml.ERROR_FUNCTION_NOT_FOUND:
		return "the driver is too old for this"
	}
	return fmt.Sprintf("NVML error %d", ret)
}
