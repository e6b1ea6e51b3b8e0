package torchpt

import (
	"strconv"
	"strings"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/format"
)

const (
	maxShared   = 16       // steps of the walk for each value of the pickle, on average
	maxTensors  = 1 << 20  // tensors of a file
	maxNames    = 64 << 20 // bytes of all names
	maxExpanded = 16 << 30 // bytes of the elements of a view that is larger than its storage
)

type (
	// source finds the bytes of storages: the archive or the flat file.
	source interface {
		storage(*storage) content
	}
	content struct {
		data   []byte
		offset int64  // in the file; −1 if the bytes were inflated
		member string // record of the archive
		big    bool   // elements are big-endian
	}
)

// flattener walks the object of a pickle and names its tensors by their paths. The object can be a
// graph: since containers may be shared, a small pickle can unfold to a huge tree, and one that contains
// itself has no end, so the walk counts its steps.
type flattener struct {
	file  *tensor.File
	src   source
	path  []byte // of the value that is walked: keys, each with a dot before it
	depth int    // how many keys
	seen  map[string]bool
	bytes int // of names
	steps int // left to go
}

// flatten adds all tensors below root to the file. values is the number of values that the pickle
// made.
func flatten(f *tensor.File, root any, values int, src source) {
	w := &flattener{file: f, src: src, seen: map[string]bool{}, steps: min(maxShared*values, maxValues)}
	w.walk(root, true)
	format.Want(len(f.Tensors) > 0, tensor.ErrUnsupported, -1, "",
		"the file holds no tensor, but %s", describe(root))
}

// walk adds the tensors in a value; it is not named in a set, or below a key that is neither string nor integer. Values
// without tensors cost nothing but a step.
func (w *flattener) walk(v any, named bool) {
	if w.steps--; w.steps < 0 {
		w.fail(tensor.ErrUnsupported, -1, "containers that are shared, or a container that contains itself, unfold to a tree that is too large: save each tensor once")
	}
	switch v := v.(type) {
	case *dense:
		w.add(v, named)
	case *storage:
		w.fail(tensor.ErrUnsupported, -1, "this is a storage without shape: save the tensor")
	case tuple:
		w.items(v, named)
	case *list:
		w.items(v.items, named && !v.set)
	case *dict:
		for i := 0; i < len(v.items); i += 2 {
			key, isText := v.items[i].(string)
			if !isText {
				_, isText = v.items[i].(int64)
				key = describe(v.items[i]).String()
			}
			w.into(key, v.items[i+1], named && isText)
		}
	}
}

func (w *flattener) items(items []any, named bool) {
	for i, e := range items {
		w.into(strconv.Itoa(i), e, named)
	}
}

// into walks a value that has a key.
func (w *flattener) into(key string, value any, named bool) {
	if w.depth > maxDepth {
		w.fail(tensor.ErrUnsupported, -1, "containers are nested deeper than %d", maxDepth)
	}
	above := w.path
	w.path, w.depth = append(append(above, '.'), key...), w.depth+1
	w.walk(value, named)
	w.path, w.depth = above, w.depth-1
}

func (w *flattener) add(d *dense, named bool) {
	w.bytes += len(w.path)
	format.Want(w.bytes <= maxNames && len(w.file.Tensors) < maxTensors, tensor.ErrUnsupported, -1, "",
		"the file has more than %d tensors or %d bytes of names", maxTensors, maxNames)
	name := w.name()
	switch {
	case !named:
		w.fail(tensor.ErrUnsupported, -1, "the tensor is in a set, or has a key that is neither string nor integer: it has no name")
	case w.seen[name]:
		w.fail(tensor.ErrCorrupt, -1, "two tensors have this name")
	}
	w.seen[name] = true
	w.file.Tensors = append(w.file.Tensors, tensor.Named{Name: name, Tensor: w.tensor(d)})
}

func (w *flattener) tensor(d *dense) *tensor.Tensor {
	c := w.src.storage(d.storage)
	t, err := tensor.FromSpec(tensor.Spec{DType: d.dtype, Shape: d.shape, Strides: d.strides, Data: c.data,
		Offset: d.offset, BigEndian: c.big, Place: tensor.Place{File: w.file.Path, Offset: c.offset}})
	switch {
	case err != nil && c.member != "":
		w.fail(tensor.ErrCorrupt, c.offset, "record %q: %v", c.member, err)
	case err != nil:
		w.fail(tensor.ErrCorrupt, c.offset, "%v", err)
	}
	if n := int64(t.Len()); n > int64(len(c.data)) && n > maxExpanded/int64(t.DType().Size()) {
		w.fail(tensor.ErrUnsupported, c.offset, "shape %s with strides %v expands %d bytes to more than %d",
			tensor.FormatShape(d.shape), d.strides, len(c.data), int64(maxExpanded))
	}
	return t
}

func (w *flattener) name() string { return string(w.path[min(1, len(w.path)):]) }

// fail is an error of what the walk has reached.
func (w *flattener) fail(class error, offset int64, msg string, args ...any) {
	keys := strings.SplitN(w.name(), ".", 21)
	name := strings.Join(keys[:min(len(keys), 20)], ".")
	format.Fail(class, offset, name[:min(len(name), 200)], msg, args...)
}
