package growth

import "testing"

// A group's name has a word where it stands by itself there.
func TestWordsOfAName(t *testing.T) {
	for _, k := range []struct {
		name, word string
		has        bool
	}{
		{"gke-prod-hot-77e0b1c4-grp", "hot", true}, {"gke-prod-Hot-77e0b1c4-grp", "hot", true}, {"eks_a100.pool", "a100", true}, {"gke-a100-high-1", "a100-high", true},
		{"gke-prod-hotter-grp", "hot", false}, {"gke-prod-shot-grp", "hot", false}, {"aks-gpu-1-vmss", "gpu", true}, {"aks-1", "1", true},
	} {
		if got := hasWord(k.name, k.word); got != k.has {
			t.Errorf("%q in %q: %v", k.word, k.name, got)
		}
	}
}
