package outside

import (
	"fmt"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
)

// managed ends a command for an object of Cluster API, which another cluster may have.
const managed = "  # in the cluster that manages this one, which may be this one"

// scaleObject has a group of Cluster API have so many machines.
func scaleObject(o *scaling.Object, more, note string) string {
	return fmt.Sprintf("kubectl -n %s scale %s %s --replicas=%s%s", o.Namespace, o.Resource(), o.Name, more, noteOr(note))
}

func noteOr(note string) string {
	if note == "" {
		return managed
	}
	return note + "; " + strings.TrimPrefix(managed, "  # ")
}

// boundObject lets a group of Cluster API have more machines.
func boundObject(o *scaling.Object, most string) string {
	if o.OpenShifts() {
		return fmt.Sprintf("kubectl -n %s get machineautoscalers  # the one whose spec.scaleTargetRef is %s %s: spec.maxReplicas: %s", o.Namespace, o.Kind, o.Name, most)
	}
	return fmt.Sprintf("kubectl -n %s annotate %s %s cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size=%s --overwrite%s", o.Namespace, o.Resource(), o.Name, most, managed)
}

// capacityOf are the annotations by which the autoscaler knows what machines of a group at zero have: those of CPU and
// memory have to be there for the others to count (cloudprovider/clusterapi, CanScaleFromZero).
func capacityOf(o *scaling.Object, what, value string) string {
	const of = "capacity.cluster-autoscaler.kubernetes.io/"
	set := []string{}
	switch kind, name, _ := strings.Cut(what, "/"); {
	case kind == "label":
		set = append(set, of+"labels="+name+"="+value)
	case name == "ephemeral-storage":
		set = append(set, of+"ephemeral-disk="+value)
	case name == "cpu" || name == "memory":
	default:
		set = append(set, of+"gpu-type="+name, of+"gpu-count="+value)
	}
	set = append(set, of+"cpu=CPUS", of+"memory=MEMORY")
	return fmt.Sprintf("kubectl -n %s annotate %s %s %s --overwrite%s", o.Namespace, o.Resource(), o.Name, strings.Join(set, " "), managed)
}

// describeCapacity is for the groups of Cluster API at zero whose machines the autoscaler knows by annotations alone.
func describeCapacity(c *edit.Workload, groups []scaling.Group, lacks string) edit.Change {
	var names, commands []string
	for i := range groups {
		o := groups[i].Object()
		names = append(names, o.Kind+" "+o.Namespace+"/"+o.Name)
		commands = append(commands, capacityOf(o, "resources/"+lacks, asked(c, lacks)))
	}
	ch := Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("tell the cluster autoscaler by annotations of %s what its machines have, %s among it: at zero it knows no more of them", strings.Join(names, " or "), lacks), commands...)
	ch.Commands = append(ch.Commands, byHandOf(c, groups, "or by hand: of a machine that is there it sees what it has")...)
	return ch
}

// ofObjects says whether all groups are of Cluster API.
func ofObjects(groups []scaling.Group) bool {
	for i := range groups {
		if groups[i].Object() == nil {
			return false
		}
	}
	return len(groups) > 0
}
