package dump

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/tensor"
)

// Printed says how much of a tensor a log shows.
type Printed struct {
	Known    []int // row-major element numbers, in increasing order; all others are zero in the tensor
	Decimals int   // the values are known to half a unit of this decimal; 0: exactly
	Relative bool  // style FULL: Decimals counts those of the mantissa
}

// Whole reports whether every element was printed.
func (p *Printed) Whole(t *tensor.Tensor) bool { return len(p.Known) == t.Len() }

func isLog(path string) bool {
	ext := filepath.Ext(path)
	return ext == ".log" || ext == ".txt"
}

// readLog reads the tensors that MAX or torch printed. A label that appears again belongs to the next step.
func (r *Run) readLog(path string) (entries []Entry, err error) {
	f, err := mapfile.Reader(path, mapfile.MaxLog)
	if err != nil {
		return nil, fmt.Errorf("dump: %w", err)
	}
	records, notes, err := parseLog(path, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	for _, n := range notes {
		r.note(n)
	}
	seen := map[string]int{}
	for _, rec := range records {
		t, err := printedTensor(rec)
		if err != nil {
			return nil, &tensor.FormatError{Format: logFormat, File: path, Offset: -1, Member: rec.Label,
				Err: tensor.ErrUnsupported,
				Msg: fmt.Sprintf("line %d: %v", rec.Line, err)}
		}
		layer, port := label.Split(rec.Label)
		entries = append(entries, Entry{Step: strconv.Itoa(seen[rec.Label]), Layer: layer, Port: port, Tensor: t,
			Printed: &Printed{Known: rec.Index, Decimals: rec.Precision, Relative: rec.style == styleFull}})
		seen[rec.Label]++
	}
	note := filepath.Base(path) + " is a log: numbers were compared to the decimals that it shows"
	if !slices.Contains(r.Notes, note) {
		r.note(note)
	}
	return entries, nil
}

// printedTensor makes a tensor of the printed values. Narrow floats become float32, which rounds
// less than the log does.
func printedTensor(rec record) (*tensor.Tensor, error) {
	n, err := tensor.NumElems(rec.Shape)
	if err != nil {
		return nil, err
	}
	if n > maxPrinted {
		return nil, fmt.Errorf("%s%s has too many elements for a log: dump it to a file",
			rec.DType, tensor.FormatShape(rec.Shape))
	}
	if rec.DType == tensor.Bool {
		v := make([]bool, n)
		for i, at := range rec.Index {
			v[at] = rec.Values[i] != 0
		}
		return tensor.Of(v, rec.Shape...)
	}
	if of := fills[rec.DType]; of != nil {
		return of(rec, n)
	}
	return fill[float32](rec, n)
}

var fills = map[tensor.DType]func(record, int) (*tensor.Tensor, error){
	tensor.F64: fill[float64], tensor.I8: fill[int8], tensor.U8: fill[uint8], tensor.I16: fill[int16], tensor.U16: fill[uint16],
	tensor.I32: fill[int32], tensor.U32: fill[uint32], tensor.I64: fill[int64], tensor.U64: fill[uint64],
}

type number interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | int64 | uint64 | float32 | float64
}

func fill[T number](rec record, n int) (*tensor.Tensor, error) {
	v := make([]T, n)
	for i, at := range rec.Index {
		v[at] = T(rec.Values[i])
	}
	return tensor.Of(v, rec.Shape...)
}
