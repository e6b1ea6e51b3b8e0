package dump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

const edge = 3 // elements that are printed at each end of a summarised axis

// words cuts text into brackets, commas, equal signs and what stands between them.
type words struct {
	text string
	at   int
}

func (w *words) next() string {
	for w.at < len(w.text) && strings.IndexByte(" \n\t", w.text[w.at]) >= 0 {
		w.at++
	}
	from := w.at
	for w.at < len(w.text) && strings.IndexByte("()[],= \n\t", w.text[w.at]) < 0 {
		w.at++
	}
	if w.at == from && w.at < len(w.text) {
		w.at++
	}
	return w.text[from:w.at]
}

// parseBrackets reads "([[1.0, 2.0], …], dtype=f32, shape=[1,2])": what MAX prints in style COMPACT,
// and what torch prints.
func parseBrackets(text string) (record, error) {
	end, err := endOfList(text)
	if err != nil {
		return record{}, err
	}
	a, err := parseAttributes(&words{text: text, at: end})
	if err != nil {
		return record{}, err
	}
	r := record{style: styleTorch, Shape: a.shape, DType: tensor.I64}
	if a.dtype != "" || a.isMAX {
		if r.DType, err = parseDType(a.dtype); err != nil {
			return record{}, err
		}
	}
	l := lists{words: words{text: text[:end], at: 1}, shape: a.shape, leaf: -1}
	if a.isMAX {
		n, err := tensor.NumElems(a.shape)
		if err != nil {
			return record{}, err
		}
		r.style = styleCompact
		if l.sizes = nested(a.shape); n == 0 {
			l.sizes = nil // nothing is known of the brackets
		}
	}
	if err := l.read(); err != nil {
		return record{}, err
	}
	return l.record(r, a.dtype != "")
}

// endOfList returns where the brackets close that stand first, or the number ends that does.
func endOfList(text string) (int, error) {
	depth := 0
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case depth == 0 && (c == ',' || c == ')'):
			return i, nil
		}
		if depth < 0 || depth > tensor.MaxRank {
			return 0, fmt.Errorf("brackets do not match")
		}
	}
	return 0, classError{tensor.ErrTruncated, "the log ends within the tensor"}
}

type attributes struct {
	dtype string
	shape []int // nil if it is not printed
	isMAX bool  // the word for the shape is MAX's, not torch's
}

// parseAttributes reads ", dtype=f32, shape=[2,3])".
func parseAttributes(w *words) (a attributes, err error) {
	for {
		word := w.next()
		if word == ")" {
			break
		}
		key, eq := w.next(), w.next()
		if word != "," || eq != "=" {
			return a, fmt.Errorf("%q instead of %q or %q", word+key+eq, ", dtype=…", ")")
		}
		switch key {
		case "dtype":
			a.dtype = w.next()
		case "shape", "size":
			a.isMAX = key == "shape"
			a.shape, err = parseSizes(w)
		case "device", "grad_fn", "requires_grad":
			w.next()
		default:
			return a, fmt.Errorf("unknown attribute %.40q", key)
		}
		if err != nil {
			return a, err
		}
	}
	if rest := strings.TrimSpace(w.text[w.at:]); rest != "" {
		return a, fmt.Errorf("%.40q after the tensor", rest)
	}
	return a, nil
}

// parseSizes reads "[2,3]" or "(2, 3)".
func parseSizes(w *words) ([]int, error) {
	shape := []int{}
	if open := w.next(); open != "[" && open != "(" {
		return nil, fmt.Errorf("%.40q is not a shape", open)
	}
	for {
		switch word := w.next(); word {
		case "]", ")":
			return shape, nil
		case ",":
		default:
			d, err := parseSize(word)
			if err != nil {
				return nil, err
			}
			shape = append(shape, d)
		}
	}
}

// nested are the sizes of the lists that MAX prints for a shape: all axes but the last two count as one list of
// matrices, and a matrix has a list around each row.
func nested(shape []int) []int {
	padded := append(slices.Repeat([]int{1}, max(0, 2-len(shape))), shape...)
	at := len(padded) - 2
	matrices := 1
	for _, d := range padded[:at] {
		matrices *= d
	}
	sizes := slices.Repeat([]int{1}, at)
	if at > 0 {
		sizes[at-1] = matrices
	}
	return append(sizes, padded[at:]...)
}

// lists reads nested lists. All at one depth must have the same length.
type lists struct {
	words
	shape  []int // as it is printed
	sizes  []int // of MAX: of the lists by depth; nil if they are not known
	found  []int // the lengths of the lists that were closed, by depth; −1 while none was
	leaf   int   // the depth of the values, −1 before the first
	values values
	index  []int // of the values, if sizes are known
}

// read reads all lists, or the number of a tensor without axes.
func (l *lists) read() error {
	if word := l.next(); word != "[" {
		return l.value(word, 0, 0)
	}
	return l.list(0, 0)
}

func (l *lists) value(word string, depth, at int) error {
	if err := l.values.add(word); err != nil {
		return fmt.Errorf("element %d: %w", len(l.values.list), err)
	}
	if l.leaf < 0 {
		l.leaf = depth
	}
	if l.leaf != depth || l.sizes != nil && depth != len(l.sizes) {
		return l.mismatch()
	}
	if l.sizes != nil {
		l.index = append(l.index, at)
	}
	return nil
}

// list reads a list after its bracket. at is how many lists of its depth come before it, those that are not
// printed too.
func (l *lists) list(depth, at int) error {
	if depth == len(l.found) {
		if l.sizes != nil && depth >= len(l.sizes) || slices.ContainsFunc(l.found, func(n int) bool { return n >= 0 }) {
			return l.mismatch()
		}
		l.found = append(l.found, -1)
	}
	size := -1
	if l.sizes != nil {
		size = l.sizes[depth]
	}
	n := 0
	for {
		word, err := l.next(), error(nil)
		switch word {
		case "]":
			if l.found[depth] < 0 {
				l.found[depth] = n
			}
			if l.found[depth] != n || size >= 0 && n != size {
				return l.mismatch()
			}
			return nil
		case ",":
			continue
		case "...":
			if l.sizes == nil {
				return classError{tensor.ErrUnsupported,
					"torch printed a summary without the shape: torch.set_printoptions(threshold=float('inf')), or save files"}
			}
			if n != edge || size <= 2*edge {
				return l.mismatch()
			}
			n = size - edge
			continue
		case "[":
			err = l.list(depth+1, at*max(size, 0)+n)
		default:
			err = l.value(word, depth+1, at*max(size, 0)+n)
		}
		if err != nil {
			return err
		}
		n++
	}
}

func (l *lists) mismatch() error {
	if l.sizes == nil {
		return fmt.Errorf("the lists are of different lengths")
	}
	return fmt.Errorf("element %d is in brackets that are not those of shape %s: lines are missing or belong to another tensor",
		len(l.values.list)-1, tensor.FormatShape(l.shape))
}

// record makes a record of what was read. typed says that it has the type that was printed: torch names only
// that which is not the default for such values.
func (l *lists) record(r record, typed bool) (record, error) {
	v := &l.values
	switch {
	case typed:
	case v.boolean:
		r.DType = tensor.Bool
	case v.float || len(v.list) == 0:
		r.DType = tensor.F32
	}
	if r.Shape == nil {
		r.Shape = append([]int{}, l.found...)
	}
	n, err := tensor.NumElems(r.Shape)
	switch {
	case err != nil:
		return record{}, err
	case r.style == styleCompact && n == 0 && len(v.list) > 0:
		return record{}, fmt.Errorf("shape %s has no elements, %d are printed", tensor.FormatShape(r.Shape), len(v.list))
	case r.style != styleCompact && n != len(v.list):
		return record{}, fmt.Errorf("shape %s has %d elements, %d are printed", tensor.FormatShape(r.Shape), n, len(v.list))
	}
	index := l.index
	if len(index) == n {
		index = nil
	}
	return v.record(r, index), nil
}
