package placement

import "cmp"

// Tenant is who leaves together: a pod, or a gang, which leaves whole and counts
// once.
type Tenant struct {
	// Stays: it may not leave at all.
	Stays    bool
	Priority int64 // the highest of its pods'
	Lost     int64 // work that its leaving throws away, in any unit; not negative
	Guards   []Guard
}

// Guard says how many of a tenant's pods a disruption budget guards.
type Guard struct{ Budget, Pods int }

// Cost is what the leaving of tenants costs. It is compared in the order of its
// fields; nobody's leaving costs least.
type Cost struct {
	Highest int64 // priority among those who leave
	Sum     int64 // of their priorities; one below zero counts as zero
	Number  int   // of tenants
	Lost    int64 // work lost
}

// Compare orders costs: negative when a is the lower.
func (a Cost) Compare(b Cost) int {
	if a.Number == 0 || b.Number == 0 {
		return cmp.Compare(a.Number, b.Number)
	}
	return cmp.Or(cmp.Compare(a.Highest, b.Highest), cmp.Compare(a.Sum, b.Sum),
		cmp.Compare(a.Number, b.Number), cmp.Compare(a.Lost, b.Lost))
}

// price is the part of a Cost that adds up. The highest priority does not: the
// planner raises a ceiling on it instead, so that it comes first.
type price struct{ sum, number, lost int64 }

// whole is one tenant in price.number: shares of a tenant who is in several
// places must not vanish by rounding down.
const whole = 27720

// never is the price of what cannot be done.
var never = price{sum: 1 << 62}

func (a price) less(b price) bool {
	if a.sum != b.sum {
		return a.sum < b.sum
	}
	if a.number != b.number {
		return a.number < b.number
	}
	return a.lost < b.lost
}

func (a price) compare(b price) int {
	return cmp.Or(cmp.Compare(a.sum, b.sum), cmp.Compare(a.number, b.number), cmp.Compare(a.lost, b.lost))
}

func (a price) plus(b price) price {
	return price{a.sum + b.sum, a.number + b.number, a.lost + b.lost}
}

func (a price) possible() bool { return a.sum < never.sum }

// share is what one of n places is charged for a tenant who leaves them all at
// once: rounded down, so that no sum of shares exceeds the whole.
func (a price) share(n int64) price { return price{a.sum / n, a.number / n, a.lost / n} }

func priceOf(t Tenant) price { return price{max(0, t.Priority), whole, max(0, t.Lost)} }
