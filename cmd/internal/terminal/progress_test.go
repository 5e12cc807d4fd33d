package terminal

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

// pace reads a mebibyte at a time, and each takes a while.
type pace struct {
	at   *time.Time
	each time.Duration
	left int
}

func (p *pace) Read(b []byte) (int, error) {
	if p.left == 0 {
		return 0, io.EOF
	}
	p.left--
	*p.at = p.at.Add(p.each)
	return min(len(b), 1<<20), nil
}

func TestProgress(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		each time.Duration
		of   int64
		want []string
	}{
		"quick": {400 * time.Millisecond, 4 << 20, nil},
		"slow": {time.Second, 4 << 20, []string{
			"verify a[2Jb   [###############               ]  50%  2 MiB  1.0 MiB/s  2s left",
			"verify a[2Jb   [######################        ]  75%  3 MiB  1.0 MiB/s  1s left",
			"verify a[2Jb   [##############################] 100%  4 MiB  1.0 MiB/s  0s left",
			"",
		}},
		"of unknown length": {2 * time.Second, 0, []string{
			"verify a[2Jb                                                              1 MiB",
			"verify a[2Jb                                                              2 MiB",
			"verify a[2Jb                                                              3 MiB",
			"verify a[2Jb                                                              4 MiB",
			"",
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			at := begin
			var b bytes.Buffer
			p := NewProgress(&b, &pace{&at, c.each, 4}, "verify a\x1b[2Jb", c.of, func() time.Time { return at })
			for buf := make([]byte, 1<<20); ; {
				if _, err := p.Read(buf); err != nil {
					break
				}
			}
			at = at.Add(time.Second)
			p.Close()
			got := strings.Split(b.String(), "\r\x1b[2K")[1:]
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}
