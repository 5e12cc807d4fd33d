package narrate

import "regexp"

// secrets are what credentials look like that people and programs write into events and
// annotations. What a text says around them stays.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*)?`),                                                         // JSON web tokens
	regexp.MustCompile(`\b(xox[abeoprs]|xapp)-[A-Za-z0-9-]{8,}`),                                                                             // Slack
	regexp.MustCompile(`\b(gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[\w-]{16,})`),                                       // GitHub, GitLab
	regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{16}\b`),                                                                                        // AWS
	regexp.MustCompile(`\b(sk|rk|pk|nvapi|hf|whsec)[-_][A-Za-z0-9_-]{16,}`),                                                                  // models' servers, webhooks
	regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{30,}`),                                                                                           // Google
	regexp.MustCompile(`(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`),                                                                      // of a header
	regexp.MustCompile(`(?i)\b[\w-]*(passw(or)?d|passphrase|secret|token|api-?_?key|credentials?)["']?\s*[:=]\s*("[^"]*"|'[^']*'|[^\s,;]+)`), // named so
	regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/@:]+:[^\s/@]+@`),                                                                      // of an address
	regexp.MustCompile(`\b[A-Fa-f0-9]{32,}\b`),                                                                                               // hashes and keys
	regexp.MustCompile(`\b[A-Za-z0-9+/]{48,}={0,2}`),                                                                                         // base64
}

// redact takes out what looks like a secret.
func redact(text string) string {
	for _, s := range secrets {
		text = s.ReplaceAllString(text, "(redacted)")
	}
	return text
}
