package path

import (
	"slices"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
)

// axis says where the rows of a tensor are: the axis that counts tokens, after a batch axis where
// it is not the first; or one row for each sequence, that of its last token in the pass.
type axis int

const (
	lastRows axis = -1
	none     axis = -2
)

// recorded is a tensor of a port in one forward pass.
type recorded struct {
	pass *Pass
	*tensor.Tensor
}

// fits reports whether a shape may be read in this way.
func (a axis) fits(s recorded, float bool) bool {
	n, shape := len(s.pass.Rows), s.Shape()
	batch, tokens := s.pass.Size()
	switch {
	case a == lastRows:
		return (len(shape) == 2 || len(shape) == 3 && shape[1] == 1) && shape[0] == len(s.pass.Items)
	case a == 0:
		return len(shape) > 0 && shape[0] == n && (len(shape) > 1 || !float)
	case a == 1 && (len(shape) < 2 || len(shape) == 2 && float), a == 2 && len(shape) != 4:
		return false
	}
	return shape[0] == 1 && shape[a] == n || tokens > 0 && shape[0] == batch && shape[a] == tokens
}

// rest is the shape without the axes that count sequences and tokens.
func (a axis) rest(shape []int) []int {
	if a == lastRows {
		return slices.DeleteFunc(slices.Clone(shape[1:]), func(d int) bool { return d == 1 })
	}
	return slices.Concat(shape[1:max(a, 1)], shape[a+1:])
}

// axisOf finds where the rows of a port are by its shapes in all forward passes; none if they are not
// tokens. known is what the port of this name on the other side says, none if it does not.
func axisOf(port string, in []recorded, known axis) axis {
	float := slices.ContainsFunc(in, func(s recorded) bool { return s.DType().IsFloat() })
	for _, a := range []axis{known, 1, 0, 2, lastRows} {
		switch {
		case a == none, a == lastRows && label.IsInput(port) && !float:
			continue
		case slices.ContainsFunc(in, func(s recorded) bool {
			return !a.fits(s, float) || !slices.Equal(a.rest(s.Shape()), a.rest(in[0].Shape()))
		}):
		case a == known || !float || !a.overKeys(port, in):
			return a
		}
	}
	return none
}

// overKeys reports whether each row may well hold a number for each token that it looks at, as those
// of masks and attention weights do.
func (a axis) overKeys(port string, in []recorded) bool {
	shape := in[0].Shape()
	if a == lastRows || len(shape) != 4 && (len(shape) != 2 || !label.IsInput(port)) {
		return false
	}
	return !slices.ContainsFunc(in, func(s recorded) bool {
		_, tokens := s.pass.Size()
		longest := slices.MaxFunc(s.pass.Items, func(a, b dump.PassItem) int { return a.To - b.To })
		last := s.Shape()[len(s.Shape())-1]
		return last != longest.To && last != tokens
	})
}

// lay puts the rows of a tensor one after the other, without padding.
func (a axis) lay(t *tensor.Tensor, p *Pass) (*tensor.Tensor, error) {
	if shape := t.Shape(); a <= 0 || shape[0] == 1 && shape[a] == len(p.Rows) {
		return t, nil
	}
	var heads layout.View // those before the rows go behind them, and back again
	if a == 2 {
		heads = layout.View{{Kind: layout.Transpose, Order: []int{0, 2, 1, 3}}}
	}
	batch, tokens := p.Size()
	rest := a.rest(t.Shape())
	view := slices.Concat(heads, layout.Reshaped(append([]int{batch * tokens}, rest...)))
	if p.grid != nil {
		view = append(view, layout.Op{Kind: layout.Rows, Keep: slices.Concat(p.grid...)})
	}
	return slices.Concat(view, layout.Reshaped(append([]int{1, len(p.Rows)}, rest...)), heads).Apply(t)
}

// along is the axis of rows of a tensor that was laid out.
func (a axis) along() int { return max(int(a), 0) }
