package view

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

func QuantityText(q resource.Quantity) string { return q.String() }
