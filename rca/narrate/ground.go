package narrate

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plain says whether a text is one short sentence in which no place reads a link, a mention,
// a command or markup, and that leads nowhere.
func plain(text string) bool {
	switch low := strings.ToLower(text); {
	case strings.TrimSpace(text) == "", utf8.RuneCountInString(text) > maxSentence, strings.ContainsAny(text, "<>@#`*[]{}|\\~^$\uFFFD"):
		return false
	case strings.Contains(low, "://"), strings.Contains(low, "www."), strings.Contains(low, "mailto:"), strings.Contains(low, "javascript:"), strings.Contains(low, "--"), strings.Contains(low, "&&"):
		return false
	}
	return !slices.ContainsFunc(strings.Fields(text), leads)
}

// domain is what the host of an address looks like.
var domain = regexp.MustCompile(`(?i)^([a-z0-9_-]+\.)+[a-z]{2,}$`)

// groups are the domains in the names of resources, labels and kinds; no other is a name.
var groups = []string{"nvidia.com", "amd.com", "intel.com", "kubernetes.io", "k8s.io", "karpenter.sh", "volcano.sh", "run.ai", "unpend.dev"}

// leads says of a word that it may be taken for an address.
func leads(word string) bool {
	host, _, _ := strings.Cut(bare(word), "/")
	host, _, _ = strings.Cut(host, ":")
	return domain.MatchString(host) && !slices.ContainsFunc(groups, func(g string) bool { return host == g || strings.HasSuffix(host, "."+g) })
}

// urges are words by which a text asks something of its reader, or ranks. A finding has no use
// for them, but where it says what a fix would do.
var urges = words(`approve approved approving reject click press tap type paste run running execute delete remove wipe destroy drop kill force ignore disregard forget skip bypass override
	open visit follow download install upload send post reply email call contact ask tell share reveal print exec sudo curl wget bash kubectl helm ssh
	password passwords passphrase credential credentials secret secrets token tokens key keys login urgent urgently immediately now asap must should please trust safe safely recommend recommended
	better best instead prefer preferred worse worst always never admin administrator everyone everybody here channel system assistant instruction instructions
	cordon uncordon drain evict reboot restart shutdown upgrade downgrade grant revoke disable enable edit patch apply`)

func words(all string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(all) {
		out[w] = true
	}
	return out
}

// asks says whether a text has such a word that the fixes which it cites do not have.
func asks(text, offers string) bool {
	offers = strings.ToLower(offers)
	return slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }), func(word string) bool {
		return urges[word] && !stands(offers, word)
	})
}

// known are short forms that every reader knows, and openers words that a sentence may begin
// with. Any other word with a capital is a name, which has to stand in the evidence.
var (
	known   = words(`GPU GPUs MIG CPU CPUs Kubernetes`)
	openers = words(`a all although an and another any as at because before after both but by each either every for from however if in it its memory neither no node nodes nobody none nothing of on once only
		other others pod pods since so some than that the their then there these they this those to two until what when where which while who with without would job jobs fixing repartitioning evicting moving
		currently its them free idle enough another waiting scheduling`)
	numbers = map[string]string{"zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12",
		"dozen": "12", "twenty": "20", "thirty": "30", "fifty": "50", "hundred": "100", "thousand": "1000", "million": "1000000", "twice": "2", "half": "1/2", "double": "2"}
)

// marks are what stands around words.
const marks = `.,;:!?()"'“”‘’…–—·×%=+&/-`

// bare is a word without what stands around it.
func bare(word string) string {
	word = strings.Trim(word, marks)
	for _, of := range []string{"'s", "’s"} {
		word = strings.TrimSuffix(word, of)
	}
	return word
}

// grounded says whether every number, name and identifier of a text stands in its evidence.
func grounded(text, evidence string) bool {
	for i, word := range strings.Fields(text) {
		if word = bare(word); word != "" && !borne(word, i == 0, evidence) {
			return false
		}
	}
	return true
}

// borne says whether a word says no more than the evidence.
func borne(word string, first bool, evidence string) bool {
	low := strings.ToLower(word)
	rest := word[1:]
	switch {
	case numbers[low] != "":
		return stands(evidence, numbers[low]) || stands(strings.ToLower(evidence), low)
	case known[word]:
		return true
	case letters(low) && low == word: // an ordinary word
		return true
	case first && letters(low) && strings.ToLower(rest) == rest: // the first of a sentence
		return openers[low] || stands(strings.ToLower(evidence), low)
	}
	return stands(evidence, word)
}

// letters says whether a word is of English letters alone.
func letters(low string) bool {
	return strings.Trim(low, "abcdefghijklmnopqrstuvwxyz") == ""
}

// stands says whether a word is in a text as a word of its own, or as a part between slashes:
// not "1" in "gpu-1", nor "2g" in "2g.10gb".
func stands(text, word string) bool {
	for at := 0; ; {
		i := strings.Index(text[at:], word)
		if i < 0 {
			return false
		}
		from, to := at+i, at+i+len(word)
		if !joined(lastRunes(text[:from])) && !joined(firstRunes(text[to:])) {
			return true
		}
		at = from + 1
	}
}

// joined says of the two characters next to a word, the nearer first, that they make it part
// of a longer one.
func joined(near, far rune) bool {
	is := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	return is(near) || near == '-' || near == '_' || (near == '.' || near == ':') && is(far)
}

func firstRunes(s string) (near, far rune) {
	near, n := decode(utf8.DecodeRuneInString(s))
	far, _ = decode(utf8.DecodeRuneInString(s[n:]))
	return near, far
}

func lastRunes(s string) (near, far rune) {
	near, n := decode(utf8.DecodeLastRuneInString(s))
	far, _ = decode(utf8.DecodeLastRuneInString(s[:len(s)-n]))
	return near, far
}

// decode has a space where there is nothing.
func decode(r rune, n int) (rune, int) {
	if n == 0 {
		return ' ', 0
	}
	return r, n
}
