// Package refused has what helps the pod that another scheduler refuses (KAI, Volcano, HAMi, YuniKorn, Koordinator): its
// words are told apart, and where a rule of its own is known, what lets the pod through it. None of it can be tried here:
// that scheduler decides.
//
// To add what helps against words: a method of queues.Word that knows them, and a line in Ask.
package refused
