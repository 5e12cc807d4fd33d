package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// krew writes the manifest by which krew installs the program as `kubectl unpend`, and gives its
// name, which krew wants to be the plugin's.
func (m *maker) krew(archives map[platform]string) (string, error) {
	order := slices.SortedFunc(maps.Keys(archives), func(a, b platform) int { return strings.Compare(a.String(), b.String()) })
	platforms := make([]any, len(order))
	for i, p := range order {
		sum, err := m.sum(archives[p])
		if err != nil {
			return "", err
		}
		platforms[i] = map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"os": p.os, "arch": p.arch}},
			"uri":      fmt.Sprintf("%s/v%s/%s", m.download, m.version, archives[p]), "sha256": sum, "bin": "unpend",
		}
	}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": map[string]any{"name": "unpend"},
		"spec": map[string]any{
			"version": "v" + m.version, "homepage": "https://github.com/unpend/unpend", "platforms": platforms,
			"shortDescription": "Say why GPU pods wait, and get them running",
			"description": `Joins the MIG geometry of every GPU with the scheduler's own code, run on a
copy of the cluster: says what keeps a pod from every node, ranks fixes that
were proved on that copy, and carries one out once you approve it.
`,
		},
	})
	if err != nil {
		return "", err
	}
	return "unpend.yaml", os.WriteFile(filepath.Join(m.out, "unpend.yaml"), data, 0o644)
}
