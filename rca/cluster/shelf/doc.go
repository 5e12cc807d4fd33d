// Package shelf decodes objects so that what many have alike is decoded, and held in memory,
// once: the pods of a workload their containers, the GPUs of a model their profiles. Dumps of
// 10,000 pods and informers of as many go through it.
//
// Start at Shelf.Read. parts.go says what objects have alike, cutter.go cuts that out of their
// text, words.go does the same for names. What is read is always what reading the whole of the
// text would give: where a text is not as it is usually written, the whole of it is read.
package shelf
