package terminal

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/unpend/unpend/rca/diagnosis"
)

func capacities() diagnosis.CapacityList {
	var many []diagnosis.PodName
	for i := range 7 {
		many = append(many, diagnosis.PodName{Namespace: "ml", Name: fmt.Sprint("inference-", i)})
	}
	return diagnosis.CapacityList{Items: []diagnosis.CapacityItem{
		{Resource: "nvidia.com/mig-3g.20gb", Asked: 3, Now: 1, Repartition: 2, Hardware: 3,
			Evict:   diagnosis.CapacityEvict{Fits: 3, Evictions: many[:1], Nodes: []string{"gpu-node-1"}},
			Ignored: []string{"1 node cordoned (gpu-node-3)", "taints, node selectors, CPU and memory are not looked at"}},
		{Resource: "nvidia.com/mig-1g.5gb", Asked: 60, Now: 5, Repartition: 12, Hardware: 20,
			Evict: diagnosis.CapacityEvict{Fits: 56, Evictions: many, Nodes: []string{"gpu-node-1", "节点-\x1b]0;owned\x07一"}}},
		{Resource: "nvidia.com/gpu", Asked: 2, Now: 2, Repartition: 2, Hardware: 2, Evict: diagnosis.CapacityEvict{Fits: 2}},
	}}
}

// Of several resources the answer for all of them comes first, and each says what it was
// counted after.
func TestCapacityTogether(t *testing.T) {
	list := capacities()
	list.Items = list.Items[:1]
	list.Items[0].After = []string{"nvidia.com/mig-1g.5gb=2"}
	for want, together := range map[string]diagnosis.CapacityTogether{
		"together: yes, after moving 1 pod\nevicts: ml/x\nchanges: gpu-node-1\n": {Answer: diagnosis.Yes, Evictions: []diagnosis.PodName{{Namespace: "ml", Name: "x"}}, Nodes: []string{"gpu-node-1"}},
		"together: yes, nobody has to move\n":                                    {Answer: diagnosis.Yes},
		"together: unknown\nwhy: not every way was tried\n":                      {Answer: diagnosis.Undecided, Why: "not every way was tried"},
	} {
		list.Together = &together
		var b bytes.Buffer
		if err := Capacity(&b, list, Options{}); err != nil {
			t.Fatal(err)
		}
		want += "\n3 more nvidia.com/mig-3g.20gb: yes, after moving 1 pod\nafter: nvidia.com/mig-1g.5gb=2\nHOW"
		if !strings.HasPrefix(b.String(), want) {
			t.Errorf("%s\nwant\n%s", b.String(), want)
		}
	}
}

func TestCapacityGolden(t *testing.T) {
	for name, o := range map[string]Options{"capacity.ascii.txt": {style: style{ASCII: true}}, "capacity.colour.txt": {style: style{Width: 80, Color: true}}} {
		var b bytes.Buffer
		if err := Capacity(&b, capacities(), o); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

// The answer is the least trouble that is enough.
func TestCapacityVerdict(t *testing.T) {
	pods := []diagnosis.PodName{{Namespace: "a", Name: "b"}}
	for _, c := range []struct {
		item diagnosis.CapacityItem
		want string
	}{
		{diagnosis.CapacityItem{Asked: 1, Now: 1, Repartition: 1, Hardware: 1, Evict: diagnosis.CapacityEvict{Fits: 1}}, "yes, now"},
		{diagnosis.CapacityItem{Asked: 2, Now: 1, Repartition: 2, Hardware: 2, Evict: diagnosis.CapacityEvict{Fits: 2}}, "yes, after moving nobody"},
		{diagnosis.CapacityItem{Asked: 2, Hardware: 2, Evict: diagnosis.CapacityEvict{Fits: 2, Evictions: pods}}, "yes, after moving 1 pod"},
		{diagnosis.CapacityItem{Asked: 2, Hardware: 2}, "only by re-making single instances"},
		{diagnosis.CapacityItem{Asked: 3, Repartition: 1, Hardware: 1, Evict: diagnosis.CapacityEvict{Fits: 2, Evictions: append(pods, pods...)}}, "no, at most 2, after moving 2 pods"},
		{diagnosis.CapacityItem{Asked: 3, Now: 1, Repartition: 1, Hardware: 1, Evict: diagnosis.CapacityEvict{Fits: 1}}, "no, at most 1"},
	} {
		if got := capacityVerdict(c.item); got != c.want {
			t.Errorf("%+v: %q, want %q", c.item, got, c.want)
		}
	}
}

func TestCapacityWriteError(t *testing.T) {
	if err := Capacity(broken{}, capacities(), Options{}); err == nil || !strings.Contains(err.Error(), "write capacity: disk full") {
		t.Error(err)
	}
}
