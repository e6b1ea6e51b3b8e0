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
	Concat    OpKind = "concat"    // joins all parts along Axis; first where there are several parts, and nowhere else
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

// View says how to look at the bytes of one or more tensors. The empty view of one tensor is the
// tensor.
type View []Op

// Reshaped is the view of a tensor in another shape.
func Reshaped(shape []int) View { return View{{Kind: Reshape, Shape: shape}} }

// Apply returns the tensor that a view describes. Slices, transpositions and most reshapes copy
// nothing.
func (v View) Apply(parts ...*tensor.Tensor) (*tensor.Tensor, error) {
	shapes := make([][]int, len(parts))
	for i, p := range parts {
		shapes[i] = p.Shape()
	}
	if _, err := v.Shape(shapes...); err != nil {
		return nil, err
	}
	t := parts[0]
	for _, op := range v {
		var err error
		if t, err = op.apply(t, parts); err != nil {
			return nil, fmt.Errorf("layout: view %s: %w", v, err)
		}
	}
	return t, nil
}

func (op Op) apply(t *tensor.Tensor, parts []*tensor.Tensor) (*tensor.Tensor, error) {
	switch axis := op.axis(len(t.Shape())); op.Kind {
	case Concat:
		return tensor.Concat(axis, parts...)
	case Slice:
		return t.Slice(axis, op.From, op.To)
	case Transpose:
		return t.Transpose(op.Order...)
	case Reshape:
		return t.Reshape(op.Shape...)
	default:
		return selectRows(t, op.Keep)
	}
}

// selectRows keeps indices of the first axis; tensor.SelectRows goes by all axes but the last.
func selectRows(t *tensor.Tensor, keep []bool) (*tensor.Tensor, error) {
	shape := t.Shape()
	flat, err := t.Reshape(len(keep), product(shape[1:]))
	if err != nil {
		return nil, err
	}
	if t, err = flat.SelectRows(keep); err != nil {
		return nil, err
	}
	return t.Reshape(append([]int{count(keep)}, shape[1:]...)...)
}

// Shape is the shape of what Apply makes of tensors of the given shapes.
func (v View) Shape(parts ...[]int) ([]int, error) {
	if len(parts) == 0 {
		return nil, fmt.Errorf("layout: view %s: no tensors", v)
	}
	if len(parts) > 1 && (len(v) == 0 || v[0].Kind != Concat) {
		return nil, fmt.Errorf("layout: view %s: %d tensors, but the view does not begin with concat", v, len(parts))
	}
	s := slices.Clone(parts[0])
	for i, op := range v {
		if i > 0 && op.Kind == Concat {
			return nil, fmt.Errorf("layout: view %s: concat must come first", v)
		}
		var err error
		if s, err = op.shape(s, parts); err != nil {
			return nil, fmt.Errorf("layout: view %s: %w", v, err)
		}
	}
	return s, nil
}

// shape is the shape that the operation makes of s; concat makes it of the parts.
func (op Op) shape(s []int, parts [][]int) ([]int, error) {
	switch axis := op.axis(len(s)); op.Kind {
	case Concat:
		return concatShape(axis, parts)
	case Slice:
		if axis < 0 || axis >= len(s) || op.From < 0 || op.To < op.From || op.To > s[axis] {
			return nil, fmt.Errorf("[%d:%d] of axis %d of %s", op.From, op.To, axis, tensor.FormatShape(s))
		}
		return with(s, axis, op.To-op.From), nil
	case Transpose:
		return permuted(s, op.Order)
	case Reshape:
		if !sameCount(s, op.Shape) {
			return nil, fmt.Errorf("%s does not have as many elements as %s",
				tensor.FormatShape(s), tensor.FormatShape(op.Shape))
		}
		return slices.Clone(op.Shape), nil
	case Rows:
		if len(s) == 0 || s[0] != len(op.Keep) {
			return nil, fmt.Errorf("%d flags for %s", len(op.Keep), tensor.FormatShape(s))
		}
		return with(s, 0, count(op.Keep)), nil
	}
	return nil, fmt.Errorf("unknown operation %q", op.Kind)
}

// Reshapes reports whether a view only gives a tensor another shape.
func (v View) Reshapes() bool {
	return !slices.ContainsFunc(v, func(op Op) bool { return op.Kind != Reshape })
}

// Inverse is the view that leads back from what v makes of one tensor of the given shape. There is
// none where v leaves elements out or joins parts.
func (v View) Inverse(shape []int) (inverse View, ok bool) {
	for i, op := range v {
		before, err := v[:i].Shape(shape)
		if err != nil {
			return nil, false
		}
		switch op.Kind {
		case Reshape:
			inverse = append(Reshaped(before), inverse...)
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

// axis counts a negative axis from the end.
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
		if len(p) != len(s) || !slices.Equal(with(p, axis, 0), with(s, axis, 0)) {
			return nil, fmt.Errorf("%s does not fit %s along axis %d",
				tensor.FormatShape(p), tensor.FormatShape(parts[0]), axis)
		}
		s[axis] += p[axis]
	}
	return s, nil
}

// permuted is the shape whose axis i is axis order[i] of s.
func permuted(s, order []int) ([]int, error) {
	wrong := len(order) != len(s)
	for i, a := range slices.Sorted(slices.Values(order)) {
		wrong = wrong || a != i
	}
	if wrong {
		return nil, fmt.Errorf("%v is not an order of %d axes", order, len(s))
	}
	out := make([]int, len(s))
	for i, a := range order {
		out[i] = s[a]
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

// sameCount reports whether two shapes have equally many elements.
func sameCount(a, b []int) bool {
	na, errA := tensor.NumElems(a)
	nb, errB := tensor.NumElems(b)
	return errA == nil && errB == nil && na == nb
}

// with is a shape with another size of one axis.
func with(s []int, axis, size int) []int {
	s = slices.Clone(s)
	s[axis] = size
	return s
}

// product is the number of elements of a tensor's axes, which fit.
func product(sizes []int) int {
	n, _ := tensor.NumElems(sizes)
	return n
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

// RowsLeftOut marks the rows of t that are left out, where keep says of each index of the first axis
// whether its rows are kept.
func RowsLeftOut(keep []bool, t *tensor.Tensor) []bool {
	rows := t.Len() / max(t.RowLen(), 1)
	each := max(rows/max(len(keep), 1), 1)
	out := make([]bool, rows)
	for i := range out {
		out[i] = i/each < len(keep) && !keep[i/each]
	}
	return out
}
