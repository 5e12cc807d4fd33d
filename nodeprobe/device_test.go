package nodeprobe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What each name means; nil: it means nothing.
var (
	ids = map[string]*Device{
		"GPU-0f3c6a2e-9b1d-4f5a-8e7c-0123456789ab": {UUID: "GPU-0f3c6a2e-9b1d-4f5a-8e7c-0123456789ab"},
		"MIG-9d14fb21-4ae1-546f-a636-011582899c39": {UUID: "MIG-9d14fb21-4ae1-546f-a636-011582899c39"},
		"GPU-1::0":                   {UUID: "GPU-1"},
		"MIG-1::17":                  {UUID: "MIG-1"},
		"MIG-GPU-1-2/7/0":            {UUID: "MIG-GPU-1-2/7/0", Parent: "GPU-1-2", InstanceID: 7},
		"MIG-GPU-1-2/7/0::3":         {UUID: "MIG-GPU-1-2/7/0", Parent: "GPU-1-2", InstanceID: 7},
		"":                           nil,
		"GPU-":                       nil,
		"GPU-1::":                    nil,
		"GPU-1::x":                   nil,
		"GPU-1::-1":                  nil,
		"GPU-1::+1":                  nil,
		"GPU-1::1::1":                nil,
		"MIG-GPU-1/7":                nil,
		"MIG-GPU-1/x/0":              nil,
		"MIG-GPU-1/99999999999999/0": nil,
		"nvidia0/gi3":                nil,
		"gpu-0":                      nil,
		" GPU-1":                     nil,
		"0000:3b:00.2":               nil,
	}
	draNames = map[string]*Device{
		"gpu-0":                             {Minor: 0},
		"gpu-15":                            {Minor: 15},
		"gpu-0-mig-1g5gb-19-2":              {Place: &Place{ProfileID: 19, Start: 2}},
		"gpu-3-mig-1g5gb-me-20-6":           {Minor: 3, Place: &Place{ProfileID: 20, Start: 6}},
		"gpu-0-mig-1g24gb-meall-65-9":       {Place: &Place{ProfileID: 65, Start: 9}},
		"gpu-0-mig-7g40gb-0-0":              {Place: &Place{}},
		"gpu-0-mig-19-2-1":                  {Place: &Place{ProfileID: 19, Start: 2, Size: 1}},
		"gpu-0-mig-9-4-4":                   {Place: &Place{ProfileID: 9, Start: 4, Size: 4}},
		"gpu-0-mig-19-2-0":                  nil,
		"gpu-0-mig-19-2":                    nil,
		"gpu-0-mig-1c3g20gb-9-4":            nil,
		"gpu-0-mig-1g5gb-19":                nil,
		"gpu-0-mig-":                        nil,
		"gpu-":                              nil,
		"gpu--1":                            nil,
		"gpu-0-mig-1g5gb-99999999999-2":     nil,
		"GPU-1":                             nil,
		"gpu-vfio-0":                        nil,
		"gpu-0\n":                           nil,
		"gpu-00000000000000000000000000001": nil,
	}
)

func TestDeviceNames(t *testing.T) {
	for parse, table := range map[*func(string) (Device, error)]map[string]*Device{new(ParseDeviceID): ids, new(ParseDRADevice): draNames} {
		for name, want := range table {
			got, err := (*parse)(name)
			switch {
			case want == nil && (err == nil || !cmp.Equal(got, Device{})):
				t.Errorf("%q is read as %+v", name, got)
			case want != nil && (err != nil || !cmp.Equal(got, *want)):
				t.Errorf("%q: %+v, %v; want %+v", name, got, err, *want)
			}
		}
	}
}

// FuzzDeviceID: never a panic; what is read is one device, whatever share of it.
func FuzzDeviceID(f *testing.F) {
	for id := range ids {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		d, err := ParseDeviceID(id)
		if err != nil {
			return
		}
		if uuid, _, _ := strings.Cut(id, "::"); d.UUID != uuid || d.Place != nil || d.Minor != 0 || d.InstanceID < 0 {
			t.Fatalf("%q is read as %+v", id, d)
		}
		share, err := ParseDeviceID(d.UUID + "::7")
		if err != nil || !cmp.Equal(share, d) {
			t.Fatalf("a share of %q is %+v, %v", d.UUID, share, err)
		}
	})
}

// FuzzDRADevice: never a panic, nor a place that is none.
func FuzzDRADevice(f *testing.F) {
	for name := range draNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		d, err := ParseDRADevice(name)
		if err != nil {
			return
		}
		if d.UUID != "" || d.Minor < 0 || (d.Place == nil) == strings.Contains(name, "mig") {
			t.Fatalf("%q is read as %+v", name, d)
		}
		if p := d.Place; p != nil && (p.ProfileID < 0 || p.Start < 0 || p.Size < 0) {
			t.Fatalf("%q is read as %+v", name, *p)
		}
	})
}
