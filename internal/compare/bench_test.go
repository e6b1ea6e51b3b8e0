package compare_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/compare"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/raw"
)

// pairOf makes two tensors of a type: normally distributed values, and the same with small errors.
// In large tensors the values repeat.
func pairOf(tb testing.TB, d tensor.DType, shape ...int) (golden, actual *tensor.Tensor) {
	const period = 1<<20 + 7
	n, err := tensor.NumElems(shape)
	require.NoError(tb, err)
	rnd := rand.New(rand.NewPCG(1, 2))
	g, a := make([]byte, 0, n*d.Size()), make([]byte, 0, n*d.Size())
	for range min(n, period) {
		v := rnd.NormFloat64()
		g, a = appendValue(g, d, v), appendValue(a, d, v+1e-3*rnd.NormFloat64())
	}
	for len(g) < cap(g) {
		m := min(len(g), n*d.Size()-len(g))
		g, a = append(g, g[:m]...), append(a, a[:m]...)
	}
	return fromBytes(tb, d, shape, g), fromBytes(tb, d, shape, a)
}

// within is a tolerance that pairOf keeps.
var within = compare.Tolerance{Atol: 1e-2, Rtol: 1e-2}

// BenchmarkTensors reports MB/s of the bytes of both sides. With -cpu 1,2 it shows the gain of
// another core.
func BenchmarkTensors(b *testing.B) {
	for _, bench := range []struct {
		name  string
		dtype tensor.DType
		shape []int
		turn  bool // transposed
	}{
		{"f32/64kB", tensor.F32, []int{16, 1024}, false},
		{"f32/1MB", tensor.F32, []int{256, 1024}, false},
		{"f32/16MB", tensor.F32, []int{4096, 1024}, false},
		{"f32/256MB", tensor.F32, []int{65536, 1024}, false},
		{"f32/1GB", tensor.F32, []int{1 << 18, 1024}, false},
		{"f32/rows64", tensor.F32, []int{1 << 20, 64}, false},
		{"f32/rows1", tensor.F32, []int{1 << 22, 1}, false},
		{"f32/one row", tensor.F32, []int{1 << 26}, false},
		{"f32/transposed", tensor.F32, []int{4096, 4096}, true},
		{"f32/transposed long", tensor.F32, []int{32768, 512}, true},
		{"bf16/256MB", tensor.BF16, []int{1 << 17, 1024}, false},
		{"bf16/rows64", tensor.BF16, []int{1 << 21, 64}, false},
		{"f16/256MB", tensor.F16, []int{1 << 17, 1024}, false},
		{"f64/256MB", tensor.F64, []int{32768, 1024}, false},
		{"f8/64MB", tensor.F8E5M2, []int{65536, 1024}, false},
	} {
		b.Run(bench.name, func(b *testing.B) {
			g, a := pairOf(b, bench.dtype, bench.shape...)
			if bench.turn {
				g, a = transposed(b, g), transposed(b, a)
			}
			b.ReportAllocs()
			best(b, 2*g.Len()*bench.dtype.Size(), func() {
				_, err := compare.Tensors(g, a, within)
				require.NoError(b, err)
			})
		})
	}
}

// BenchmarkLayers compares many small tensors one after the other.
func BenchmarkLayers(b *testing.B) {
	g, a := pairOf(b, tensor.F32, 64, 256, 64) // 64 layers of 64 KiB, again and again
	for _, n := range []int{10, 100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			best(b, n*2*256*64*4, func() {
				for i := range n {
					gl, err := g.Slice(0, i%64, i%64+1)
					require.NoError(b, err)
					al, err := a.Slice(0, i%64, i%64+1)
					require.NoError(b, err)
					_, err = compare.Tensors(gl, al, within)
					require.NoError(b, err)
				}
			})
		})
	}
}

// BenchmarkKernel measures the kernels on one core, with tensors in its cache and without searching
// for indices.
func BenchmarkKernel(b *testing.B) {
	for _, assembly := range []bool{true, false} {
		for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64} {
			for _, cols := range []int{64, 1024} {
				b.Run(fmt.Sprintf("%s/rows%d/%s", map[bool]string{true: "assembly", false: "go"}[assembly], cols, d), func(b *testing.B) {
					if assembly && !compare.Assembly() {
						b.Skip("this CPU has no AVX2")
					}
					defer compare.UseAssembly(compare.UseAssembly(assembly))
					g, a := pairOf(b, d, 5*compare.PieceLen/cols, cols)
					best(b, 2*4*compare.PieceLen*d.Size(), compare.Again(g, a, within))
				})
			}
		}
	}
}

// BenchmarkWrong compares pairs that differ by more than noise, or are stored otherwise, beside a
// good one of the same size: internal/bench/README.md has their ratios.
func BenchmarkWrong(b *testing.B) {
	const n = 1 << 20 // bytes of a side
	type edit func(i int, g, a float64) float64
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16} {
		rows := n / d.Size() / 1024
		for _, bench := range []struct {
			name  string
			dtype tensor.DType
			shape []int
			edit  edit // of the candidate
		}{
			{"good", d, []int{rows, 1024}, nil},
			{"some NaN", d, []int{rows, 1024}, func(i int, _, a float64) float64 {
				if i%1000 == 0 {
					return nan
				}
				return a
			}},
			{"all NaN", d, []int{rows, 1024}, func(int, float64, float64) float64 { return nan }},
			{"constant offset", d, []int{rows, 1024}, func(_ int, g, _ float64) float64 { return g + 0.5 }},
			{"constant factor", d, []int{rows, 1024}, func(_ int, g, _ float64) float64 { return 1.01 * g }},
			{"zeros", d, []int{rows, 1024}, func(int, float64, float64) float64 { return 0 }},
			{"rows of one", d, []int{1024 * rows, 1}, nil},
			{"rows of three", d, []int{1024 * rows / 3, 3}, nil},
			{"Fortran order", d, []int{rows, 1024}, nil},
			{"equal int32", tensor.I32, []int{n / 4 / 1024, 1024}, nil},
			{"unequal int32", tensor.I32, []int{n / 4 / 1024, 1024}, nil},
		} {
			b.Run(fmt.Sprint(d, "/", bench.name), func(b *testing.B) {
				g, a := pairOf(b, bench.dtype, bench.shape...)
				switch {
				case bench.edit != nil:
					var edited []byte
					for i := range g.Len() {
						edited = appendValue(edited, d, bench.edit(i, g.At(i), a.At(i)))
					}
					a = fromBytes(b, d, g.Shape(), edited)
				case bench.name == "equal int32":
					a = g.Copy()
				case bench.name == "Fortran order":
					a = transposed(b, transposed(b, a).Copy())
				}
				best(b, 2*n, func() {
					_, err := compare.Tensors(g, a, compare.Tolerance{})
					require.NoError(b, err)
				})
			})
		}
	}
}

func transposed(tb testing.TB, x *tensor.Tensor) *tensor.Tensor {
	x, err := x.Transpose()
	require.NoError(tb, err)
	return x
}

// BenchmarkLimit only reads two equal tensors of 256 MB: no comparison is faster than that.
func BenchmarkLimit(b *testing.B) {
	g, _ := pairOf(b, tensor.F32, 1<<26)
	x, _ := g.Bytes()
	y := bytes.Clone(x)
	best(b, 2*len(x), func() {
		var parts sync.WaitGroup
		n := runtime.GOMAXPROCS(0)
		for i := range n {
			parts.Go(func() {
				for from := i << 20; from < len(x); from += n << 20 {
					if !bytes.Equal(x[from:min(from+1<<20, len(x))], y[from:min(from+1<<20, len(y))]) {
						b.Error("they are equal")
					}
				}
			})
		}
		parts.Wait()
	})
}

// BenchmarkFiles compares golden.TYPE with actual.TYPE, raw files in rows of 1024 in the folder
// $PARITY_BENCH. internal/bench writes them.
func BenchmarkFiles(b *testing.B) {
	dir := os.Getenv("PARITY_BENCH")
	if dir == "" {
		b.Skip("PARITY_BENCH names no folder")
	}
	for _, d := range []tensor.DType{tensor.F32, tensor.BF16, tensor.F16} {
		b.Run(d.String(), func(b *testing.B) {
			open := func(side string) *tensor.Tensor {
				path := filepath.Join(dir, side+"."+d.String())
				f, err := raw.Open(path, raw.Spec{DType: d, Shape: []int{-1, 1024}})
				require.NoError(b, err)
				b.Cleanup(func() { require.NoError(b, f.Close()) })
				return f.Tensors[0].Tensor
			}
			g, a := open("golden"), open("actual")
			best(b, 2*g.Len()*d.Size(), func() {
				_, err := compare.Tensors(g, a, within)
				require.NoError(b, err)
			})
		})
	}
}

// best also reports the bytes per second of the fastest call, since the mean says little on a busy
// machine.
func best(b *testing.B, n int, f func()) {
	b.SetBytes(int64(n))
	fastest := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		f()
		fastest = min(fastest, time.Since(start))
	}
	b.ReportMetric(float64(n)/fastest.Seconds()/1e9, "best-GB/s")
}

func BenchmarkExplain(b *testing.B) {
	g, a := pairOf(b, tensor.F32, 1024, 1024)
	b.SetBytes(int64(2 * 4 * g.Len()))
	for b.Loop() {
		_, err := compare.Explain(g, a, compare.Tolerance{Atol: 1e-3})
		require.NoError(b, err)
	}
}
