package dump

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/unpend/unpend/rca/cluster"
	"github.com/unpend/unpend/rca/cluster/shelf"
)

// Read reads dumps: YAML or JSON streams, files or folders (their .yaml,
// .yml and .json files, sub-folders too), "-" for stdin. Of unknown kinds
// the metadata is read: they may own what makes pods. A malformed document is an error that
// names file, document and line.
func Read(paths []string, stdin io.Reader) (*cluster.State, error) {
	r := newFileReader()
	s := r.state
	for _, p := range paths {
		if err := r.read(p, stdin); err != nil {
			return nil, err
		}
	}
	if r.twice != nil {
		return nil, r.twice
	}
	s.Finish()
	tellByName(s.Pods)
	shareProfiles(s)
	if s.Now, s.Taken = r.taken, !r.taken.IsZero(); !s.Taken {
		s.Now = newest(s)
	}
	for _, k := range cluster.Kinds() {
		if !r.held[k.Name] {
			s.Unread[k.Name] = "the dump holds none"
		}
	}
	s.DeriveGeometries()
	return s, nil
}

type fileReader struct {
	state *cluster.State
	held  map[string]bool      // kinds met, empty lists included
	uids  map[string]types.UID // of nodes and of kube-system, which are of one cluster
	twice error                // the first object that is two clusters'
	taken time.Time            // the newest that a list says of itself
	shelf *shelf.Shelf
	// inFolder: the file was found, not named.
	inFolder bool
}

func newFileReader() *fileReader {
	return &fileReader{state: &cluster.State{Unread: map[string]string{}}, held: map[string]bool{}, uids: map[string]types.UID{}, shelf: shelf.New()}
}

func (r *fileReader) read(path string, stdin io.Reader) error {
	if path == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
		return r.stream("stdin", data)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read dump: %w", err)
	}
	if !info.IsDir() {
		return r.file(path)
	}
	r.inFolder = true
	defer func() { r.inFolder = false }()
	return filepath.WalkDir(path+string(filepath.Separator), // so that it enters a link, too
		func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("read dump: %w", err)
			}
			if d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(p)) {
				return nil
			}
			return r.file(p)
		})
}

func (r *fileReader) file(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read dump: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if r.list(f) {
		return nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read dump: %w", err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("read dump: %w", err)
	}
	return r.stream(path, data)
}

// stream reads documents one after the other.
func (r *fileReader) stream(name string, data []byte) error {
	at := position{file: name, line: 1}
	for _, doc := range splitYAML(data) {
		body := doc
		if marks(doc, "---") {
			body = doc[len("---"):]
		}
		switch {
		case hasContent(body):
			if err := r.documents(&at, body); err != nil {
				return err
			}
		case len(body) < len(doc):
			at.document++ // people count the marks
		}
		at.line += bytes.Count(doc, []byte("\n"))
	}
	return nil
}

// beginsJSON tells JSON from YAML that begins with a brace too.
var beginsJSON = regexp.MustCompile(`\A\s*\{\s*["}]`)

// documents reads what stands between two marks: one YAML document, or any
// number of JSON ones, whose decoder is much faster.
func (r *fileReader) documents(at *position, body []byte) error {
	if beginsJSON.Match(body) || filepath.Ext(at.file) == ".json" {
		return r.json(at, body)
	}
	at.document++
	converted, err := yaml.YAMLToJSON(body)
	if err == nil {
		err = r.object(converted)
	}
	if err != nil {
		return at.fail(err)
	}
	return nil
}

func (r *fileReader) json(last *position, body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	for {
		start := len(body) - len(bytes.TrimLeft(body[dec.InputOffset():], " \t\r\n"))
		at := position{last.file, last.document + 1, last.line + newlines(body, start)}
		var h head
		err := dec.Decode(&h)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			at.line = last.line + newlines(body, int(syntax.Offset)-1) // counted from the stream's first byte
		}
		if err == nil {
			err = r.take(h, body[start:dec.InputOffset()])
		}
		if err != nil {
			return at.fail(err)
		}
		last.document++
	}
}

// head is what tells what a document is.
type head struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
	Metadata   struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// takenAt is the annotation of a list that says when it was taken, in RFC 3339.
const takenAt = "unpend.dev/taken"

// object takes one document in: an object, or a list of them.
func (r *fileReader) object(data []byte) error {
	var h head
	if err := json.Unmarshal(data, &h); err != nil {
		return err
	}
	return r.take(h, data)
}

func (r *fileReader) take(h head, data []byte) error {
	if string(bytes.TrimSpace(data)) == "null" || r.inFolder && h.Kind == "" && h.APIVersion == "" {
		return nil // a folder may hold other YAML beside dumps
	}
	if h.Kind == "" || h.APIVersion == "" {
		return errors.New("apiVersion or kind is missing")
	}
	if isRemediation(h.APIVersion, h.Kind) {
		r.remediation(data)
		return nil
	}
	if base, isList := r.listed(h); isList {
		if err := r.noteTaken(h); err != nil {
			return err
		}
		return r.items(h.APIVersion, base, h.Items)
	}
	k, obj, err := one(r.shelf, h.APIVersion, h.Kind, data)
	if err != nil {
		return err
	}
	r.add(h.APIVersion, k, obj)
	return nil
}

// listed says whether a document is a list, and of what, and notes that there is one.
func (r *fileReader) listed(h head) (base string, isList bool) {
	base, isList = strings.CutSuffix(h.Kind, "List")
	if !isList || cluster.KindOf(h.APIVersion, h.Kind) != nil {
		return "", false
	}
	if k := cluster.KindOf(h.APIVersion, base); k != nil {
		r.held[k.Name] = true
		if !k.Readable(h.APIVersion) {
			r.add(h.APIVersion, k, nil)
		}
	} else if base != "" {
		r.otherKind(h.APIVersion, base)
	}
	if isRemediation(h.APIVersion, base) && r.state.Remediations == nil {
		r.state.Remediations = []json.RawMessage{}
	}
	return base, true
}

// noteTaken reads when a list was taken, if it says so.
func (r *fileReader) noteTaken(h head) error {
	said := h.Metadata.Annotations[takenAt]
	if said == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339, said)
	if err != nil {
		return fmt.Errorf("annotation %s of the list: %q is no time such as 2026-01-02T03:04:05Z", takenAt, said)
	}
	if at.After(r.taken) {
		r.taken = at
	}
	return nil
}

// items of a typed list need not repeat their kind. Every core decodes its share:
// a dump of 10,000 pods is one list.
func (r *fileReader) items(apiVersion, base string, items []json.RawMessage) error {
	got := make([]decoded, len(items))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(items); i += workers {
				got[i] = decodeItem(r.shelf, apiVersion, base, items[i])
			}
		})
	}
	wg.Wait()
	for i, d := range got {
		if d.err == nil && d.list {
			d.err = r.object(items[i])
		}
		if d.err != nil {
			return fmt.Errorf("item %d: %w", i, d.err)
		}
		r.keep(d)
	}
	return nil
}

// decoded is an item of a list.
type decoded struct {
	list     bool
	as, name string
	kind     *cluster.Kind
	obj      cluster.Object
	raw      json.RawMessage // of a Remediation alone
	err      error
}

// decodeItem reads an item of a list of a kind, which it need not repeat.
func decodeItem(s *shelf.Shelf, apiVersion, base string, item []byte) (d decoded) {
	version, name, err := kindAt(item)
	if name == "" {
		version, name = apiVersion, base
	}
	if d.list = strings.HasSuffix(name, "List"); err != nil || d.list {
		d.err = err
		return d
	}
	d.as, d.name = version, name
	if isRemediation(version, name) {
		d.raw = bytes.Clone(item)
	}
	d.kind, d.obj, d.err = one(s, version, name, item)
	return d
}

// keep takes an item in.
func (r *fileReader) keep(d decoded) {
	if d.raw != nil {
		r.remediation(d.raw)
	}
	r.add(d.as, d.kind, d.obj)
}

// isRemediation tells a kind of ours that is no part of a diagnosis: it is kept as it is
// for those who know it.
func isRemediation(apiVersion, name string) bool {
	return name == "Remediation" && strings.HasPrefix(apiVersion, "unpend.dev/")
}

func (r *fileReader) remediation(data []byte) {
	r.state.Remediations = append(r.state.Remediations, bytes.Clone(data))
}

// usualHead is how kubectl begins an object, and rawHead how the API server does.
var (
	usualHead = regexp.MustCompile(`\A\s*\{\s*"apiVersion"\s*:\s*"([^"\\]+)"\s*,\s*"kind"\s*:\s*"([^"\\]+)"\s*[,}]`)
	rawHead   = regexp.MustCompile(`\A\s*\{\s*"kind"\s*:\s*"([^"\\]+)"\s*,\s*"apiVersion"\s*:\s*"([^"\\]+)"\s*[,}]`)
)

// kindAt says what an item of a list is, without decoding all of it where it
// begins as usual.
func kindAt(item []byte) (apiVersion, name string, err error) {
	if m := usualHead.FindSubmatch(item); m != nil {
		return string(m[1]), string(m[2]), nil
	}
	if m := rawHead.FindSubmatch(item); m != nil {
		return string(m[2]), string(m[1]), nil
	}
	var h struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	err = json.Unmarshal(item, &h)
	return h.APIVersion, h.Kind, err
}

// one decodes an object; nil without an error for a version of its kind that is not known. Of
// a kind that nobody reads it is the metadata, without a kind.
func one(s *shelf.Shelf, apiVersion, name string, data []byte) (*cluster.Kind, cluster.Object, error) {
	k := cluster.KindOf(apiVersion, name)
	if k == nil {
		return nil, readOther(apiVersion, name, data), nil
	}
	if !k.Readable(apiVersion) {
		return k, nil, nil
	}
	obj, err := s.Read(k, apiVersion, data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	if obj.GetName() == "" {
		return nil, nil, fmt.Errorf("%s: metadata.name is missing", name)
	}
	if err := countable(obj); err != nil {
		return nil, nil, fmt.Errorf("%s %s: %w", name, obj.GetName(), err)
	}
	return k, obj, nil
}

func (r *fileReader) add(apiVersion string, k *cluster.Kind, obj cluster.Object) {
	if k == nil {
		r.other(obj)
		return
	}
	r.held[k.Name] = true
	if obj == nil {
		r.state.Unread[k.Name] = apiVersion + " is not a version that can be read"
		return
	}
	if k.OfDevices() {
		r.state.DeviceVersion = path.Base(apiVersion)
	}
	if uid := obj.GetUID(); uid != "" && r.twice == nil {
		r.twice = r.sameCluster(k, obj, uid)
	}
	k.Add(r.state, obj)
}

// sameCluster refuses a node, or kube-system, that is there as two objects: nothing that is
// made of two clusters is true of either.
func (r *fileReader) sameCluster(k *cluster.Kind, obj cluster.Object, uid types.UID) error {
	key := k.Name + " " + obj.GetName()
	if k.Name != "Node" && key != "Namespace "+metav1.NamespaceSystem {
		return nil
	}
	if was := r.uids[key]; was != "" && was != uid {
		return fmt.Errorf("%s is there twice, with uid %s and with %s: these are dumps of two clusters, or of two times; read one of them", key, was, uid)
	}
	r.uids[key] = uid
	return nil
}

// tellByName takes uids that several pods have from all of them: no API server gives them so,
// a dump written by hand does, and a pod is told from another by its uid where it has one.
func tellByName(pods []*corev1.Pod) {
	of := make(map[types.UID]int, len(pods))
	for _, p := range pods {
		of[p.UID]++
	}
	for _, p := range pods {
		if of[p.UID] > 1 {
			p.UID = ""
		}
	}
}
