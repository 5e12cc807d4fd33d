// Package growth tells what autoscalers make of one waiting pod: whether a node is on its way
// and until when, what keeps Karpenter or the cluster autoscaler from bringing one, with which
// code the cloud refuses the machine. What they have and say is read in rca/scaling; which
// node such a promise is about, and what comes first, the rules in rca/causes say.
//
// A promise has an age, and silence has many causes: nothing is told of an autoscaler that
// left no trace.
package growth
