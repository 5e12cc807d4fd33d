package outside

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
)

// A cloud that has no room in one subnet or reservation names it, and what helps is another.
var (
	subnetID      = regexp.MustCompile(`subnet-[0-9a-z]+`)
	reservationID = regexp.MustCompile(`cr-[0-9a-z]+`)
)

// otherSubnet is for the subnet without a free address.
func otherSubnet(c *edit.Workload) edit.Change {
	g := c.Growth()
	full := named(subnetID, g.Said)
	ch := Growing(diagnosis.CloudCapacityRefused, "give the pool a subnet with free addresses")
	ch.Untestable = onlyTheCloud
	if len(g.Pools) == 0 || g.Pools[0].Class.Name == "" {
		ch.Commands = append(lookAtPools(c), "# then add a larger subnet to the pool's node class or node group")
		return ch
	}
	k := g.Pools[0].Class
	ch.Title = fmt.Sprintf("give %s %s, by which NodePool %s makes its machines, a subnet with free addresses", k.Kind, k.Name, g.Pools[0].Name)
	if len(full) > 0 {
		ch.Title += ": " + strings.Join(full, ", ") + " has none left"
	}
	others := besides(full, k.Subnets, func(k scaling.Class) []string { return k.Subnets }, c)
	ch.Commands = append(describe("subnets", "subnet-ids", slices.Concat(full, others), "Subnets[].[SubnetId,AvailabilityZone,AvailableIpAddressCount]"),
		fmt.Sprintf("kubectl edit %s %s  # spec.subnetSelectorTerms: one more term, as {id: %s}", strings.ToLower(k.Kind), k.Name, firstOr(others, "SUBNET")))
	return ch
}

// otherReservation is for the reservation that is used up while the pool's class may have others.
func otherReservation(c *edit.Workload) edit.Change {
	g := c.Growth()
	full := named(reservationID, g.Said)
	ch := Growing(diagnosis.CloudCapacityRefused, "have the pool use a reservation with room")
	ch.Untestable = onlyTheCloud
	if len(g.Pools) == 0 || g.Pools[0].Class.Name == "" {
		ch.Commands = lookAtPools(c)
		return ch
	}
	p := &g.Pools[0]
	k, others := p.Class, besides(full, p.Class.Reservations, nil, c)
	ch.Title = "have a reservation with room for NodePool " + p.Name
	if len(full) > 0 {
		ch.Title += ": " + strings.Join(full, ", ") + " has none left"
	}
	kind := strings.ToLower(k.Kind)
	ch.Commands = describe("capacity-reservations", "capacity-reservation-ids", slices.Concat(full, others), "CapacityReservations[].[CapacityReservationId,State,AvailableInstanceCount]")
	if len(others) == 0 {
		ch.Title += ", and " + k.Kind + " " + k.Name + " selects no other"
		ch.Commands = append(ch.Commands, "kubectl edit "+kind+" "+k.Name+"  # spec.capacityReservationSelectorTerms: one more term")
		return ch
	}
	ch.Title += fmt.Sprintf("; have a NodePool and %s of their own for %s, which %s selects too", k.Kind, strings.Join(others, " or "), k.Name)
	ch.Commands = append(ch.Commands,
		fmt.Sprintf("kubectl get %s %s -o yaml  # a second one like it, with spec.capacityReservationSelectorTerms: [{id: %s}]", kind, k.Name, others[0]),
		"kubectl get nodepool "+p.Name+" -o yaml  # a second one like it, whose nodeClassRef names that class",
		fmt.Sprintf("# in %s %s itself that term would do as well, but Karpenter then replaces machines that are in another reservation (drift)", kind, k.Name))
	return ch
}

// reservedBy begins the selectors by which GKE is told which reservation a machine comes from.
const reservedBy = "cloud.google.com/reservation-"

// nameReservation is for the machine that was to come from a reservation which is not there, or may not be used: to wait for
// machines, or to take others, is no answer to that.
func nameReservation(c *edit.Workload) edit.Change {
	ch := Growing(diagnosis.CloudCapacityRefused, "name a reservation that exists, by selector "+reservedBy+"name in "+c.WorkloadName())
	change := fmt.Sprintf("nodeSelector: {%[1]saffinity: specific, %[1]sname: RESERVATION}", reservedBy)
	if name := c.PodSpec().NodeSelector[reservedBy+"name"]; name != "" {
		ch.Title = fmt.Sprintf("name another reservation than %s in %s, or take %s* out of its selector", name, c.WorkloadName(), reservedBy)
	}
	ch.Untestable, ch.Risk = onlyTheCloud, diagnosis.MediumRisk
	ch.Drained = c.Cluster.Running(c.Incident.Workload)
	ch.Commands = []string{"gcloud compute reservations list --format='table(name,zone,status,specificReservation.count,specificReservation.inUseCount)'  # those of the machine type that is asked, in the zone that was tried", c.EditByHand(change)}
	return ch
}

// besides are the places that a class has found but for those that are full; where it has none, those that
// other classes have, if they may be used for it as well.
func besides(full, own []string, of func(scaling.Class) []string, c *edit.Workload) []string {
	isFull := func(id string) bool { return slices.Contains(full, id) }
	left := slices.DeleteFunc(slices.Clone(own), isFull)
	if len(left) > 0 || of == nil {
		return left
	}
	for _, p := range c.Cluster.Outlook().Pools {
		for _, id := range of(p.Class) {
			if !isFull(id) && !slices.Contains(left, id) {
				left = append(left, id)
			}
		}
	}
	return left
}

func describe(what, flag string, ids []string, columns string) []string {
	if len(ids) == 0 {
		return []string{fmt.Sprintf("aws ec2 describe-%s --query '%s' --output table", what, columns)}
	}
	return []string{fmt.Sprintf("aws ec2 describe-%s --%s %s --query '%s' --output table", what, flag, strings.Join(ids, " "), columns)}
}

func firstOr(all []string, none string) string {
	if len(all) == 0 {
		return none
	}
	return all[0]
}

// named are the places that words of a cloud name, each once.
func named(what *regexp.Regexp, words string) []string {
	found := what.FindAllString(words, -1)
	slices.Sort(found)
	return slices.Compact(found)
}
