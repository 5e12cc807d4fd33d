package view

import (
	schedulingv1 "k8s.io/api/scheduling/v1"
)

func IsDefaultClass(name string) func(*schedulingv1.PriorityClass) bool {
	return func(k *schedulingv1.PriorityClass) bool { return k.Name == name && k.GlobalDefault }
}
