package act

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/nodeprobe"
	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/remediate/journal"
	"github.com/unpend/unpend/remediate/plan"
)

// partedConfig is mig-parted's configuration as its ConfigMap has it, with all that
// people have written into it: comments and order stay.
type partedConfig struct {
	of      diagnosis.Target
	object  *corev1.ConfigMap
	doc     yaml.Node
	entries *yaml.Node // the mapping under mig-configs
}

const partedKey = "config.yaml"

// ErrNoLayouts says that what is in the ConfigMap is not mig-parted's.
var ErrNoLayouts = errors.New("these are no MIG layouts")

func (s *relayout) partedConfig(ctx context.Context) (*partedConfig, error) {
	c := &partedConfig{of: *s.how.ConfigMap}
	o, err := s.fresh(ctx, c.of)
	if err != nil {
		return nil, err
	}
	c.object = o.(*corev1.ConfigMap).DeepCopy()
	if err := yaml.Unmarshal([]byte(c.object.Data[partedKey]), &c.doc); err != nil {
		return nil, fmt.Errorf("read %s of configmap %s/%s: %w: %w", partedKey, c.of.Namespace, c.of.Name, ErrNoLayouts, err)
	}
	if len(c.doc.Content) > 0 {
		c.entries = valueOf(c.doc.Content[0], "mig-configs")
	}
	if c.entries == nil || c.entries.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%w: configmap %s/%s: %s has no mig-configs", ErrNoLayouts, c.of.Namespace, c.of.Name, partedKey)
	}
	return c, nil
}

// valueOf is what a mapping has under a key; nil when it has not.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// writeEntry adds the custom entry to the ConfigMap, beside those that are there.
// Its name tells its content: one that is there already is left alone, unless
// somebody has changed it.
func (s *relayout) writeEntry(ctx context.Context, _ *journal.Entry) (string, error) {
	c, err := s.partedConfig(ctx)
	if err != nil {
		return "", err
	}
	want, err := s.wantedEntry()
	if err != nil {
		return "", err
	}
	if is := valueOf(c.entries, s.how.Config); is != nil {
		if !sameYAML(is, want) {
			return "", fmt.Errorf("%w: configmap %s/%s: somebody has changed entry %s", plan.ErrStale, c.of.Namespace, c.of.Name, s.how.Config)
		}
		return "", nil
	}
	key, value, err := newEntry(s.how.Config, want)
	if err != nil {
		return "", err
	}
	c.entries.Content = append(c.entries.Content, key, value)
	return s.writeConfig(ctx, c)
}

func newEntry(name string, want any) (key, value *yaml.Node, err error) {
	key, value = &yaml.Node{}, &yaml.Node{}
	key.SetString(name)
	if err := value.Encode(want); err != nil {
		return nil, nil, fmt.Errorf("write the entry: %w", err)
	}
	return key, value, nil
}

// at is where the key of an entry stands; less than 0 when it does not.
func (c *partedConfig) at(name string) int {
	for i := 0; i+1 < len(c.entries.Content); i += 2 {
		if c.entries.Content[i].Value == name {
			return i
		}
	}
	return -1
}

func (c *partedConfig) remove(name string) {
	if i := c.at(name); i >= 0 {
		c.entries.Content = slices.Delete(c.entries.Content, i, i+2)
	}
}

func sameYAML(is *yaml.Node, want any) bool {
	var have any
	if is.Decode(&have) != nil {
		return false
	}
	a, errA := json.Marshal(have)
	b, errB := json.Marshal(want)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// dropEntry takes the custom entry out again, unless a node asks for it, or it is no
// longer what we wrote.
func (s *relayout) dropEntry(ctx context.Context, _ *journal.Entry) (string, error) {
	nodes, err := s.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: nodeprobe.LabelMIGConfig + "=" + s.how.Config})
	if err != nil || len(nodes.Items) > 0 {
		return "", err
	}
	c, err := s.partedConfig(ctx)
	if err != nil {
		return "", err
	}
	want, err := s.wantedEntry()
	if err != nil {
		return "", err
	}
	if is := valueOf(c.entries, s.how.Config); is == nil || !sameYAML(is, want) {
		return "", nil
	}
	c.remove(s.how.Config)
	return s.writeConfig(ctx, c)
}

func (s *relayout) wantedEntry() (any, error) {
	var want any
	if err := json.Unmarshal(s.how.Entry, &want); err != nil {
		return nil, fmt.Errorf("read the entry: %w", err)
	}
	return want, nil
}

// writeConfig writes the configuration on the version it was read at.
func (s *relayout) writeConfig(ctx context.Context, c *partedConfig) (string, error) {
	var text bytes.Buffer
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	if err := out.Encode(&c.doc); err != nil {
		return "", fmt.Errorf("write %s: %w", partedKey, err)
	}
	before := c.object.DeepCopy()
	c.object.Data[partedKey] = text.String()
	if equality.Semantic.DeepEqual(before, c.object) {
		return "", nil
	}
	_, err := s.Client.CoreV1().ConfigMaps(c.of.Namespace).Update(ctx, c.object, metav1.UpdateOptions{FieldManager: plan.FieldManager, DryRun: s.dryRun()})
	if apierrors.IsConflict(err) {
		return "others write to it", nil
	}
	return "", stale(err, c.of)
}
