package evict

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/view"
)

// Cost is compared lexicographically: evictions beyond what their budgets
// allow, whether one of them may be working, highest priority, sum of priorities,
// number, work lost.
type Cost struct {
	Beyond       int
	Working      int // 1: not all of them are known to be idle
	Highest, Sum int64
	Number       int
	Lost         time.Duration
}

// Compare orders costs, the cheaper first, field by field: evictions beyond budgets come
// before everything else, the time of work that is lost comes last.
func (a Cost) Compare(b Cost) int {
	return cmp.Or(cmp.Compare(a.Beyond, b.Beyond), cmp.Compare(a.Working, b.Working), cmp.Compare(a.Highest, b.Highest), cmp.Compare(a.Sum, b.Sum), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Lost, b.Lost))
}

// NoVictims costs less than any set.
var NoVictims = Cost{Highest: -1 << 40}

// with adds pods that leave together: a pod, or a gang, which counts once.
func (a Cost) with(pods []*corev1.Pod, now time.Time) Cost {
	lost := time.Duration(0)
	for _, p := range pods {
		lost += view.LostWith(p, now)
	}
	return a.plusOne(view.PriorityOf(pods), lost)
}

func (a Cost) plusOne(prio int64, lost time.Duration) Cost {
	a.Highest = max(a.Highest, prio)
	a.Sum += max(0, prio) // else two who matter little cost less than one
	a.Number++
	a.Lost += lost
	return a
}

// Plus is what two sets of pods cost together that have none in common.
func (a Cost) Plus(b Cost) Cost {
	return Cost{Beyond: a.Beyond + b.Beyond, Working: max(a.Working, b.Working), Highest: max(a.Highest, b.Highest), Sum: a.Sum + b.Sum, Number: a.Number + b.Number, Lost: a.Lost + b.Lost}
}
