package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// OpKind names what an [Op] does.
type OpKind string

// The kinds of an Op.
const (
	Concat    OpKind = "concat"    // joins all parts along Axis; only as the first op, and required if there are several parts
	Slice     OpKind = "slice"     // keeps the indices From ≤ i < To of Axis
	Transpose OpKind = "transpose" // axis i of the result is axis Order[i]
	Reshape   OpKind = "reshape"   // the same elements in row-major order with another Shape
	Rows      OpKind = "rows"      // keeps index i of the first axis if Keep[i]
)

// Op is one step of a View.
type Op struct {
	Kind     OpKind
	Axis     int // of concat and slice; −1 is the last
	From, To int
	Shape    []int
	Order    []int
	Keep     []bool
}

// View says how to look at the bytes of one or more tensors. The empty view of one tensor is the tensor.
type View []Op

// Apply gives the tensor that a view describes. Slices, transpositions and most reshapes copy nothing.
func (v View) Apply(parts ...*tensor.Tensor) (*tensor.Tensor, error) {
	shapes := make([][]int, len(parts))
	for i, p := range parts {
		shapes[i] = p.Shape()
	}
	if err := v.checkParts(shapes); err != nil {
		return nil, err
	}
	t := parts[0]
	for _, op := range v {
		var err error
		switch axis := op.axis(len(t.Shape())); op.Kind {
		case Concat:
			t, err = tensor.Concat(axis, parts...)
		case Slice:
			t, err = t.Slice(axis, op.From, op.To)
		case Transpose:
			t, err = t.Transpose(op.Order...)
		case Reshape:
			t, err = t.Reshape(op.Shape...)
		case Rows:
			t, err = selectRows(t, op.Keep)
		default:
			err = fmt.Errorf("unknown operation %q", op.Kind)
		}
		if err != nil {
			return nil, fmt.Errorf("match: view %s: %w", v, err)
		}
	}
	return t, nil
}

// selectRows keeps indices of the first axis; tensor.SelectRows goes by all axes but the last.
func selectRows(t *tensor.Tensor, keep []bool) (*tensor.Tensor, error) {
	shape := t.Shape()
	if len(shape) == 0 || shape[0] != len(keep) {
		return nil, fmt.Errorf("%d flags for %s", len(keep), t)
	}
	rest := 1
	for _, d := range shape[1:] {
		rest *= d
	}
	flat, err := t.Reshape(len(keep), rest)
	if err != nil {
		return nil, err
	}
	if t, err = flat.SelectRows(keep); err != nil {
		return nil, err
	}
	return t.Reshape(append([]int{count(keep)}, shape[1:]...)...)
}

// Shape is the shape that Apply would give to tensors of the given shapes.
func (v View) Shape(parts ...[]int) ([]int, error) {
	if err := v.checkParts(parts); err != nil {
		return nil, err
	}
	s := slices.Clone(parts[0])
	for _, op := range v {
		axis := op.axis(len(s))
		var err error
		switch op.Kind {
		case Concat:
			s, err = concatShape(axis, parts)
		case Slice:
			if axis < 0 || axis >= len(s) || op.From < 0 || op.To < op.From || op.To > s[axis] {
				err = fmt.Errorf("[%d:%d] of axis %d of %s", op.From, op.To, axis, tensor.FormatShape(s))
			} else {
				s[axis] = op.To - op.From
			}
		case Transpose:
			s, err = transposeShape(s, op.Order)
		case Reshape:
			if !sameCount(s, op.Shape) {
				err = fmt.Errorf("%s does not have as many elements as %s", tensor.FormatShape(s), tensor.FormatShape(op.Shape))
			}
			s = slices.Clone(op.Shape)
		case Rows:
			if len(s) == 0 || s[0] != len(op.Keep) {
				err = fmt.Errorf("%d flags for %s", len(op.Keep), tensor.FormatShape(s))
			} else {
				s[0] = count(op.Keep)
			}
		default:
			err = fmt.Errorf("unknown operation %q", op.Kind)
		}
		if err != nil {
			return nil, fmt.Errorf("match: view %s: %w", v, err)
		}
	}
	return s, nil
}

// Inverse is the view that leads back from what v makes of one tensor of the given shape. There is none where v leaves elements out or joins
// parts.
func (v View) Inverse(shape []int) (inverse View, ok bool) {
	for i, op := range v {
		before, err := v[:i].Shape(shape)
		if err != nil {
			return nil, false
		}
		switch op.Kind {
		case Reshape:
			inverse = append(reshape(before), inverse...)
		case Transpose:
			back := make([]int, len(op.Order))
			for to, from := range op.Order {
				back[from] = to
			}
			inverse = append(View{{Kind: Transpose, Order: back}}, inverse...)
		default:
			return nil, false
		}
	}
	return inverse, true
}

func (v View) checkParts(parts [][]int) error {
	if len(parts) == 0 {
		return fmt.Errorf("match: view %s: no tensors", v)
	}
	if first := len(v) > 0 && v[0].Kind == Concat; len(parts) > 1 && !first {
		return fmt.Errorf("match: view %s: %d tensors, but the view does not begin with concat", v, len(parts))
	}
	for _, op := range v[min(1, len(v)):] {
		if op.Kind == Concat {
			return fmt.Errorf("match: view %s: concat must come first", v)
		}
	}
	return nil
}

func (op Op) axis(rank int) int {
	if op.Axis < 0 {
		return op.Axis + rank
	}
	return op.Axis
}

func concatShape(axis int, parts [][]int) ([]int, error) {
	s := slices.Clone(parts[0])
	if axis < 0 || axis >= len(s) {
		return nil, fmt.Errorf("axis %d of %s", axis, tensor.FormatShape(s))
	}
	for _, p := range parts[1:] {
		if len(p) != len(s) || !slices.Equal(p[:axis], s[:axis]) || !slices.Equal(p[axis+1:], s[axis+1:]) {
			return nil, fmt.Errorf("%s does not fit %s along axis %d", tensor.FormatShape(p), tensor.FormatShape(parts[0]), axis)
		}
		s[axis] += p[axis]
	}
	return s, nil
}

func transposeShape(s, order []int) ([]int, error) {
	out := make([]int, len(s))
	seen := make([]bool, len(s))
	if len(order) != len(s) {
		return nil, fmt.Errorf("%v is not an order of %d axes", order, len(s))
	}
	for i, a := range order {
		if a < 0 || a >= len(s) || seen[a] {
			return nil, fmt.Errorf("%v is not an order of %d axes", order, len(s))
		}
		seen[a], out[i] = true, s[a]
	}
	return out, nil
}

// String lists the operations: "concat axis -1, reshape [1 7 64]".
func (v View) String() string {
	if len(v) == 0 {
		return "as it is"
	}
	text := make([]string, len(v))
	for i, op := range v {
		text[i] = op.String()
	}
	return strings.Join(text, ", ")
}

// String names the operation and its arguments.
func (op Op) String() string {
	switch op.Kind {
	case Concat:
		return fmt.Sprintf("concat axis %d", op.Axis)
	case Slice:
		return fmt.Sprintf("[%d:%d] of axis %d", op.From, op.To, op.Axis)
	case Transpose:
		return fmt.Sprintf("transpose %v", op.Order)
	case Reshape:
		return "reshape " + tensor.FormatShape(op.Shape)
	case Rows:
		return fmt.Sprintf("%d of %d rows", count(op.Keep), len(op.Keep))
	}
	return string(op.Kind)
}

func count(flags []bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

func sameCount(a, b []int) bool {
	na, errA := tensor.NumElems(a)
	nb, errB := tensor.NumElems(b)
	return errA == nil && errB == nil && na == nb
}
