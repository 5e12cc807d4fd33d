package settings

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/unpend/unpend/remediate/plan"
)

// identities reads which id is which user out of a configuration that was read before,
// and checks it; errors name the lines.
func (c Config) identities(data []byte) (plan.Identities, error) {
	var at struct {
		Remediate struct {
			Identities []yaml.Node `yaml:"identities"`
		} `yaml:"remediate"`
	}
	if err := yaml.Unmarshal(data, &at); err != nil {
		return plan.Identities{}, fmt.Errorf("find the lines of remediate.identities: %w", err)
	}
	for i, node := range at.Remediate.Identities {
		c.Remediate.Identities[i].Line = node.Line
	}
	return plan.NewIdentities(c.Remediate.Identities)
}
