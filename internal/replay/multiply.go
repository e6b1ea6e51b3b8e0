package replay

import (
	"context"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/goparity/goparity/internal/vec"
)

// A product is made in blocks whose panels fit the second cache: 192 KiB of the left operand, 256 KiB
// of the right one.
const (
	tileRows   = 6 // of the kernel in assembly
	blockRows  = 32 * tileRows
	blockCols  = 256
	blockDepth = 256
)

// floating is what products add in.
type floating interface{ float32 | float64 }

// tile adds the product of two panels to a tile of a matrix: dst[i·stride+j] += Σ a[d·tileRows+i]·b[d·w+j]
// over d < k, where w numbers are two vectors, see width.
type tile[T floating] func(dst *T, stride int, a, b *T, k int)

func width[T floating]() int { return 64 / int(unsafe.Sizeof(T(0))) }

// multiply adds the products of n matrices, [n, m, k] and [n, k, p], to dst, [n, m, p] in row-major
// order. Each element is a sum of sums over blockDepth factors, whichever processors calculate it.
// Operands of 16 bits are converted block by block, so that no copy of a whole operand is made.
func multiply(dst, a, b *Array) {
	switch {
	case dst.Len() == 0 || a.shape[2] == 0:
	case dst.f != nil:
		multiplyTo(dst.f[dst.off:], a, b)
	default:
		multiplyTo(dst.d[dst.off:], a, b)
	}
}

func multiplyTo[T floating](dst []T, a, b *Array) {
	n, m, k, p := a.shape[0], a.shape[1], a.shape[2], b.shape[2]
	down, across, depth := ceil(m, blockRows), ceil(p, blockCols), min(k, blockDepth)
	parallel(n*down*across, m*k*p/(down*across), func() func(i int) {
		w := &multiplier[T]{dst: dst, a: a, b: b, tile: tileOf[T]()}
		rows, cols := depth*ceil(min(m, blockRows), tileRows)*tileRows, depth*ceil(min(p, blockCols), width[T]())*width[T]()
		line, part := max(depth, min(m, blockRows), min(p, blockCols)), tileRows*width[T]()
		all := make([]T, rows+cols+line+part)
		w.rows, w.cols = all[:rows], all[rows:][:cols]
		w.line, w.part = all[rows+cols:][:line], all[rows+cols+line:]
		return func(i int) { w.block(i/(down*across), i/across%down*blockRows, i%across*blockCols) }
	})
}

func ceil(n, by int) int { return (n + by - 1) / by }

// multiplier is a worker, with its panels of both operands.
type multiplier[T floating] struct {
	dst        []T
	a, b       *Array
	tile       tile[T]
	rows, cols []T
	line, part []T
}

// block makes a block of the i-th matrix, from a row and a column on.
func (w *multiplier[T]) block(i, row, col int) {
	a, b := w.a, w.b
	m, k, p := a.shape[1], a.shape[2], b.shape[2]
	rows, cols, wide := min(blockRows, m-row), min(blockCols, p-col), width[T]()
	for from := 0; from < k; from += blockDepth {
		depth := min(blockDepth, k-from)
		w.panels(w.rows, a, a.off+i*a.strides[0]+row*a.strides[1]+from*a.strides[2], rows, a.strides[1], depth, a.strides[2], tileRows)
		w.panels(w.cols, b, b.off+i*b.strides[0]+from*b.strides[1]+col*b.strides[2], cols, b.strides[2], depth, b.strides[1], wide)
		for y := 0; y < cols; y += wide {
			for x := 0; x < rows; x += tileRows {
				dst := w.dst[(i*m+row+x)*p+col+y:]
				w.add(dst, p, w.rows[x*depth:], w.cols[y*depth:], depth, min(tileRows, rows-x), min(wide, cols-y))
			}
		}
	}
}

// add adds a tile, of which only some rows and columns may be there.
func (w *multiplier[T]) add(dst []T, stride int, a, b []T, depth, rows, cols int) {
	wide := width[T]()
	if rows == tileRows && cols == wide {
		w.tile(&dst[0], stride, &a[0], &b[0], depth)
		return
	}
	part := w.part[:tileRows*wide]
	clear(part)
	w.tile(&part[0], wide, &a[0], &b[0], depth)
	for i := range rows {
		for j, v := range part[i*wide:][:cols] {
			dst[i*stride+j] += v
		}
	}
}

// panels copies a block of a matrix, from the element at on, as panels of some lanes (rows of the left
// operand, columns of the right one), each in order of depth. Lanes that are missing are zero.
func (w *multiplier[T]) panels(dst []T, a *Array, at, lanes, laneStep, depth, depthStep, wide int) {
	if lanes%wide != 0 {
		clear(dst[lanes/wide*wide*depth:][:wide*depth])
	}
	if laneStep == 1 {
		line := w.line[:lanes]
		for d := range depth {
			copyRun(a, line, at+d*depthStep, 1)
			for i := 0; i < lanes; i += wide {
				copy(dst[i*depth+d*wide:], line[i:min(i+wide, lanes)])
			}
		}
		return
	}
	i := 0
	if lying, _ := any(a.f).([]T); lying != nil && depthStep == 1 { // no copy is needed, and two lanes are written at a time
		for ; i+1 < lanes; i += 2 {
			x, y := lying[at+i*laneStep:][:depth], lying[at+(i+1)*laneStep:][:depth]
			panel := dst[i/wide*wide*depth+i%wide:]
			for d, v := range x {
				to := panel[d*wide:][:2]
				to[0], to[1] = v, y[d]
			}
		}
	}
	line := w.line[:depth]
	for ; i < lanes; i++ {
		copyRun(a, line, at+i*laneStep, depthStep)
		panel := dst[i/wide*wide*depth+i%wide:]
		for d, v := range line {
			panel[d*wide] = v
		}
	}
}

// tileGo is tile in plain Go: sums of two rows and four columns at a time stay in registers.
func tileGo[T floating](dst *T, stride int, a, b *T, k int) {
	wide := width[T]()
	to := unsafe.Slice(dst, (tileRows-1)*stride+wide)
	x, y := unsafe.Slice(a, k*tileRows), unsafe.Slice(b, k*wide)
	for i := 0; i < tileRows; i += 2 {
		for j := 0; j < wide; j += 4 {
			var s, t [4]T
			for d := range k {
				x0, x1, z := x[d*tileRows+i], x[d*tileRows+i+1], y[d*wide+j:][:4]
				s[0], s[1], s[2], s[3] = s[0]+x0*z[0], s[1]+x0*z[1], s[2]+x0*z[2], s[3]+x0*z[3]
				t[0], t[1], t[2], t[3] = t[0]+x1*z[0], t[1]+x1*z[1], t[2]+x1*z[2], t[3]+x1*z[3]
			}
			for l := range s {
				to[i*stride+j+l] += s[l]
				to[(i+1)*stride+j+l] += t[l]
			}
		}
	}
}

// parallel runs a function for each i < n, each of some multiply-adds, on all processors. Each worker
// starts with a function of its own. It panics with what one of them panicked with.
func parallel(n, work int, start func() func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers < 2 || n*work < parallelWork {
		f := start()
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	failures := make([]any, workers)
	_ = vec.Each(context.Background(), workers, func(k int) error { // which guards: operands may lie in a file that changes
		defer func() { failures[k] = recover() }()
		f := start()
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			f(i)
		}
		return nil
	})
	for _, f := range failures {
		if f != nil {
			panic(f)
		}
	}
}
