// Package live has the state of a cluster from its API server, once (Read) or kept up to date
// (Follow). What may not be read, is not installed or does not answer is no error: the state
// says so of that kind, and holds the rest.
//
// Start at follow.go: an informer for each kind that the server serves (served.go), filled, and
// what came of that. ConfigMaps alone are got by name, for the right to list them would show
// what people keep there (configmaps.go, layouts.go, rights.go). Who wants to hear of changes
// asks a Follower: OnChange, OnNode, OnGeometry, OnAnnotated; who was told of one by somebody
// else waits with Await.
//
// What a kind is, and what of an object is kept, rca/cluster says. To read another kind, add it
// there, and here its informer (informers.go), unless it is a custom one.
package live
