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
	err = guard(func() error {
		some, err := sample(golden)
		if err != nil {
			return err
		}
		parts := References{Encoding: refs.Encoding}
		for _, r := range []struct {
			from *tensor.Tensor
			to   **tensor.Tensor
		}{{refs.Float64, &parts.Float64}, {refs.Encoded, &parts.Encoded}} {
			if r.from != nil {
				if *r.to, err = sample(r.from); err != nil {
					return err
				}
			}
		}
		others, err := trivial(actual, beside)
		if err != nil {
			return err
		}
		for _, o := range others {
			v, err := c.Judge(some, o.Tensor, parts)
			if err != nil {
				return err
			}
			if !v.Pass {
				continue
			}
			if v, err = usual.Judge(some, o.Tensor, References{}); err != nil {
				return err
			}
			if !v.Pass {
				what = o.Name
				return nil
			}
		}
		return nil
	}, golden, actual)
	return what, err
}

// trivial makes tensors that are not the golden, of the candidate's numbers.
func trivial(actual *tensor.Tensor, beside []Beside) (out []Beside, err error) {
	some, err := sample(actual)
	if err != nil {
		return nil, err
	}
	data, _ := some.Bytes()
	size, n := some.DType().Size(), some.RowLen()
	add := func(name string, data []byte) error {
		t, err := tensor.New(some.DType(), some.Shape(), data)
		out = append(out, Beside{name, t})
		return err
	}
	if err := add("zeros", make([]byte, len(data))); err != nil {
		return nil, err
	}
	mean := nearestToMean(some) * size
	if err := add("one number everywhere, its mean,", slices.Repeat(data[mean:mean+size], some.Len())); err != nil {
		return nil, err
	}
	if some.Len() > n {
		row := some.Len() / n / 2 * n * size
		if err := add("its rows in another order", slices.Concat(data[row:], data[:row])); err != nil {
			return nil, err
		}
	}
	if n > 1 {
		turned := make([]byte, 0, len(data))
		for i := 0; i < len(data); i += n * size {
			at := i + (n+1)/2*size
			turned = append(append(turned, data[at:i+n*size]...), data[i:at]...)
		}
		if err := add("the elements of its rows in another order", turned); err != nil {
			return nil, err
		}
	}
	for _, b := range beside {
		if slices.Equal(b.Tensor.Shape(), actual.Shape()) && b.Tensor.DType().IsFloat() {
			part, err := sample(b.Tensor)
			if err != nil {
				return nil, err
			}
			out = append(out, Beside{b.Name, part})
		}
	}
	return out, nil
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

// sample copies whole rows of a tensor, evenly spread, as [rows, …]: all of a small one.
func sample(t *tensor.Tensor) (*tensor.Tensor, error) {
	n := t.RowLen()
	rows := t.Len() / n
	kept := min(rows, max(vacuousElements/n, leastVacuousRows))
	width := n * t.DType().Size()
	data := make([]byte, kept*width)
	for i := range kept {
		t.Gather(data[i*width:(i+1)*width], i*rows/kept*n)
	}
	return tensor.New(t.DType(), []int{kept, n}, data)
}
