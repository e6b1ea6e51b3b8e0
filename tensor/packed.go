package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"
	"unsafe"
	"weak"

	"github.com/goparity/goparity/internal/smallfloat"
)

// Packing says how the elements of a tensor follow from bytes that are not its elements, such as
// the blocks of quantised weights. They are computed whenever they are read.
type Packing struct {
	// Name is that of the format: "q4_k".
	Name string
	// Unpack writes the elements from, from+1, … in row-major order to dst, all of which exist.
	// data is Spec.Data. The values are exact in the tensor's type. It is called concurrently.
	Unpack func(dst []float32, data []byte, from int)
	// Grid says what else the elements could be; nil if they have no codes of their own.
	Grid *Grid
}

// Grid says which numbers the codes of a format stand for, so that one can see whether a number was
// rounded to the nearest.
type Grid struct {
	// Ends writes the numbers of the lowest and the highest code, given the scales of each element,
	// as Unpack writes the elements. Where a scale is negative, low is the larger number.
	Ends func(low, high []float32, data []byte, from int)
	// Values are what codes stand for, in order: the grid of an element is Values, stretched so
	// that the first is low and the last is high.
	Values []float32
	// Epsilon is the relative error of the scales by their type.
	Epsilon float64
	// Clip is how far beyond the ends numbers are cut off, in steps of the grid.
	Clip float64
	// Groups says with which others each element of a row shares its scale, where these are not its
	// neighbours: nil.
	Groups []int64
}

// Packing returns how the elements follow from the bytes of the file: "q4_k", or "" if they lie
// there.
func (t *Tensor) Packing() string {
	if t.packed == nil {
		return ""
	}
	return t.packed.Name
}

// Grid returns the grid of a packed tensor that is not a view of parts or other axes, and writes
// the ends for elements from, from+1, …; nil if there is none.
func (t *Tensor) Grid(low, high []float32, from int) *Grid {
	if t.packed == nil || t.packed.Grid == nil || !t.Contiguous() {
		return nil
	}
	t.packed.Grid.Ends(low, high, t.storage(), t.base/t.dtype.Size()+from)
	return t.packed.Grid
}

// packed is the packing of a tensor and its views.
type packed struct {
	Packing
	n int // elements of the whole tensor, of which others are views

	mu   sync.Mutex
	last weak.Pointer[float32] // of all elements, as long as anyone uses them
}

func fromPacking(s Spec, n int) (*Tensor, error) {
	if !s.DType.IsFloat() || s.DType.Size() != 2 && s.DType != F32 {
		return nil, fmt.Errorf("%s: packed elements are floats of 16 or 32 bits", s.DType)
	}
	if s.Strides != nil || s.Offset != 0 || s.BigEndian {
		return nil, fmt.Errorf("%s: packed elements have no strides, offset or byte order", s.Packing.Name)
	}
	return &Tensor{dtype: s.DType, shape: clone(s.Shape), strides: rowMajor(s.Shape), data: s.Data, place: s.Place,
		packed: &packed{Packing: *s.Packing, n: n}}, nil
}

// all returns all elements. They stay in memory as long as the result does.
func (p *packed) all(data []byte) []float32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.last.Value(); v != nil {
		return unsafe.Slice(v, p.n)
	}
	values := make([]float32, p.n)
	p.Unpack(values, data, 0)
	p.last = weak.Make(&values[0])
	return values
}

// unpack is Float32s. Where neighbours in a row of the view are apart in the tensor, all of the
// tensor is unpacked: a block has to be unpacked for each element.
func (t *Tensor) unpack(dst []float32, start int) int {
	data := t.storage()
	var all []float32
	return walk(t, len(dst), start, func(at, from, n, step int) {
		out := dst[at : at+n]
		switch from /= t.dtype.Size(); {
		case step == 1 || n == 1:
			t.packed.Unpack(out, data, from)
		case step == 0:
			t.packed.Unpack(out[:1], data, from)
			for i := range out {
				out[i] = out[0]
			}
		default:
			if all == nil {
				all = t.packed.all(data)
			}
			for i := range out {
				out[i] = all[from+i*step]
			}
		}
	})
}

// unpackPart is how many elements are unpacked at once where they are converted.
const unpackPart = 4096

// unpackAs unpacks at most n elements from start, and gives them to use part by part: at is the
// number of elements before.
func (t *Tensor) unpackAs(n, start int, use func(at int, values []float32)) (done int) {
	buf := make([]float32, min(n, unpackPart))
	for done < n {
		k := t.unpack(buf[:min(len(buf), n-done)], start+done)
		if k == 0 {
			break
		}
		use(done, buf[:k])
		done += k
	}
	return done
}

func (t *Tensor) unpackFloat64s(dst []float64, start int) int {
	return t.unpackAs(len(dst), start, func(at int, values []float32) {
		for i, v := range values {
			dst[at+i] = float64(v)
		}
	})
}

func (t *Tensor) unpackBytes(dst []byte, start int) int {
	size := t.dtype.Size()
	return t.unpackAs(len(dst)/size, start, func(at int, values []float32) {
		for i, v := range values {
			out := dst[(at+i)*size:]
			switch t.dtype {
			case F32:
				binary.LittleEndian.PutUint32(out, math.Float32bits(v))
			case BF16:
				binary.LittleEndian.PutUint16(out, uint16(math.Float32bits(v)>>16))
			default:
				binary.LittleEndian.PutUint16(out, smallfloat.PutF16(v))
			}
		}
	})
}
