package knowledge

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
)

// vectorsMark begins the file of vectors; another version begins otherwise.
const vectorsMark = "unpend vectors 1\n"

// vectors are what documents mean to one model: a vector each, scaled so that its largest
// number is 127. A byte a number is a quarter of the room, and all that a ranking needs.
type vectors struct {
	head  vectorsHead
	at    map[string]int // by document
	ids   []string
	marks []uint64 // of the text that each was made from
	norms []float32
	data  []int8 // Dimensions a document
}

type vectorsHead struct {
	Model      string `json:"model"`
	Dimensions int    `json:"dimensions"`
	Documents  int    `json:"documents"`
}

// agree settles the length of all vectors where none is kept yet: that of most of these, so that
// one odd answer of a model does not keep the others out.
func (v *vectors) agree(made [][]float32) {
	if v.head.Dimensions > 0 {
		return
	}
	count := map[int]int{}
	for _, m := range made {
		if count[len(m)]++; count[len(m)] > count[v.head.Dimensions] {
			v.head.Dimensions = len(m)
		}
	}
}

// set takes the vector of a document; false when it is of another length than was agreed on.
func (v *vectors) set(id string, mark uint64, vector []float32) bool {
	if len(vector) != v.head.Dimensions {
		return false
	}
	v.put(id, mark, quantised(vector))
	return true
}

func (v *vectors) put(id string, mark uint64, q []int8) {
	n, known := v.at[id]
	if !known {
		n = len(v.ids)
		v.at[id], v.ids, v.marks, v.norms = n, append(v.ids, id), append(v.marks, 0), append(v.norms, 0)
		v.data = append(v.data, q...)
	}
	copy(v.of(n), q)
	v.marks[n], v.norms[n] = mark, norm(q)
}

func (v *vectors) of(n int) []int8 { return v.data[n*v.head.Dimensions : (n+1)*v.head.Dimensions] }

// keep drops all but the documents that have is true of, and says how many went.
func (v *vectors) keep(have func(id string) bool) int {
	kept := newVectors(v.head.Model)
	kept.head.Dimensions = v.head.Dimensions
	for n, id := range v.ids {
		if have(id) {
			kept.put(id, v.marks[n], v.of(n))
		}
	}
	gone := len(v.ids) - len(kept.ids)
	if gone > 0 {
		*v = *kept
	}
	return gone
}

func newVectors(model string) *vectors {
	return &vectors{head: vectorsHead{Model: model}, at: map[string]int{}}
}

// likeness is the cosine of another vector and that of a document.
func (v *vectors) likeness(with []float32) func(n int) float32 {
	q := quantised(with)
	length := norm(q)
	return func(n int) float32 { return float32(dot(v.of(n), q)) / (v.norms[n] * length) }
}

func quantised(vector []float32) []int8 {
	most := float32(0)
	for _, x := range vector {
		most = max(most, float32(math.Abs(float64(x))))
	}
	out := make([]int8, len(vector))
	for n, x := range vector {
		out[n] = int8(math.Round(float64(x / most * 127)))
	}
	return out
}

func norm(q []int8) float32 { return float32(math.Sqrt(float64(dot(q, q)))) }

func dot(a, b []int8) int32 {
	b = b[:len(a)]
	var s, t int32
	n := 0
	for ; n+1 < len(a); n += 2 {
		s += int32(a[n]) * int32(b[n])
		t += int32(a[n+1]) * int32(b[n+1])
	}
	if n < len(a) {
		s += int32(a[n]) * int32(b[n])
	}
	return s + t
}

// readVectors are those of a file; none where there is no file, or one of another model or
// version, or half of one: they are made again. An empty model is any.
func readVectors(file, model string) (*vectors, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return newVectors(model), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	defer f.Close()
	v, err := decodeVectors(bufio.NewReaderSize(f, 1<<20))
	if err != nil || model != "" && v.head.Model != model {
		return newVectors(model), nil //nolint:nilerr // what cannot be read is made again
	}
	return v, nil
}

func decodeVectors(r *bufio.Reader) (*vectors, error) {
	mark := make([]byte, len(vectorsMark))
	if _, err := io.ReadFull(r, mark); err != nil || string(mark) != vectorsMark {
		return nil, errors.New("it is no file of vectors")
	}
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	v := newVectors("")
	if err := json.NewDecoder(strings.NewReader(line)).Decode(&v.head); err != nil {
		return nil, err
	}
	const most = 1 << 16
	if v.head.Dimensions < 0 || v.head.Dimensions > most {
		return nil, errors.New("its vectors are too long")
	}
	for range v.head.Documents {
		size, err := binary.ReadUvarint(r)
		if err != nil || size > most {
			return nil, errors.New("it ends early")
		}
		row := make([]byte, int(size)+8+v.head.Dimensions)
		if _, err := io.ReadFull(r, row); err != nil {
			return nil, err
		}
		q := make([]int8, v.head.Dimensions)
		for n, b := range row[size+8:] {
			q[n] = int8(b)
		}
		v.put(string(row[:size]), binary.LittleEndian.Uint64(row[size:]), q)
	}
	return v, nil
}

// write puts them beside and moves them into place: who is killed leaves those before.
func (v *vectors) write(file string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), "new-vectors-")
	if err != nil {
		return fmt.Errorf("write vectors: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write vectors: %w", err), os.Remove(f.Name()))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	v.head.Documents = len(v.ids)
	head, err := json.Marshal(v.head)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	row := append([]byte(vectorsMark), append(head, '\n')...)
	for n := -1; ; {
		if _, err = w.Write(row); err != nil {
			return errors.Join(err, f.Close())
		}
		if n++; n == len(v.ids) {
			break
		}
		row = append(binary.AppendUvarint(row[:0], uint64(len(v.ids[n]))), v.ids[n]...)
		row = binary.LittleEndian.AppendUint64(row, v.marks[n])
		for _, x := range v.of(n) {
			row = append(row, byte(x))
		}
	}
	if err = errors.Join(w.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}
