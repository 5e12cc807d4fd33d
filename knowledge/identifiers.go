package knowledge

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// The kinds of identifiers, each a field of the index.
const (
	kindResource = "resource" // nvidia.com/mig-2g.10gb, also label and annotation keys
	kindProfile  = "profile"  // 2g.10gb
	kindCause    = "cause"    // MIGFragmented, also OOMKilled: one word in camel case
	kindError    = "error"    // xid 79, NVML_ERROR_IN_USE
	kindObject   = "object"   // gpu-node-17
)

var kinds = []string{kindResource, kindProfile, kindCause, kindError, kindObject}

// identifier is an exact name of a kind, in lower case.
type identifier struct{ kind, name string }

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
func scan(text string) (ids []identifier, rest string) {
	take := func(re *regexp.Regexp, kind string, name func(match string) string) {
		text = re.ReplaceAllStringFunc(text, func(m string) string {
			ids = append(ids, identifier{kind, name(m)})
			return " "
		})
	}
	profile := func(m string) string { return strings.ReplaceAll(m, "+", ".") }
	take(qualifiedName, kindResource, func(m string) string {
		if p := migProfile.FindString(m); p != "" {
			ids = append(ids, identifier{kindProfile, profile(p)})
		}
		return strings.ToLower(m)
	})
	take(xidNumber, kindError, func(m string) string {
		return "xid " + strings.TrimLeft(xidNumber.FindStringSubmatch(m)[1], "0")
	})
	take(migProfile, kindProfile, profile)
	take(camelCase, kindCause, strings.ToLower)
	take(errorCode, kindError, strings.ToLower)
	take(objectName, kindObject, strings.ToLower)
	slices.SortFunc(ids, func(a, b identifier) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.kind, b.kind)) })
	return slices.Compact(ids), separable.Replace(text)
}
