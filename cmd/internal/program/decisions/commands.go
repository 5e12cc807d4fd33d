package decisions

import (
	"github.com/spf13/cobra"

	"github.com/unpend/unpend/cmd/internal/program/console"
	"github.com/unpend/unpend/cmd/internal/program/sources"
)

// Commands are the commands of this room.
func Commands(kube *sources.KubeFlags, std console.Stdio) []*cobra.Command {
	return []*cobra.Command{waitCommand(kube, std), approveCommand(kube, std), rejectCommand(kube, std), releaseCommand(kube, std), remediationsCommand(kube, std), statusCommand(kube, std)}
}
