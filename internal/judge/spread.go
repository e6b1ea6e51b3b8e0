package judge

import (
	"encoding/binary"
	"slices"

	"github.com/goparity/goparity/internal/layout"
	"github.com/goparity/goparity/tensor"
)

// spread puts what the candidate has of a golden tensor, whatever view of that it is, into the golden's
// own shape. pad tells the lines along the last axis that it has not. ok is false where it has lines in
// part.
func spread(own *tensor.Tensor, v layout.View, mask []bool, actual *tensor.Tensor) (f frame, ok bool) {
	index := make([]byte, 8*own.Len())
	for i := range own.Len() {
		binary.LittleEndian.PutUint64(index[8*i:], uint64(i))
	}
	at, err := tensor.New(tensor.I64, own.Shape(), index)
	if err == nil {
		at, err = v.Apply(at)
	}
	if err == nil {
		at, err = masked(at, mask)
	}
	if err != nil || at.Len() != actual.Len() || actual.Len() == 0 {
		return f, false
	}
	size := actual.DType().Size()
	from, _ := actual.Copy().Bytes()
	to, has := make([]byte, size*own.Len()), make([]bool, own.Len())
	for i := range at.Len() {
		k := int(at.At(i))
		copy(to[k*size:], from[i*size:(i+1)*size])
		has[k] = true
	}
	n := max(own.RowLen(), 1)
	for line := range slices.Chunk(has, n) {
		if slices.Contains(line, true) && slices.Contains(line, false) {
			return f, false
		}
		f.pad = append(f.pad, !line[0])
	}
	f.golden = own
	f.actual, err = tensor.New(actual.DType(), own.Shape(), to)
	return f, err == nil
}
