package slack

import "time"

// What Slack takes. slack-go checks hardly any of it; what is over is refused, or cut
// without a word.
const (
	maxBlocks = 50   // of a message: https://docs.slack.dev/reference/block-kit/blocks
	maxText   = 3000 // of a section: https://docs.slack.dev/reference/block-kit/blocks/section-block
	maxHeader = 150  // https://docs.slack.dev/reference/block-kit/blocks/header-block
	// maxMessage is of the JSON of all blocks. Slack refuses about 13,200 characters of text
	// (msg_blocks_too_long), and documents neither the figure nor how it counts:
	// https://github.com/slackapi/bolt-js/issues/2509
	maxMessage      = 13000
	maxFallback     = 4000 // of text, where it is cut: https://docs.slack.dev/reference/methods/chat.postMessage
	maxButton       = 75   // https://docs.slack.dev/reference/block-kit/block-elements/button-element
	maxValue        = 2000
	maxID           = 255 // of an action or a block
	maxConfirmTitle = 100 // https://docs.slack.dev/reference/block-kit/composition-objects/confirmation-dialog-object
	maxConfirmText  = 300
	maxConfirmLabel = 30
)

const (
	// pace is the least time between two writes to a channel:
	// https://docs.slack.dev/apis/web-api/rate-limits
	pace = time.Second
	// page is how many messages of a history are read at once, of at most 999:
	// https://docs.slack.dev/reference/methods/conversations.history
	page = 200
	// pages of a history are read in search of a message of ours; a channel in which more
	// was said since then has lost sight of it too.
	pages = 20
	// answers is how long Slack has for one answer.
	answers = 10 * time.Second
)
