package view

// SharedSuffix is what the device plugin adds with renameByDefault
// (k8s-device-plugin, sharing configuration).
const SharedSuffix = ".shared"
