// Package queues reads what queues and schedulers other than the default one have and say of
// a waiting pod: Kueue's Workloads and queues, the Queues and PodGroups of Volcano and KAI, and
// the conditions and Events in which they, YuniKorn and HAMi refuse. It quotes them, tells a
// queue that admits nobody from one that is full, and a scheduler that refuses from one that
// nobody has ever heard of.
//
// Objects prove, texts are quoted: another scheduler decides by rules that are not run here.
// Which cause it is, and which comes first, the rules in rca/causes say; what to do about it,
// rca/changes.
package queues
