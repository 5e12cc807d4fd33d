package knowledge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxFileBytes is the largest file read: a runbook has some kilobytes, and a
// bigger file is something else.
const maxFileBytes = 1 << 20

// OpenFolder indexes the Markdown files (*.md, *.markdown) below dir; hidden
// files and folders are passed over. A file that cannot be used is left out and
// named by Skipped, so that one bad runbook does not take the others away. The
// error says that the folder cannot be read, or that nothing in it can be used.
func OpenFolder(ctx context.Context, dir string) (*Index, error) {
	// A root keeps symbolic links from leading out of the folder.
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open knowledge folder: %w", err)
	}
	var skipped []string
	docs, err := readFolder(ctx, root.FS(), func(name, why string) { skipped = append(skipped, name+": "+why) })
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("read knowledge folder %s: %w", dir, err)
	}
	i, err := New(ctx, docs)
	if err != nil {
		return nil, err
	}
	i.skipped = append(skipped, i.skipped...)
	if i.Len() == 0 {
		why := "it holds no *.md file"
		if len(i.skipped) > 0 {
			why = strings.Join(i.skipped, "; ")
		}
		return nil, errors.Join(fmt.Errorf("knowledge folder %s has no document: %s", dir, why), i.Close())
	}
	return i, nil
}

func readFolder(ctx context.Context, files fs.FS, leaveOut func(name, why string)) (docs []Document, err error) {
	skip := func(name string, why error) { leaveOut(name, why.Error()) }
	err = fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if name != "." && strings.HasPrefix(path.Base(name), ".") {
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err != nil {
			if name == "." {
				return err
			}
			skip(name, reason(err))
			return nil
		}
		if ext := strings.ToLower(path.Ext(name)); e.IsDir() || ext != ".md" && ext != ".markdown" {
			return nil
		}
		found, err := readFile(files, name)
		if err != nil {
			skip(name, reason(err))
			return nil
		}
		docs = append(docs, found...)
		return nil
	})
	return docs, err
}

func readFile(files fs.FS, name string) ([]Document, error) {
	// Stat follows links: a mounted ConfigMap is made of them. Opening a pipe
	// would wait for its writer for ever.
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	switch {
	case len(content) > maxFileBytes:
		return nil, fmt.Errorf("it is larger than %d KiB", maxFileBytes>>10)
	case !utf8.Valid(content):
		return nil, errors.New("it is not valid UTF-8")
	}
	docs, err := parse(name, content)
	if err == nil && len(docs) == 0 {
		err = errors.New("it is empty")
	}
	return docs, err
}

// reason drops the file's name from err: it is said already.
func reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Folder is a folder of Markdown as a Source.
type Folder struct{ Dir string }

// Read implements Source.
func (f Folder) Read(ctx context.Context, to *Intake) ([]Whole, error) {
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return nil, fmt.Errorf("find knowledge folder: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open knowledge folder: %w", err)
	}
	skipped := false
	docs, err := readFolder(ctx, root.FS(), func(name, why string) { skipped = true; to.Skip(name, why) })
	if err = errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("read knowledge folder %s: %w", dir, err)
	}
	if len(docs) == 0 && !skipped {
		return nil, fmt.Errorf("knowledge folder %s has no document: it holds no *.md file", dir)
	}
	for _, d := range docs {
		d.ID, d.Part, d.PartName = "doc/"+filepath.Join(dir, d.ID), dir, filepath.Base(dir)
		if err := to.Add(ctx, d); err != nil {
			return nil, err
		}
	}
	var whole []Whole
	for _, s := range sources { // a file says of itself which it is
		whole = append(whole, Whole{Source: s, Part: dir})
	}
	return whole, nil
}
