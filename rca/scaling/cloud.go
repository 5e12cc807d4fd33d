package scaling

import (
	"regexp"
	"slices"
	"strings"
)

// Ground is why a cloud refuses a machine.
type Ground string

// The grounds: what a cluster can do about each differs.
const (
	Stockout  Ground = "it has no such machine left there"
	Quota     Ground = "the account's quota is used up"
	Addresses Ground = "the subnet has no free address left"
	Reserved  Ground = "the reservation has no room left"
	Unsaid    Ground = "it does not say why"
	Unnamed   Ground = "the reservation that it is to come from is none that it may use"
	Setup     Ground = "the account or the pool is not set up for it"
)

// Code is a cloud's own word for a refusal.
type Code struct {
	Name   string
	Ground Ground
	// None: the quota is 0, as that of an account that has never had such machines. Nobody has used it up.
	None bool
}

// Spot says whether it is about spot machines alone.
func (c Code) Spot() bool {
	return strings.Contains(c.Name, "Spot") || strings.HasSuffix(c.Name, "LowPriorityCores") // as Azure calls them
}

// codes are those of AWS (karpenter-provider-aws pkg/errors/errors.go), Azure
// (karpenter-provider-azure pkg/providers/instance), GCE (cluster-autoscaler
// cloudprovider/gce/autoscaling_gce_client.go) and OCI (cloudprovider/oci/nodepools), as the autoscalers
// pass them on.
var codes = map[string]Ground{
	"InsufficientInstanceCapacity": Stockout, "InsufficientHostCapacity": Stockout, "InsufficientReservedInstanceCapacity": Stockout, "UnfulfillableCapacity": Stockout,
	"Unsupported": Stockout, "ReservationCapacityExceeded": Reserved,
	"RESOURCE_POOL_EXHAUSTED": Stockout, "ZONE_RESOURCE_POOL_EXHAUSTED": Stockout, "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS": Stockout, "INSUFFICIENT_CAPACITY": Stockout,
	"AllocationFailure": Stockout, "AllocationFailed": Stockout, "ZonalAllocationFailure": Stockout, "ZonalAllocationFailed": Stockout,
	"OverconstrainedZonalAllocationFailure": Stockout, "OverconstrainedAllocationFailure": Stockout, "OverconstrainedAllocationRequest": Stockout, "OverconstrainedZonalAllocationRequest": Stockout,
	"SKUNotAvailable": Stockout, "SkuNotAvailable": Stockout,
	"VcpuLimitExceeded": Quota, "VCPULimitExceeded": Quota, "MaxSpotInstanceCountExceeded": Quota, "SpotQuotaExceeded": Quota, "MaxFleetCountExceeded": Quota, "FleetQuotaExceeded": Quota,
	"InstanceLimitExceeded": Quota, "QUOTA_EXCEEDED": Quota, "QuotaExceeded": Quota, "SubscriptionQuotaReached": Quota,
	"GCE out of resources": Stockout, "GCE quota exceeded": Quota, "IP space exhausted": Addresses, "Invalid Reservation": Unnamed, "Service Account was deleted": Setup,
	"Out of host capacity": Stockout, "LimitExceeded": Quota,
	"InsufficientFreeAddressesInSubnet":                 Addresses,
	"placeholder-cannot-be-fulfilled":                   Unsaid,
	"provisioning-state-failed":                         Unsaid,
	"PERMISSIONS_ERROR":                                 Setup,
	"Unauthorized":                                      Setup,
	"UnauthorizedOperation":                             Setup,
	"AMINotFound":                                       Setup,
	"LaunchTemplateNotFound":                            Setup,
	"SpotSLRCreationFailed":                             Setup,
	"AccountPendingVerification":                        Setup,
	"PendingVerification":                               Setup,
	"OptInRequired":                                     Setup,
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": Setup,
}

// phrases are those of them that are several words: Oracle's, whose code is that of any failure, and those with which GKE's
// autoscaler tells a pod what Google's codes are.
var phrases = []string{"Out of host capacity", "GCE out of resources", "GCE quota exceeded", "IP space exhausted", "Invalid Reservation", "Service Account was deleted"}

// azureQuota is how Azure's OperationNotAllowed, which is the code of much else, tells of a quota of cores: of a family of machines, of a region, or
// of low priority (learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-resource-quota).
var azureQuota = regexp.MustCompile(`OperationNotAllowed.*exceeding (?:quota limit of|approved) (.*? ?Cores)`)

// limit is how clouds name the quota that would be passed.
var limit = regexp.MustCompile(`(?i)\blimit(?: of|:) ([0-9]+(?:\.[0-9]+)?)`)

// noQuota says whether a cloud names its quota, and as 0 each time.
func noQuota(text string) bool {
	named := limit.FindAllStringSubmatch(text, -1)
	return len(named) > 0 && !slices.ContainsFunc(named, func(m []string) bool { return strings.Trim(m[1], "0.") != "" })
}

var codeWord = regexp.MustCompile(`[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]`)

// Codes lists the cloud's codes in texts of an autoscaler, in the order in which they stand
// there.
func Codes(texts ...string) []Code {
	var out []Code
	none := false
	add := func(c Code) {
		c.None = none && c.Ground == Quota
		at := slices.IndexFunc(out, func(o Code) bool { return o.Name == c.Name })
		if at < 0 {
			out = append(out, c)
			return
		}
		out[at].None = out[at].None && c.None
	}
	note := func(name string) bool {
		ground, known := codes[name]
		if known {
			add(Code{Name: name, Ground: ground})
		}
		return known
	}
	for _, text := range texts {
		none = noQuota(text)
		for _, word := range codeWord.FindAllString(text, -1) {
			if note(word) {
				continue
			}
			if at := strings.LastIndexByte(word, '.'); at >= 0 { // <class>.<code>
				note(word[at+1:])
			}
		}
		if m := azureQuota.FindStringSubmatch(strings.Join(strings.Fields(text), " ")); m != nil {
			add(Code{Name: "OperationNotAllowed: " + m[1], Ground: Quota})
		}
		for _, phrase := range phrases {
			if strings.Contains(text, phrase) {
				note(phrase)
			}
		}
	}
	return out
}

// Says is why, for people, of all the codes together.
func Says(all []Code) string {
	var grounds []string
	for _, c := range all {
		why := string(c.Ground)
		if c.None {
			why = "the account's quota for such machines is 0"
		}
		if !slices.Contains(grounds, why) {
			grounds = append(grounds, why)
		}
	}
	return strings.Join(grounds, "; ")
}

// Names joins them.
func Names(all []Code) string {
	names := make([]string, len(all))
	for i, c := range all {
		names[i] = c.Name
	}
	return strings.Join(names, ", ")
}

// Has says whether one of the codes has that ground.
func Has(all []Code, g Ground) bool {
	return slices.ContainsFunc(all, func(c Code) bool { return c.Ground == g })
}
