package console

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/charmbracelet/x/term"
)

// Agreed wants a yes from a person who has not given it before.
func Agreed(before bool, text string, std Stdio) error {
	if before {
		return nil
	}
	if !IsTerminal(std.In) {
		return Exit(ExitRefused, errors.New("nobody is there to be asked: give --yes"))
	}
	answer, err := Question(text, std)
	if err != nil || answer != "y" && answer != "yes" {
		return Exit(ExitRefused, errors.New("not approved; nothing was changed"))
	}
	return nil
}

// Question shows a text, and is the line that is answered, in lower case.
func Question(text string, std Stdio) (string, error) {
	fmt.Fprint(std.Err, text)
	line, err := std.answers.ReadString('\n')
	return strings.ToLower(strings.TrimSpace(line)), err
}

// IsTerminal says whether a person may be at the other end.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(f.Fd())
}
