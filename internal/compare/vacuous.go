package compare

import (
	"slices"

	"github.com/goparity/goparity/tensor"
)

// Beside is a tensor that is another than the golden, of the same shape: that of the next layer.
type Beside struct {
	Name   string
	Tensor *tensor.Tensor
}

// Vacuous looks for what is not the golden and would be taken for it by the criteria: zeros, one number
// everywhere, the candidate's rows or the elements of its rows in another order, or a tensor beside it. It
// returns the first of these in words, "" if there is none.
//
// What the defaults take for the golden, too, says nothing of a limit: a golden may be constant, and a layer
// may add nothing. Integers and bools are compared exactly, whatever the limits. Of large tensors
// some 2^14 elements are looked at, in whole rows.
//
// Errors: those of [Criteria.Judge].
func (c Criteria) Vacuous(golden, actual *tensor.Tensor, refs References, beside []Beside) (what string, err error) {
	if exact(golden, actual) || golden.Len() == 0 || !slices.Equal(golden.Shape(), actual.Shape()) {
		return "", nil
	}
	usual := Default(golden.DType(), actual.DType())
	if refs.Encoding.IsFloat() {
		usual = Default(golden.DType(), actual.DType(), refs.Encoding)
	}
	if limit, asked := c[EqualNaN]; asked {
		usual[EqualNaN] = limit
	}
	return guard(func() (string, error) {
		some := sample(golden)
		parts := References{Encoding: refs.Encoding, Float64: sample(refs.Float64), Encoded: sample(refs.Encoded)}
		for _, o := range trivial(actual, beside) {
			v, err := c.Judge(some, o.Tensor, parts)
			if err == nil && v.Pass {
				if v, err = usual.Judge(some, o.Tensor, References{}); err == nil && !v.Pass {
					return o.Name, nil
				}
			}
			if err != nil {
				return "", err
			}
		}
		return "", nil
	}, golden, actual)
}

// trivial makes tensors that are not the golden, of the candidate's numbers.
func trivial(actual *tensor.Tensor, beside []Beside) (out []Beside) {
	some := sample(actual)
	data, _ := some.Bytes()
	size, n := some.DType().Size(), some.RowLen()
	add := func(name string, data []byte) {
		t, _ := tensor.New(some.DType(), some.Shape(), data) // as much data
		out = append(out, Beside{name, t})
	}
	add("zeros", make([]byte, len(data)))
	mean := nearestToMean(some) * size
	add("one number everywhere, its mean,", slices.Repeat(data[mean:mean+size], some.Len()))
	if some.Len() > n {
		row := some.Len() / n / 2 * n * size
		add("its rows in another order", slices.Concat(data[row:], data[:row]))
	}
	if n > 1 {
		turned := make([]byte, 0, len(data))
		for row := range slices.Chunk(data, n*size) {
			at := (n + 1) / 2 * size
			turned = append(append(turned, row[at:]...), row[:at]...)
		}
		add("the elements of its rows in another order", turned)
	}
	for _, b := range beside {
		if slices.Equal(b.Tensor.Shape(), actual.Shape()) && b.Tensor.DType().IsFloat() {
			out = append(out, Beside{b.Name, sample(b.Tensor)})
		}
	}
	return out
}

// nearestToMean is the index of the element that is nearest to the mean of those that are finite.
func nearestToMean(t *tensor.Tensor) (at int) {
	x := make([]float64, t.Len())
	t.Float64s(x, 0)
	var total sum
	n := 0.0
	for _, v := range x {
		if finite(v) {
			total.add(v)
			n++
		}
	}
	mean := total.value() / max(n, 1)
	for i, v := range x {
		if d := v - mean; finite(d) && !(d*d >= (x[at]-mean)*(x[at]-mean)) {
			at = i
		}
	}
	return at
}

// sample copies whole rows of a tensor, evenly spread, as [rows, …]: all of a small one. It is nil for none.
func sample(t *tensor.Tensor) *tensor.Tensor {
	if t == nil {
		return nil
	}
	n := t.RowLen()
	rows := t.Len() / n
	kept := min(rows, max(vacuousElements/n, leastVacuousRows))
	width := n * t.DType().Size()
	data := make([]byte, kept*width)
	for i := range kept {
		t.Gather(data[i*width:(i+1)*width], i*rows/kept*n)
	}
	out, _ := tensor.New(t.DType(), []int{kept, n}, data) // as much data
	return out
}
