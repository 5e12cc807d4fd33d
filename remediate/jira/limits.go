package jira

import "time"

// What Jira takes. What is over is refused with a 400.
const (
	// maxSummary is of a ticket's title, which has no line breaks:
	// https://support.atlassian.com/jira/kb/how-to-increase-the-character-limit-of-the-summary-field-in-jira/
	maxSummary = 255
	// maxBody is of a description and of a comment, in characters. A document (ADF) is held
	// to it as it is sent, markup included, for Jira does not say how it counts one:
	// https://confluence.atlassian.com/adminjiraserver/configuring-advanced-settings-938847835.html
	maxBody = 32767
	// maxLabel is of a label, which has no spaces:
	// https://support.atlassian.com/jira-software-cloud/docs/add-labels-to-an-issue/
	maxLabel = 255
	// maxGlobalID is of a remote link's id:
	// https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issue-remote-links/
	maxGlobalID = 255
)

const (
	// settles is how long a ticket that may have been made is looked for before another is
	// made: Jira's search runs behind its writes, by seconds as a rule:
	// https://developer.atlassian.com/cloud/jira/platform/search-and-reconcile/
	settles = time.Minute
	// mostLines have a comment of their own. Jira takes about 5,000 of a ticket:
	// https://developer.atlassian.com/cloud/jira/platform/rest/v3/api-group-issues/#api-rest-api-3-issue-limit-report-get
	mostLines = 200
	// page is of a list that Jira answers in pages; it may give fewer.
	page = 50
	// pages of a list are read at most: a ticket with more comments has others' above all.
	pages = 20
	// maxAnswer is read of an answer, in bytes.
	maxAnswer = 4 << 20
	// maxSays is shown of what Jira says of an error.
	maxSays = 500
)
