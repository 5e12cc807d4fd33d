package knowledge

import (
	"regexp"
	"slices"
	"strings"
)

// Exact identifiers: strings that name one thing, which an English analyzer
// would cut to pieces ("nvidia.com/mig-3g.20gb" → mig, 3g, 20gb).
var (
	// Resource names, label and annotation keys.
	qualifiedName = regexp.MustCompile(`\b[a-zA-Z0-9][a-zA-Z0-9-]*(?:\.[a-zA-Z0-9-]+)+/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`)
	migProfile    = regexp.MustCompile(`\b[0-9]+g\.[0-9]+gb(?:[.+](?:me|gfx)(?:\.[a-z]+)*)?`)
	// "XID 79", "Xid: 79" and the kernel's "NVRM: Xid (PCI:0000:65:00): 79, pid=…".
	xidNumber = regexp.MustCompile(`(?i)\bxid[\s:#=]*(?:\(pci:[^)]*\)[\s:]*)?([0-9]{1,4})\b`)
	// MIGLayoutMismatch, DevicePluginDown, OOMKilled; not GPUs or NVIDIA.
	camelCase = regexp.MustCompile(`\b(?:[A-Z][A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*|[A-Z]{2,}[a-z]{2,}[A-Za-z0-9]*)\b`)
	// NVML_ERROR_IN_USE.
	errorCode = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
	// gpu-node-17: a name with a hyphen and a digit, which ordinary words lack.
	objectName = regexp.MustCompile(`\b[a-z][a-z0-9]*(?:-[a-z0-9]+)*-[a-z0-9]*[0-9][a-z0-9]*\b`)
)

// separable parts words that the tokenizer would keep in one: "reserved:NoSchedule".
// Every replacement is as long as what it replaces, so that offsets stay.
var separable = strings.NewReplacer(":", " ", "_", " ")

// scan parts text into its exact identifiers, each once, in lower case and
// sorted, and the ordinary words that are left, so that the pieces of an
// identifier are not taken for words. A MIG resource name also counts as its
// profile.
func scan(text string) (ids []string, rest string) {
	take := func(re *regexp.Regexp, name func(match string) string) {
		text = re.ReplaceAllStringFunc(text, func(m string) string {
			ids = append(ids, name(m))
			return " "
		})
	}
	profile := func(m string) string { return strings.ReplaceAll(m, "+", ".") }
	take(qualifiedName, func(m string) string {
		if p := migProfile.FindString(m); p != "" {
			ids = append(ids, profile(p))
		}
		return strings.ToLower(m)
	})
	take(xidNumber, func(m string) string {
		return "xid " + strings.TrimLeft(xidNumber.FindStringSubmatch(m)[1], "0")
	})
	take(migProfile, profile)
	for _, re := range []*regexp.Regexp{camelCase, errorCode, objectName} {
		take(re, strings.ToLower)
	}
	slices.Sort(ids)
	return slices.Compact(ids), separable.Replace(text)
}
