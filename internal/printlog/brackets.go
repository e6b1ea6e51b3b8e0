package printlog

import (
	"fmt"
	"strings"

	"github.com/goparity/goparity/tensor"
)

const edge = 3 // elements that are printed at each end of a summarised axis

// body has the parts of "([[1.0, 2.0], …], dtype=…)".
type body struct {
	kinds  []byte // '[' ']' and '.' for an ellipsis, 'v' for a value
	values values
	dtype  string
	shape  []int // nil if it is not printed
	max    bool  // the word for the shape is MAX's, not torch's
}

// parseBrackets reads what MAX prints in style COMPACT, and what torch prints.
func parseBrackets(text string) (Record, error) {
	b, err := scanBody(text)
	if err != nil {
		return Record{}, err
	}
	if b.max {
		return b.compact()
	}
	return b.torch()
}

// words cuts text into brackets, commas, equal signs and what stands between them.
type words struct {
	text string
	at   int
}

const special = "()[],="

func (w *words) next() string {
	for w.at < len(w.text) && (w.text[w.at] == ' ' || w.text[w.at] == '\n' || w.text[w.at] == '\t') {
		w.at++
	}
	from := w.at
	for w.at < len(w.text) && strings.IndexByte(special+" \n\t", w.text[w.at]) < 0 {
		w.at++
	}
	if w.at == from && w.at < len(w.text) {
		w.at++
	}
	return w.text[from:w.at]
}

func scanBody(text string) (*body, error) {
	w := &words{text: text}
	w.next() // the bracket that begin found
	b := &body{}
	depth := 0
	for {
		word := w.next()
		switch word {
		case "[":
			depth++
			b.kinds = append(b.kinds, '[')
		case "]":
			depth--
			b.kinds = append(b.kinds, ']')
		case ",":
		case "...":
			b.kinds = append(b.kinds, '.')
		case "":
			return nil, classError{tensor.ErrTruncated, "the log ends within the tensor"}
		default:
			if err := b.values.add(word); err != nil {
				return nil, fmt.Errorf("element %d: %w", len(b.values.list), err)
			}
			b.kinds = append(b.kinds, 'v')
		}
		if depth < 0 || depth > tensor.MaxRank {
			return nil, fmt.Errorf("brackets do not match")
		}
		if depth == 0 && word != "," {
			break
		}
	}
	return b, b.attributes(w)
}

// attributes reads ", dtype=f32, shape=[2,3])".
func (b *body) attributes(w *words) error {
	for {
		word := w.next()
		if word == ")" {
			break
		}
		key, eq := w.next(), w.next()
		if word != "," || eq != "=" {
			return fmt.Errorf("%q instead of %q or %q", word+key+eq, ", dtype=…", ")")
		}
		var err error
		switch key {
		case "dtype":
			b.dtype = w.next()
		case "shape", "size":
			b.max = key == "shape"
			b.shape, err = sizes(w)
		case "device", "grad_fn", "requires_grad":
			w.next()
		default:
			return fmt.Errorf("unknown attribute %.40q", key)
		}
		if err != nil {
			return err
		}
	}
	if rest := strings.TrimSpace(w.text[w.at:]); rest != "" {
		return fmt.Errorf("%.40q after the tensor", rest)
	}
	return nil
}

// sizes reads "[2,3]" or "(2, 3)".
func sizes(w *words) ([]int, error) {
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

// compact finds the indices of the printed values. The brackets must be those that MAX prints for
// this shape.
func (b *body) compact() (Record, error) {
	r := Record{Style: Compact, Shape: b.shape}
	var err error
	if r.DType, err = parseDType(b.dtype); err != nil {
		return Record{}, err
	}
	n, err := tensor.NumElems(b.shape)
	if err != nil {
		return Record{}, err
	}
	if n == 0 {
		if len(b.values.list) > 0 {
			return Record{}, fmt.Errorf("shape %s has no elements, %d are printed", tensor.FormatShape(b.shape),
				len(b.values.list))
		}
		return b.values.record(r, nil), nil
	}
	rank := len(b.shape)
	matrices, rows, columns := n, 1, 1
	if rank > 0 {
		columns = b.shape[rank-1]
	}
	if rank > 1 {
		rows = b.shape[rank-2]
	}
	matrices /= rows * columns

	var want []byte
	var index []int
	axis := func(n int, each func(i int)) {
		for i := 0; i < n; i++ {
			if i == edge && n > 2*edge {
				want = append(want, '.')
				i = n - edge
			}
			each(i)
		}
	}
	want = append(want, strings.Repeat("[", max(0, rank-2))...)
	axis(matrices, func(m int) {
		want = append(want, '[')
		axis(rows, func(r int) {
			want = append(want, '[')
			axis(columns, func(c int) {
				want = append(want, 'v')
				index = append(index, (m*rows+r)*columns+c)
			})
			want = append(want, ']')
		})
		want = append(want, ']')
	})
	want = append(want, strings.Repeat("]", max(0, rank-2))...)
	if string(b.kinds) != string(want) {
		return Record{}, fmt.Errorf("%d values in brackets that are not those of shape %s: "+
			"lines are missing or belong to another tensor",
			len(b.values.list), tensor.FormatShape(b.shape))
	}
	if len(index) == n {
		index = nil
	}
	return b.values.record(r, index), nil
}

// torch finds the shape and dtype of what torch printed. torch names the dtype only if it is not
// the default for such values.
func (b *body) torch() (Record, error) {
	if strings.IndexByte(string(b.kinds), '.') >= 0 {
		return Record{}, classError{tensor.ErrUnsupported,
			"torch printed a summary without the shape: torch.set_printoptions(threshold=float('inf')), or save files"}
	}
	r := Record{Style: Torch, DType: tensor.I64, Shape: b.shape}
	switch {
	case b.dtype != "":
		d, err := parseDType(b.dtype)
		if err != nil {
			return Record{}, err
		}
		r.DType = d
	case b.values.boolean:
		r.DType = tensor.Bool
	case b.values.float || len(b.values.list) == 0:
		r.DType = tensor.F32
	}
	if r.Shape == nil {
		shape, err := nesting(b.kinds)
		if err != nil {
			return Record{}, err
		}
		r.Shape = shape
	}
	n, err := tensor.NumElems(r.Shape)
	if err != nil {
		return Record{}, err
	}
	if n != len(b.values.list) {
		return Record{}, fmt.Errorf("shape %s has %d elements, %d are printed", tensor.FormatShape(r.Shape), n,
			len(b.values.list))
	}
	return b.values.record(r, nil), nil
}

// nesting returns the shape of balanced brackets. All lists at one depth must have the same length.
func nesting(kinds []byte) ([]int, error) {
	shape := []int{}
	var count []int // elements so far of the open lists
	closed, leaf := 0, -1
	for _, k := range kinds {
		if k != ']' {
			if len(count) > 0 {
				count[len(count)-1]++
			}
		}
		switch k {
		case '[':
			count = append(count, 0)
			if len(count) > len(shape) {
				if closed > 0 {
					return nil, errRagged
				}
				shape = append(shape, -1)
			}
		case ']':
			d := len(count) - 1
			if shape[d] < 0 {
				shape[d] = count[d]
			}
			if shape[d] != count[d] {
				return nil, errRagged
			}
			count = count[:d]
			closed++
		case 'v':
			if leaf < 0 {
				leaf = len(count)
			}
			if leaf != len(count) {
				return nil, errRagged
			}
		}
	}
	return shape, nil
}

var errRagged = fmt.Errorf("the lists are of different lengths")
