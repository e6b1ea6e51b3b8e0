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
		storage(*storage) (content, error)
	}
	content struct {
		data   []byte
		offset int64  // in the file; −1 if the bytes were inflated
		member string // record of the archive
		big    bool   // elements are big-endian
	}
)

// flattener walks the object of a pickle and names its tensors by their paths. The object can be a
// graph: since containers may be shared, a small pickle can unfold to a huge tree, so the walk
// counts its steps.
type flattener struct {
	file  *tensor.File
	src   source
	path  []string
	odd   int // how many keys on the path are neither string nor integer
	seen  map[string]bool
	bytes int // of names
	steps int // left to go
}

// flatten adds all tensors below root to the file. values is the number of values that the pickle
// made.
func flatten(f *tensor.File, root any, values int, src source) error {
	w := &flattener{file: f, src: src, seen: map[string]bool{}, steps: min(maxShared*values, maxValues)}
	if err := w.walk(root); err != nil {
		return err
	}
	if len(f.Tensors) == 0 {
		return format.Errorf(tensor.ErrUnsupported, -1, "", "the file holds no tensor, but %s", describe(root))
	}
	return nil
}

func (w *flattener) walk(v any) error {
	if w.steps--; w.steps < 0 {
		return w.errorf(tensor.ErrUnsupported,
			"shared containers unfold to a tree that is too large: save each tensor once")
	}
	switch v := v.(type) {
	case *dense:
		return w.add(v)
	case *storage:
		return w.errorf(tensor.ErrUnsupported, "this is a storage without shape: save the tensor")
	case tuple:
		for i, e := range v {
			if err := w.into(strconv.Itoa(i), e); err != nil {
				return err
			}
		}
	case *list:
		return w.enter(&v.open, func() error {
			if v.set {
				w.odd++
				defer func() { w.odd-- }()
			}
			for i, e := range v.items {
				if err := w.into(strconv.Itoa(i), e); err != nil {
					return err
				}
			}
			return nil
		})
	case *dict:
		return w.enter(&v.open, func() error {
			for i := 0; i < len(v.items); i += 2 {
				if err := w.item(v.items[i], v.items[i+1]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return nil
}

// enter marks a container while the walk is inside it.
func (w *flattener) enter(open *bool, walk func() error) error {
	if *open {
		return w.errorf(tensor.ErrUnsupported, "a container contains itself: save the tensors without it")
	}
	*open = true
	defer func() { *open = false }()
	return walk()
}

func (w *flattener) item(key, value any) error {
	switch k := key.(type) {
	case string:
		return w.into(k, value)
	case int64:
		return w.into(strconv.FormatInt(k, 10), value)
	}
	w.odd++
	defer func() { w.odd-- }()
	return w.into(describe(key), value)
}

func (w *flattener) into(key string, value any) error {
	switch value.(type) {
	case tuple, *list, *dict:
		if len(w.path) >= maxDepth {
			return w.errorf(tensor.ErrUnsupported, "containers are nested deeper than %d", maxDepth)
		}
	case *dense, *storage:
	default:
		w.steps--
		return nil
	}
	w.path = append(w.path, key)
	err := w.walk(value)
	w.path = w.path[:len(w.path)-1]
	return err
}

func (w *flattener) add(d *dense) error {
	for _, p := range w.path {
		w.bytes += len(p) + 1
	}
	if w.bytes > maxNames || len(w.file.Tensors) >= maxTensors {
		return format.Errorf(tensor.ErrUnsupported, -1, "", "the file has more than %d tensors or %d bytes of names",
			maxTensors, maxNames)
	}
	name := strings.Join(w.path, ".")
	switch {
	case w.odd > 0:
		return w.errorf(tensor.ErrUnsupported,
			"the tensor is in a set, or has a key that is neither string nor integer: it has no name")
	case w.seen[name]:
		return w.errorf(tensor.ErrCorrupt, "two tensors have this name")
	case d.dtype.DType == tensor.Invalid:
		return w.errorf(tensor.ErrUnsupported, "the tensor is %s, which cannot be compared: %s",
			d.dtype.name, instead(d.dtype.name))
	case d.storage.dtype.DType == tensor.Invalid:
		return w.errorf(tensor.ErrCorrupt, "the tensor is %s, its storage %s", d.dtype.name, d.storage.dtype.name)
	}
	w.seen[name] = true
	t, err := w.tensor(d)
	if err != nil {
		return err
	}
	w.file.Tensors = append(w.file.Tensors, tensor.Named{Name: name, Tensor: t})
	return nil
}

// instead says what to save in place of a tensor whose elements cannot be read.
func instead(name string) string {
	switch {
	case strings.HasPrefix(name, "complex"):
		return "save torch.view_as_real(x)"
	case strings.HasPrefix(name, "q"):
		return "save x.dequantize()"
	}
	return "save x.view(torch.uint8) or x.float()"
}

func (w *flattener) tensor(d *dense) (*tensor.Tensor, error) {
	c, err := w.src.storage(d.storage)
	if err != nil {
		return nil, err
	}
	if v := d.storage.view; v != nil {
		size := d.storage.dtype.Size()
		c.data = c.data[v.from*size : (v.from+v.numel)*size]
		if c.offset >= 0 {
			c.offset += int64(v.from * size)
		}
	}
	t, err := tensor.FromSpec(tensor.Spec{DType: d.dtype.DType, Shape: d.shape, Strides: d.strides, Data: c.data,
		Offset:    d.offset,
		BigEndian: c.big, Place: tensor.Place{File: w.file.Path, Offset: c.offset}})
	if err != nil {
		if c.member != "" {
			return nil, w.errorAt(tensor.ErrCorrupt, c.offset, "record %q: %v", c.member, err)
		}
		return nil, w.errorAt(tensor.ErrCorrupt, c.offset, "%v", err)
	}
	if n := int64(t.Len()); n > int64(len(c.data)) && n > maxExpanded/int64(t.DType().Size()) {
		return nil, w.errorAt(tensor.ErrUnsupported, c.offset,
			"shape %s with strides %v expands %d bytes to more than %d",
			tensor.FormatShape(d.shape), d.strides, len(c.data), int64(maxExpanded))
	}
	return t, nil
}

// errorf returns an error at the place that the walk has reached.
func (w *flattener) errorf(class error, msg string, args ...any) error {
	return w.errorAt(class, -1, msg, args...)
}

func (w *flattener) errorAt(class error, offset int64, msg string, args ...any) error {
	name := strings.Join(w.path[:min(len(w.path), 20)], ".")
	return format.Errorf(class, offset, name[:min(len(name), 200)], msg, args...)
}
