package outside

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/unpend/unpend/rca/diagnosis"
	"github.com/unpend/unpend/rca/edit"
	"github.com/unpend/unpend/rca/scaling"
	"github.com/unpend/unpend/rca/view"
)

// ofClass says which field of a node class a condition of it is about (karpenter-provider-aws pkg/controllers/nodeclass,
// karpenter-provider-azure pkg/controllers/nodeclass), and by which command AWS lists what that may find.
var ofClass = map[string]struct{ field, list string }{
	"SubnetsReady":              {"subnetSelectorTerms", "aws ec2 describe-subnets --query 'Subnets[].[SubnetId,AvailabilityZone,Tags]' --output json"},
	"SecurityGroupsReady":       {"securityGroupSelectorTerms", "aws ec2 describe-security-groups --query 'SecurityGroups[].[GroupId,GroupName,Tags]' --output json"},
	"AMIsReady":                 {"amiSelectorTerms", ""},
	"CapacityReservationsReady": {"capacityReservationSelectorTerms", "aws ec2 describe-capacity-reservations --query 'CapacityReservations[].[CapacityReservationId,State,Tags]' --output json"},
	"InstanceProfileReady":      {"role", ""},
	"ImagesReady":               {"imageFamily", ""},
}

// mendPool is for the NodePool that Karpenter passes over without a word: it, or its node class, says itself why.
func mendPool(c *edit.Workload, p *scaling.Pool) edit.Change {
	k := p.Class
	if strings.Contains(p.Why.Reason, "NodeClassNotFound") {
		return Growing(diagnosis.AutoscalerCannotHelp, fmt.Sprintf("make %s %s, which NodePool %s names, or name one that exists", k.Kind, k.Name, p.Name),
			"kubectl get "+strings.ToLower(k.Kind), "kubectl edit nodepool "+p.Name+"  # spec.template.spec.nodeClassRef")
	}
	if k.Ready.Status == "" || k.Ready.Met() {
		return mendUnread(p)
	}
	of := fmt.Sprintf("%s %s, which NodePool %s makes its machines by", k.Kind, k.Name, p.Name)
	if role := k.Unauthorized(); role != "" {
		return letRoleIn(p, role)
	}
	ch := Growing(diagnosis.AutoscalerCannotHelp, "mend "+of+": it is not Ready")
	if len(k.Why) > 0 || k.Ready.Reason != "" {
		ch.Title = "mend " + of + ": " + view.Cut(k.Words(), 160)
	}
	kind := strings.ToLower(k.Kind)
	for _, why := range k.Why {
		about, known := ofClass[why.Of()]
		if !known {
			continue
		}
		if k.Kind == autoMode && why.Of() == "InstanceProfileReady" {
			return letRoleIn(p, k.Role)
		}
		ch.Title = fmt.Sprintf("mend %s, in its spec.%s: %s", of, about.field, view.Cut(why.Words(), 160))
		ch.Commands = append(ch.Commands, fmt.Sprintf("kubectl get %s %s -o jsonpath='{.spec.%s}'", kind, k.Name, about.field))
		if about.list != "" && provider(c) == "aws" {
			ch.Commands = append(ch.Commands, about.list)
		}
		break
	}
	ch.Commands = append(ch.Commands, "kubectl describe "+kind+" "+k.Name, "kubectl edit "+kind+" "+k.Name, "kubectl get nodepool "+p.Name+" -w")
	return ch
}

// unmet is how a NodePool names what of its node class is not met (operatorpkg status, UnhealthyDependents).
var unmet = regexp.MustCompile(`\b([A-Z][A-Za-z]+Ready)=(?:False|Unknown)`)

// mendUnread is mendPool where the node class is not read here: what the pool hands on of it.
func mendUnread(p *scaling.Pool) edit.Change {
	k, kind := p.Class, strings.ToLower(cmp.Or(p.Class.Kind, "nodeclass"))
	ch := Growing(diagnosis.AutoscalerCannotHelp, "mend NodePool "+p.Name+", or the node class that it names: it is not Ready", "kubectl describe nodepool "+p.Name)
	if k.Name == "" {
		ch.Commands = append(ch.Commands, "kubectl get nodepool "+p.Name+" -o jsonpath='{.spec.template.spec.nodeClassRef}'", "# then kubectl describe that node class")
		return ch
	}
	if p.Why.Status != "" {
		ch.Title = fmt.Sprintf("mend %s %s, which NodePool %s makes its machines by: %s", k.Kind, k.Name, p.Name, view.Cut(p.Why.Words(), 160))
	}
	ch.Commands = append(ch.Commands, "kubectl describe "+kind+" "+k.Name, "kubectl get nodepool "+p.Name+" -w")
	for _, m := range unmet.FindAllStringSubmatch(p.Why.Message, -1) {
		about, known := ofClass[m[1]]
		if !known {
			continue
		}
		ch.Title = fmt.Sprintf("mend spec.%s of %s %s, which NodePool %s makes its machines by: %s is not met", about.field, k.Kind, k.Name, p.Name, m[1])
		if k.Kind == autoMode && m[1] == "InstanceProfileReady" {
			return letRoleIn(p, "")
		}
	}
	return ch
}

// autoMode is the node class of EKS Auto Mode.
const autoMode = "NodeClass"

// letRoleIn is for the role of EKS Auto Mode's machines that the cluster does not know: that of a class which somebody has made
// is not let in by EKS itself (docs.aws.amazon.com/eks, create-node-class). It looks for the role by its name alone, so that
// one with a path is not found (aws/containers-roadmap issue 2486).
func letRoleIn(p *scaling.Pool, role string) edit.Change {
	k := p.Class
	const arn = "arn:aws:iam::ACCOUNT:role/"
	title := fmt.Sprintf("let the machines of NodePool %s into the cluster: role %s of %s %s has no access entry of type EC2, or a path in its name", p.Name, role, k.Kind, k.Name)
	if role == "" {
		title, role = fmt.Sprintf("let the machines of NodePool %s into the cluster: the role that %s %s names has no access entry of type EC2, or a path in its name, or EKS may not make a profile of it", p.Name, k.Kind, k.Name), "ROLE"
	}
	return Growing(diagnosis.AutoscalerCannotHelp, title,
		fmt.Sprintf("kubectl describe %s %s  # spec.role, and its condition InstanceProfileReady", strings.ToLower(cmp.Or(k.Kind, autoMode)), k.Name),
		"aws eks list-access-entries --cluster-name CLUSTER",
		"aws eks create-access-entry --cluster-name CLUSTER --type EC2 --principal-arn "+arn+role,
		"aws eks associate-access-policy --cluster-name CLUSTER --principal-arn "+arn+role+" --policy-arn arn:aws:eks::aws:cluster-access-policy/AmazonEKSAutoNodePolicy --access-scope type=cluster",
		"aws iam get-role --role-name "+role+" --query Role.Arn  # with a path, as role/team/NAME, Auto Mode does not find its entry: another role, without",
		fmt.Sprintf("kubectl get %s %s -w", strings.ToLower(cmp.Or(k.Kind, autoMode)), k.Name))
}
