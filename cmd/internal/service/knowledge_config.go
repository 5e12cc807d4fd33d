package service

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/unpend/unpend/knowledge/jira"
)

const (
	// defaultDocuments is room for some 250,000 threads of 60 words.
	defaultDocuments, minDocuments = 256 << 20, 1 << 20
	// slackEvery and jiraEvery are how often it is looked for what is new. Slack tells of it by
	// events, too.
	slackEvery, jiraEvery = time.Hour, 5 * time.Minute
	leastEvery            = time.Minute
)

// knowledgeConfig is what the team has said before, and a diagnosis quotes.
type knowledgeConfig struct {
	// Folder of Markdown runbooks and past incidents.
	Folder string `json:"folder"`
	// Library is the folder that documents are kept in; a temporary one without it, which is
	// filled again at every start: from the folder, and from the bus.
	Library string `json:"library"`
	// MaxBytes of documents on the bus, besides bus.maxBytes (256 MiB).
	MaxBytes byteSize `json:"maxBytes"`
	// Slack and Jira are read by the process that leads, for all.
	Slack knowledgeSlack `json:"slack"`
	Jira  knowledgeJira  `json:"jira"`
	// Embeddings is a model by which documents are also found by what they mean.
	Embeddings knowledgeEmbeddings `json:"embeddings"`
	// Tell says of channels, projects and folders where what they say may be quoted and found;
	// of what it does not name: everywhere, and of a private channel in that channel alone.
	Tell []tellRule `json:"tell"`
}

// knowledgeSlack are the channels that are read.
type knowledgeSlack struct {
	// TokenFile holds the token of an app of the own organisation (xoxb-…).
	TokenFile string `json:"tokenFile"`
	// AppTokenFile holds the app's token (xapp-…), by which events are heard in Socket Mode.
	// Where it is the same app as slack.appTokenFile names, leave it out: its events are heard
	// there, in the process that slack.heardBy says.
	AppTokenFile string `json:"appTokenFile"`
	// Channels to read, by name or id; no others are.
	Channels []string `json:"channels"`
	// PrivateChannels to read as well. They are quoted in themselves alone, and where
	// knowledge.tell says.
	PrivateChannels []string `json:"privateChannels"`
	// Every is how often it is looked for what is new (1h).
	Every *metav1.Duration `json:"every"`

	url string // of Slack's API, in tests
}

// knowledgeJira are the projects that are read.
type knowledgeJira struct {
	// URL of the site or server, https://example.atlassian.net.
	URL string `json:"url"`
	// Deployment is cloud or datacenter.
	Deployment string `json:"deployment"`
	// TokenFile holds the API token, on Data Center a personal access token.
	TokenFile string `json:"tokenFile"`
	// User is the account's e-mail address, on Cloud alone.
	User string `json:"user"`
	// Site that people browse, where it is not the URL.
	Site string `json:"site"`
	// Projects to read, by their keys.
	Projects []string `json:"projects"`
	// Every is how often it is looked for what is new (5m).
	Every *metav1.Duration `json:"every"`
	// Sweep is how often it is looked for what is gone (24h).
	Sweep *metav1.Duration `json:"sweep"`
}

func (c knowledgeSlack) given() bool { return !reflect.DeepEqual(c, knowledgeSlack{}) }

func (c knowledgeJira) given() bool { return !reflect.DeepEqual(c, knowledgeJira{}) }

// shared is whether there are documents that one process reads for all.
func (c knowledgeConfig) shared() bool { return c.Slack.given() || c.Jira.given() }

// documents is what the bus has to have room for.
func (c knowledgeConfig) documents() int64 {
	switch {
	case !c.shared():
		return 0
	case c.MaxBytes == 0:
		return defaultDocuments
	}
	return int64(c.MaxBytes)
}

// overheard is whether events are heard where people click.
func (c Config) overheard() bool {
	return c.Knowledge.Slack.given() && c.Knowledge.Slack.AppTokenFile == "" && c.Slack.heard()
}

// check says what of it cannot be meant, by its key.
func (c knowledgeConfig) check(told slackConfig) error {
	var wrong []error
	say := func(bad bool, format string, of ...any) {
		if bad {
			wrong = append(wrong, fmt.Errorf(format, of...))
		}
	}
	say(c.MaxBytes != 0 && c.MaxBytes < minDocuments, "knowledge.maxBytes is %d: it has to be %d or more", c.MaxBytes, minDocuments)
	for n, r := range c.Tell {
		if err := r.check(); err != nil {
			wrong = append(wrong, fmt.Errorf("knowledge.tell[%d]: %w", n, err))
		}
	}
	if e := c.Embeddings; e.given() {
		say(e.URL == "" || e.Model == "", "knowledge.embeddings.url is %q and knowledge.embeddings.model is %q: both have to be given, an address up to and with /v1 and what the server there calls the model", e.URL, e.Model)
		say(!c.keeps(), "knowledge.embeddings is given, and nothing to learn: set knowledge.library, knowledge.slack or knowledge.jira")
	}
	if s := c.Slack; s.given() {
		say(s.TokenFile == "", "knowledge.slack.tokenFile is not given: it has to be a file that holds the token of an app of your organisation (xoxb-…)")
		say(len(s.Channels)+len(s.PrivateChannels) == 0, "knowledge.slack.channels and knowledge.slack.privateChannels are empty: name what may be read and quoted, by name or id")
		say(s.AppTokenFile != "" && s.AppTokenFile == told.AppTokenFile, "knowledge.slack.appTokenFile is slack.appTokenFile: leave it out, Slack gives an event to one of an app's connections only")
		wrong = append(wrong, often("knowledge.slack.every", s.Every))
	}
	if j := c.Jira; j.given() {
		say(j.TokenFile == "", "knowledge.jira.tokenFile is not given: it has to be a file that holds the account's token")
		if err := j.options().Validate(); err != nil {
			wrong = append(wrong, fmt.Errorf("knowledge.jira.%w", err))
		}
		wrong = append(wrong, often("knowledge.jira.every", j.Every), often("knowledge.jira.sweep", j.Sweep))
	}
	return errors.Join(wrong...)
}

func often(key string, d *metav1.Duration) error {
	if d != nil && d.Duration < leastEvery {
		return fmt.Errorf("%s is %s: it has to be %s or more", key, d.Duration, leastEvery)
	}
	return nil
}

func (c knowledgeJira) options() jira.APIOptions {
	o := jira.APIOptions{URL: c.URL, Deployment: c.Deployment, User: c.User, Site: c.Site, Projects: c.Projects, Only: true}
	if c.Sweep != nil {
		o.Sweep = c.Sweep.Duration
	}
	return o
}

// orElse is a duration of the configuration.
func orElse(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}
