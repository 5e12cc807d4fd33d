// Package dump has a cluster's state in files: it reads what kubectl, the API server or this
// program wrote, and writes what it reads back to the same state. It knows no API server, and
// who follows one (rca/cluster/live) knows no files.
//
// Start at Read, in files.go: a file that is one list in JSON is cut into items as it is read
// (list.go, split.go), anything else document by document (documents.go). Whatever is wrong is
// told with its file, document and line. What of a dump is no kind that a diagnosis reads may own what makes
// pods: its metadata is kept (others.go). A dump has no clock: now.go says what time it is there.
//
// What is decoded, and what of it is kept, is not decided here: rca/cluster does that, for
// objects of an API server alike.
package dump
