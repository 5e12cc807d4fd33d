package clients

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// What watching and diagnosing may ask of the API server: requests a second, and at
// once after a pause. Every kind is listed and then watched at the start, some 40 of
// them, and again after the API server was away.
const (
	ownCalls   = 20
	ownAtStart = 100
)

// Gently is the same, with one limit for all clients that are made from it.
func Gently(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(ownCalls, ownAtStart)
	return config
}
