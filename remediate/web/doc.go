// Package web is the page of the service: what waits and why, the GPU that matters before
// and after a fix, what a fix costs who, how far one is that is carried out, and the whole
// cluster as a map of GPUs.
//
// A reader signs in with a Kubernetes token of their own, and the page asks the API server
// with that token what they may read. What names pods of other namespaces is not shown:
// such an incident does not exist for them, and a name within another text is covered (see
// veil). The token stays in this process's memory; nothing renders or logs it.
//
// Everything works without JavaScript; with it, what changes is shown as it changes.
//
// # What not to do
//
// Do not hand a page anything that has not gone through a veil. Do not write markup as text:
// pages are made of nodes, which escape what they are given, and what a browser loads or opens
// goes through own and href, which take no other scheme; a test reads the source for it. Do not read the cluster
// with the service's own rights to answer a reader. Do not add inline scripts or styles: the
// Content-Security-Policy forbids them, and so does a test.
package web
