package main

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// file is one of an archive or of a layer of an image, and belongs to root there.
type file struct {
	name string // path, without a slash in front; one behind it makes a folder
	mode int64
	data []byte
	link string // what it leads to, where it is a symbolic link
}

// withFolders adds the folders that files lie in, and sorts: a folder comes before its files.
func withFolders(files []file) []file {
	known := map[string]bool{}
	for _, f := range files {
		known[f.name] = true
	}
	for _, f := range slices.Clone(files) {
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")); dir != "."; dir = path.Dir(dir) {
			if !known[dir+"/"] && !known[dir] {
				known[dir+"/"] = true
				files = append(files, file{name: dir + "/", mode: 0o755})
			}
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files
}

// writeTar writes files as they are, all of one time.
func writeTar(to io.Writer, made time.Time, files []file) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: made, Typeflag: tar.TypeReg}
		switch {
		case strings.HasSuffix(f.name, "/"):
			h.Typeflag = tar.TypeDir
		case f.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		}
		if err := w.WriteHeader(h); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
		if _, err := w.Write(f.data); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
	}
	return w.Close()
}

func writeTarGz(to io.Writer, made time.Time, files []file) error {
	w := gzip.NewWriter(to) // its header has no name and no time
	if err := writeTar(w, made, files); err != nil {
		return err
	}
	return w.Close()
}

// packTo writes an archive or a layer to a file.
func packTo(name string, made time.Time, files []file, pack func(io.Writer, time.Time, []file) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := pack(f, made, files); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
