package scaling

import "strings"

// scalable are the kinds of Cluster API that are node groups: by kind, namespace and name, which the cluster autoscaler
// joins to the group's name (cloudprovider/clusterapi, unstructuredScalableResource.ID).
var scalable = map[string]string{"MachineDeployment": "machinedeployments", "MachineSet": "machinesets", "MachinePool": "machinepools"}

// ofOpenShift is where OpenShift has its MachineSets, which are of an API group of its own.
const ofOpenShift = "openshift-machine-api"

// Object is the object that a node group is, of Cluster API: of other clouds none.
type Object struct {
	Kind, Namespace, Name string
}

// Object is nil where the group is none.
func (g *Group) Object() *Object {
	parts := strings.Split(g.Name, "/")
	if len(parts) != 3 || scalable[parts[0]] == "" || parts[1] == "" || parts[2] == "" {
		return nil
	}
	return &Object{Kind: parts[0], Namespace: parts[1], Name: parts[2]}
}

// OpenShifts says whether it is a MachineSet of OpenShift's own API, for which a MachineAutoscaler has the bounds.
func (o *Object) OpenShifts() bool { return o.Namespace == ofOpenShift }

// Resource is its kind for kubectl.
func (o *Object) Resource() string {
	if o.OpenShifts() {
		return scalable[o.Kind] + ".machine.openshift.io"
	}
	return scalable[o.Kind] + ".cluster.x-k8s.io"
}
