package cluster

// Of ConfigMaps only those are read whose names are known. What the cluster autoscaler writes of
// itself is called so by default (cluster-autoscaler/clusterstate, --status-config-map-name).
const (
	// AutoscalerStatus is the name of its ConfigMap.
	AutoscalerStatus = "cluster-autoscaler-status"
	// AutoscalerStatusKind is what State.Unread calls it.
	AutoscalerStatusKind = "ConfigMap." + AutoscalerStatus
	// PluginConfigKind is what it calls those of device plugins.
	PluginConfigKind = "ConfigMap.device-plugin"
)
