package view

// Paused is the value of a gpu.deploy label while MIG manager has stopped its
// component (mig-parted pkg/mig/reconfigure/reconfigure.go).
const Paused = "paused-for-mig-change"
