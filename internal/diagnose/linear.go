package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/goparity/goparity/tensor"
)

// linear is out = in·Wᵀ + b with W [out, in]; [in, out] if conv.
type linear struct {
	in, out *value
	layer   string
	key     string // of w; "" if w was learned
	w, b    *tensor.Tensor
	conv    bool
	data    []float64 // of w, if it is small
}

// inMemory is the size up to which a weight is kept decoded.
const inMemory = 1 << 22

func (o *linear) inputs() []*value { return []*value{o.in} }

func (o *linear) eval(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.w, o.b, 1) }

// with is in·Wᵀ + n·b.
func (o *linear) with(e *evaluation, rows []int, w, b *tensor.Tensor, n float64) []float64 {
	x := e.get(o.in, rows)
	if x == nil {
		return nil
	}
	var y []float64
	if w == o.w && w.Len() <= inMemory {
		if o.data == nil {
			o.data = read(w, w.Len(), []int{0})
		}
		y = e.g.multiply(x, o.in.width, o.data, o.conv, o.out.width)
	} else {
		y = e.g.product(x, o.in.width, w, o.conv, o.out.width)
	}
	return addRow(y, o.out.width, b, n)
}

func addRow(y []float64, width int, b *tensor.Tensor, n float64) []float64 {
	if y == nil || b == nil || n == 0 {
		return y
	}
	if b.Len() != width {
		return nil
	}
	bias := read(b, width, []int{0})
	for i := range y {
		y[i] += n * bias[i%width]
	}
	return y
}

// multiply is product with w in memory.
func (g *graph) multiply(x []float64, k int, w []float64, conv bool, m int) []float64 {
	n := len(x) / k
	if len(w) != k*m || !g.spend(float64(n)*float64(len(w))) {
		return nil
	}
	if conv {
		y := blas64.General{Rows: n, Cols: m, Stride: m, Data: make([]float64, n*m)}
		blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, blas64.General{Rows: n, Cols: k, Stride: k, Data: x}, blas64.General{Rows: k, Cols: m, Stride: m, Data: w}, 0, y)
		return y.Data
	}
	return matmul(x, k, w)
}

// matmul is x·wᵀ of two matrices with rows of k.
func matmul(x []float64, k int, w []float64) []float64 {
	n, m := len(x)/k, len(w)/k
	y := blas64.General{Rows: n, Cols: m, Stride: m, Data: make([]float64, n*m)}
	blas64.Gemm(blas.NoTrans, blas.Trans, 1, blas64.General{Rows: n, Cols: k, Stride: k, Data: x}, blas64.General{Rows: m, Cols: k, Stride: k, Data: w}, 0, y)
	return y.Data
}

// product is x·wᵀ for x of rows of k, and w [m, k]; x·w for w [k, m] if conv. nil if that is too much work.
func (g *graph) product(x []float64, k int, w *tensor.Tensor, conv bool, m int) []float64 {
	n := len(x) / k
	if w.Len() != k*m || !g.spend(float64(n)*float64(w.Len())) {
		return nil
	}
	y := make([]float64, n*m)
	out := blas64.General{Rows: n, Cols: m, Stride: m, Data: y}
	const chunk = 1 << 20
	if conv {
		step := max(chunk/m, 1)
		for from := 0; from < k; from += step {
			c := min(step, k-from)
			part := make([]float64, c*m)
			w.Float64s(part, from*m)
			blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, blas64.General{Rows: n, Cols: c, Stride: k, Data: x[from:]},
				blas64.General{Rows: c, Cols: m, Stride: m, Data: part}, 1, out)
		}
		return y
	}
	step := max(chunk/k, 1)
	for from := 0; from < m; from += step {
		c := min(step, m-from)
		part := make([]float64, c*k)
		w.Float64s(part, from*k)
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, blas64.General{Rows: n, Cols: k, Stride: k, Data: x},
			blas64.General{Rows: c, Cols: k, Stride: k, Data: part}, 0, blas64.General{Rows: n, Cols: c, Stride: m, Data: y[from:]})
	}
	return y
}

func (o *linear) faults(g *graph, v *value) []fault {
	name := lastPart(o.layer)
	var out []fault
	add := func(id, text string, rank int, eval func(e *evaluation, rows []int) []float64) {
		out = append(out, fault{id: id, text: text, rank: rank, eval: eval})
	}
	if o.w.Shape()[0] == o.w.Shape()[1] {
		add("linear/transposed", "W is used where Wᵀ should be: x·W + b", 0, func(e *evaluation, rows []int) []float64 {
			x := e.get(o.in, rows)
			if x == nil {
				return nil
			}
			return addRow(e.g.product(x, o.in.width, o.w, !o.conv, o.out.width), o.out.width, o.b, 1)
		})
	} else if t, err := o.w.Reshape(o.w.Shape()[1], o.w.Shape()[0]); err == nil {
		is, not := "[in, out]", "[out, in]"
		if o.conv {
			is, not = not, is
		}
		if o.w.Len() <= inMemory {
			add("linear/transposed", "W was transposed in memory, and is read as "+not+" as before", 0, func(e *evaluation, rows []int) []float64 {
				t, err := o.w.Transpose(1, 0)
				if err != nil {
					return nil
				}
				if t, err = t.Reshape(o.w.Shape()...); err != nil {
					return nil
				}
				return o.with(e, rows, t, o.b, 1)
			})
		}
		add("linear/transposed", "the memory of W is read as "+is+" and not as "+not, 0, func(e *evaluation, rows []int) []float64 {
			x := e.get(o.in, rows)
			if x == nil {
				return nil
			}
			return addRow(e.g.product(x, o.in.width, t, !o.conv, o.out.width), o.out.width, o.b, 1)
		})
	}
	if o.b != nil {
		add("linear/bias-missing", "the bias is missing", 0, func(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.w, nil, 0) })
		add("linear/bias-twice", "the bias is added twice", 0, func(e *evaluation, rows []int) []float64 { return o.with(e, rows, o.w, o.b, 2) })
	}
	if o.key != "" {
		out = append(out, o.others(g)...)
	}
	out = append(out, exchanged(o, g, v, o.layer)...)
	out = append(out, o.corrupt(g, v)...)
	out = append(out, o.quantised(g, v)...)
	if headNames.has(name) || o.tied() {
		out = append(out, o.heads(g)...)
	}
	return out
}

func (o *linear) tied() bool { return o.key != "" && tableNames.has(lastPart(moduleOf(o.key))) }

// others: the weights of another layer, with its bias or with the own.
func (o *linear) others(g *graph) []fault {
	const limit = 64
	var keys []string
	for key, w := range g.s.Weights {
		if key != o.key && strings.HasSuffix(key, ".weight") && slices.Equal(w.Shape(), o.w.Shape()) && !tableNames.has(lastPart(moduleOf(key))) {
			keys = append(keys, key)
		}
	}
	own := moduleOf(o.key)
	near := func(key string) int {
		m := moduleOf(key)
		switch {
		case sameParent(m, own):
			return 0
		case lastPart(m) == lastPart(own):
			return 1
		}
		return 2
	}
	slices.SortFunc(keys, func(a, b string) int {
		if d := near(a) - near(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var out []fault
	for _, key := range keys[:min(len(keys), limit)] {
		w, m := g.s.Weights[key], moduleOf(key)
		id, rank := "linear/other-layer", 1
		if sameParent(m, own) {
			if ex := exchangeID(own, m); ex != "" {
				id, rank = ex, 0
			}
		}
		text := "the weights are those of " + m
		b := g.s.Weights[m+".bias"]
		if (b == nil) == (o.b == nil) {
			out = append(out, fault{id: id, rank: rank, text: text, eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, w, b, 1) }})
		}
		if o.b != nil {
			out = append(out, fault{id: id, rank: rank + 1, text: text + ", with the right bias",
				eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, w, o.b, 1) }})
		}
	}
	return out
}

// heads: an output layer whose weights are tied to the embeddings, or should not be.
func (o *linear) heads(g *graph) []fault {
	var out []fault
	for key, w := range g.s.Weights {
		m := lastPart(moduleOf(key))
		if key == o.key || !strings.HasSuffix(key, ".weight") || !slices.Equal(w.Shape(), o.w.Shape()) || !tableNames.has(m) && !headNames.has(m) {
			continue
		}
		out = append(out, fault{id: "output/tied", text: "the weights of the head are those of " + moduleOf(key),
			eval: func(e *evaluation, rows []int) []float64 { return o.with(e, rows, w, o.b, 1) }})
	}
	slices.SortFunc(out, func(a, b fault) int { return strings.Compare(a.text, b.text) })
	if o.tied() {
		out = append(out, fault{id: "output/tied", guess: true, text: "the head, which is tied to the embeddings, has other weights"})
		out = append(out, fault{id: "output/tied", rank: -1, text: "the head, which is tied to the embeddings, has no weights: zeros",
			eval: func(_ *evaluation, rows []int) []float64 { return make([]float64, len(rows)*o.out.width) }})
		for _, f := range []float64{math.Sqrt(float64(o.in.width)), 1 / math.Sqrt(float64(o.in.width))} {
			out = append(out, fault{id: "output/tied", rank: 2, text: fmt.Sprintf("the tied head is scaled by %.6g, as the embeddings are", f),
				eval: func(e *evaluation, rows []int) []float64 { return scaled(o.eval(e, rows), f) }})
		}
	}
	return out
}

// learn finds W and b by least squares of the golden rows, where there are clearly more of them than unknowns in an equation.
func learn(g *graph, in, v *value, layer string) *linear {
	const maxWidth = 512
	k := in.width
	n := min(v.rows, 2*k+32)
	if v.rows < k+k/4+8 || k > maxWidth || v.width > 4*maxWidth || !g.spend(2*float64(n)*float64(k)*float64(k+v.width)) {
		return nil
	}
	rows := spread(v.rows, n)
	x, y := read(in.golden, k, rows), read(v.golden, v.width, rows)
	a := mat.NewDense(n, k+1, nil)
	for i := range n {
		a.SetRow(i, append(slices.Clone(x[i*k:(i+1)*k]), 1))
	}
	var qr mat.QR
	qr.Factorize(a)
	if c := qr.Cond(); c > 1e7 || math.IsNaN(c) {
		return nil // the rows do not say
	}
	var w mat.Dense
	if err := qr.SolveTo(&w, false, mat.NewDense(n, v.width, y)); err != nil {
		return nil
	}
	wt := make([]float64, k*v.width)
	bias := make([]float64, v.width)
	for c := range v.width {
		for i := range k {
			wt[c*k+i] = w.At(i, c)
		}
		bias[c] = w.At(k, c)
	}
	weight, err := tensor.Of(wt, v.width, k)
	if err != nil {
		return nil
	}
	m := &linear{in: in, out: v, layer: layer, w: weight}
	if b, err := tensor.Of(bias, v.width); err == nil && floats.Norm(bias, 2) > 1e-4*floats.Norm(y, 2)/math.Sqrt(float64(n)) {
		m.b = b
	}
	return m
}
