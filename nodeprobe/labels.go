package nodeprobe

// The labels by which the GPU Operator's MIG manager is asked for a layout, and says how
// far it is (mig-parted, cmd/nvidia-mig-manager).
const (
	LabelMIGConfig      = "nvidia.com/mig.config"
	LabelMIGConfigState = "nvidia.com/mig.config.state"
)
