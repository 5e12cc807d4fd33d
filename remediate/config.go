package remediate

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// setConfig asks MIG manager for a config: the label and our mark in one write.
func (s *saga) setConfig(ctx context.Context, config string, check func(*corev1.Node, map[string]string) error) error {
	s.own.Step = "config " + config
	return s.edit(ctx, func(n *corev1.Node, now map[string]string) error {
		s.state = n.Labels[labelState]
		return check(n, now)
	}, nil, map[string]any{labelConfig: config}, &s.own)
}

// writeEntry adds the custom entry to the ConfigMap, beside those that are there.
func (s *saga) writeEntry(ctx context.Context) error {
	var entry any
	if err := json.Unmarshal(s.plan.Entry, &entry); err != nil {
		return fmt.Errorf("read the entry: %w", err)
	}
	return s.editEntries(ctx, func(entries map[string]any) {
		_, there := entries[s.plan.Config]
		s.entered = !there && !s.DryRun
		entries[s.plan.Config] = entry
	})
}

// dropEntry takes the custom entry out again.
func (s *saga) dropEntry(ctx context.Context) error {
	if !s.entered {
		return nil
	}
	return s.editEntries(ctx, func(entries map[string]any) { delete(entries, s.plan.Config) })
}

// editEntries changes the entries of the mig-parted config on the version that was
// just read.
func (s *saga) editEntries(ctx context.Context, edit func(entries map[string]any)) error {
	t := *s.plan.ConfigMap
	return s.onFresh(ctx, t, func(o metav1.Object) error {
		cm := o.(*corev1.ConfigMap).DeepCopy()
		var config map[string]any
		if err := yaml.Unmarshal([]byte(cm.Data["config.yaml"]), &config); err != nil {
			return fmt.Errorf("read config.yaml of configmap %s/%s: %w", t.Namespace, t.Name, err)
		}
		entries, ok := config["mig-configs"].(map[string]any)
		if !ok {
			return fmt.Errorf("configmap %s/%s: config.yaml has no mig-configs", t.Namespace, t.Name)
		}
		edit(entries)
		text, err := yaml.Marshal(config)
		if err != nil {
			return fmt.Errorf("write config.yaml: %w", err)
		}
		cm.Data["config.yaml"] = string(text)
		_, err = s.Client.CoreV1().ConfigMaps(t.Namespace).Update(ctx, cm, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: s.dryRun()})
		return err
	})
}
