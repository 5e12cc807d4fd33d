package scaling

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Status is what the cluster autoscaler writes of itself, about every ten seconds
// (clusterstate/api/types.go; YAML since 1.30).
type Status struct {
	State   string    `json:"autoscalerStatus"` // empty in the plain text of versions before 1.30
	Wide    Wide      `json:"clusterWide"`
	Groups  []Group   `json:"nodeGroups"`
	Updated time.Time `json:"-"` // zero: not told
	Ref     string    `json:"-"`
}

// Wide is what it says of all nodes. Of a cluster with too many that are not ready it leaves all
// pods alone (--ok-total-unready-count, --max-total-unready-percentage).
type Wide struct {
	Health struct {
		Status     string `json:"status"`
		NodeCounts struct {
			Registered struct {
				Total   int `json:"total"`
				Unready struct {
					Total int `json:"total"`
				} `json:"unready"`
			} `json:"registered"`
		} `json:"nodeCounts"`
	} `json:"health"`
}

// Group is one node group of it.
type Group struct {
	Name string `json:"name"`
	// Text is what the plain text of versions before 1.30 has of it, where that was read: a line of its health, and of its growth.
	Text   []string `json:"-"`
	Health struct {
		Status     string `json:"status"`
		NodeCounts struct {
			Registered struct {
				Total      int `json:"total"`
				Ready      int `json:"ready"`
				NotStarted int `json:"notStarted"`
				Unready    struct {
					Total           int `json:"total"`
					ResourceUnready int `json:"resourceUnready"`
				} `json:"unready"`
			} `json:"registered"`
			LongUnregistered int `json:"longUnregistered"`
			Unregistered     int `json:"unregistered"`
		} `json:"nodeCounts"`
		Target  int `json:"cloudProviderTarget"`
		MinSize int `json:"minSize"`
		MaxSize int `json:"maxSize"`
	} `json:"health"`
	ScaleUp struct {
		Status      string `json:"status"`
		BackoffInfo struct {
			ErrorCode    string `json:"errorCode"`
			ErrorMessage string `json:"errorMessage"`
		} `json:"backoffInfo"`
	} `json:"scaleUp"`
}

// AtMax says whether the group has as many machines as it may.
func (g *Group) AtMax() bool { return g.Health.MaxSize > 0 && g.Health.Target >= g.Health.MaxSize }

// Missing counts the machines of the group that were asked of the cloud and are no nodes.
func (g *Group) Missing() int { return max(0, g.Health.Target-g.Health.NodeCounts.Registered.Total) }

// Grows says whether the group has machines that are nodes, and may have more.
func (g *Group) Grows() bool {
	return g.Health.NodeCounts.Registered.Total > 0 && g.Health.Target < g.Health.MaxSize
}

// Machines counts those of all groups that have become nodes.
func (s *Status) Machines() int {
	count := 0
	for i := range s.Groups {
		count += s.Groups[i].Health.NodeCounts.Registered.Total
	}
	return count
}

// Empty says whether the group has no machine, and may have some.
func (g *Group) Empty() bool {
	return g.Health.Target == 0 && g.Health.NodeCounts.Registered.Total == 0 && g.Health.MaxSize > 0
}

// InBackoff says whether the autoscaler leaves the group alone, for it failed to grow.
func (g *Group) InBackoff() bool { return g.ScaleUp.Status == "Backoff" }

// Short is the name for people: what a cloud's URL ends in.
func (g *Group) Short() string { return g.Name[strings.LastIndexByte(g.Name, '/')+1:] }

// InZone is the flag of gcloud for the zone that is part of the name of GCE's groups; empty for others.
func (g *Group) InZone() string {
	if _, rest, ok := strings.Cut(g.Name, "/zones/"); ok {
		zone, _, _ := strings.Cut(rest, "/")
		return " --zone " + zone
	}
	return ""
}

// LastUpdated is the annotation that says when the autoscaler wrote it.
const LastUpdated = "cluster-autoscaler.kubernetes.io/last-updated"

// ReadStatus reads the ConfigMap; nil where it is none.
func ReadStatus(cm *corev1.ConfigMap) *Status {
	if cm == nil {
		return nil
	}
	s := &Status{}
	if err := yaml.Unmarshal([]byte(cm.Data["status"]), s); err != nil || s.State == "" {
		if s = readText(cm.Data["status"]); s == nil {
			return nil
		}
	}
	s.Ref = "ConfigMap/" + cm.Namespace + "/" + cm.Name
	for _, layout := range []string{"2006-01-02 15:04:05.999999999 -0700 MST", time.RFC3339} {
		if at, err := time.Parse(layout, cm.Annotations[LastUpdated]); err == nil {
			s.Updated = at
			break
		}
	}
	return s
}
