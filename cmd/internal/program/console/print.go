package console

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/cmd/internal/terminal"
)

// PrintList writes a versioned list for machines.
func PrintList(w io.Writer, format string, list any) error {
	data, err := json.MarshalIndent(list, "", "  ")
	if err == nil && format == "yaml" {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	_, err = fmt.Fprintln(w, string(data))
	return err
}

// ListOf is a list as `-o json` prints it.
type ListOf[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []T    `json:"items"`
}

// TerminalOptions say how there is drawn for people, also where a look of [Again] is caught.
func TerminalOptions(w io.Writer) terminal.Options {
	if s, ok := w.(*screenful); ok {
		return TerminalOptions(s.of)
	}
	if f, ok := w.(*os.File); ok {
		return terminal.Detect(f, os.Getenv)
	}
	return terminal.Sized(80)
}

// Plural is a number of things, of which several are called otherwise.
func Plural(n int, one, several string) string {
	if n != 1 {
		one = several
	}
	return fmt.Sprintf("%d %s", n, one)
}

// Lasting writes a duration without parts that are 0: 1h, 10m, 90s.
func Lasting(d time.Duration) string {
	text := d.String()
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, end) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// plainWord are the characters that a shell leaves alone.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@%+=,"

// Quoted is a word as a shell reads it.
func Quoted(word string) string {
	if word != "" && strings.Trim(word, plainWord) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
