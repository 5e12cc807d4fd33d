package notifytest_test

import (
	"testing"

	"github.com/unpend/unpend/remediate/notifytest"
)

func TestMemory(t *testing.T) {
	notifytest.Run(t, func(*testing.T, *notifytest.Clock) notifytest.Service { return notifytest.NewMemory() })
}
