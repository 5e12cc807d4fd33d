package diagnosis

// CapacityKind marks a list of capacity answers when it is printed.
const CapacityKind = "CapacityList"

// CapacityList is what `unpend capacity -o json` prints.
type CapacityList struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Items      []CapacityItem `json:"items"`
	// Together says whether all that was asked for fits at once; absent for one resource.
	Together *CapacityTogether `json:"together,omitempty"`
}

// Answer is what is said to a question.
type Answer string

// The answers. Undecided is neither of the others: nobody has found out.
const (
	Yes       Answer = "yes"
	No        Answer = "no"
	Undecided Answer = "unknown"
)

// CapacityTogether is the answer for several resources.
type CapacityTogether struct {
	Answer    Answer    `json:"answer"`
	Why       string    `json:"why,omitempty"` // of a no, or of what nobody knows
	Evictions []PodName `json:"evictions"`     // of a yes, of all plans
	Nodes     []string  `json:"nodes"`         // that they change
}

// Answer says whether as many fit as were asked for, of all resources at once.
func (l CapacityList) Answer() Answer {
	if l.Together != nil {
		return l.Together.Answer
	}
	for _, i := range l.Items {
		if !i.Fits() {
			return No
		}
	}
	return Yes
}

// CapacityItem says how many more of a resource fit, over all nodes that are
// ready and not cordoned: Now ≤ Repartition ≤ Hardware.
type CapacityItem struct {
	Resource string `json:"resource"`
	Asked    int    `json:"asked"`
	// Now fit as things are: instances, or whole GPUs, that nobody holds.
	Now int `json:"now"`
	// Repartition fit with nobody moving, when MIG manager re-makes the GPUs that
	// nobody holds.
	Repartition int `json:"repartition"`
	// Hardware fit with nobody moving, if single idle instances could be re-made.
	Hardware int           `json:"hardware"`
	Evict    CapacityEvict `json:"evict"`
	For      string        `json:"for,omitempty"` // the pod that the answer is for; empty for every one
	Ignored  []string      `json:"ignored"`       // what was not counted, and why
	// After are the others, as RESOURCE=N, that have taken what they asked for before this
	// was counted.
	After []string `json:"after,omitempty"`
}

// Fits says whether as many fit as were asked for, in some way that can be had.
func (i CapacityItem) Fits() bool { return max(i.Now, i.Repartition, i.Evict.Fits) >= i.Asked }

// CapacityEvict is the cheapest plan for what was asked, by MIG manager.
type CapacityEvict struct {
	Fits      int           `json:"fits"`      // less than asked: the most there is
	Evictions []PodName     `json:"evictions"` // by name
	Nodes     []string      `json:"nodes"`     // that the plan changes, by name
	Proof     CapacityProof `json:"proof"`
}

// CapacityProof lets a reader check that no plan costs less. Costs compare field
// by field.
type CapacityProof struct {
	Cost VictimCost `json:"cost"`
	// AtLeast is a bound: the optimum if disruption budgets bound nothing and a
	// gang could leave in parts.
	AtLeast VictimCost `json:"atLeast"`
	// RunnerUp is what a plan costs at least that evicts nobody from one of the
	// places of this one; absent when there is none, or it was not looked for.
	RunnerUp *VictimCost `json:"runnerUp,omitempty"`
	Exact    bool        `json:"exact"` // all other plans were ruled out
}

// VictimCost is what evictions cost.
type VictimCost struct {
	Highest     int64 `json:"highest"` // priority among those who leave
	Sum         int64 `json:"sum"`     // of their priorities, one below zero counting as zero
	Number      int   `json:"number"`  // of pods, a gang counting once
	LostSeconds int64 `json:"lostSeconds"`
}
