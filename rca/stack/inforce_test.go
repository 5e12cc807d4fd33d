package stack

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/unpend/unpend/rca/stack/parts"
)

// A configuration of the device plugin has its version; scripts and other files have none.
func TestConfigures(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string]string
		want bool
	}{
		"a configuration": {map[string]string{"any": bySlices}, true},
		"beside a script": {map[string]string{"a.sh": "#!/bin/bash", "b": "version: v1"}, true},
		"a script":        {map[string]string{"entrypoint.sh": "#!/bin/bash\nexec x"}, false},
		"another file":    {map[string]string{"values": "replicas: 4"}, false},
		"of no version":   {map[string]string{"a": "version: \"\""}, false},
		"nothing":         {nil, false},
	} {
		if got := parts.Configures(&corev1.ConfigMap{Data: c.data}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
