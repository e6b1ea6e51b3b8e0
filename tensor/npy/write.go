package npy

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/goparity/goparity/tensor"
)

// Write writes an array, little-endian and in row-major order, with the same bytes as np.save (with
// ml_dtypes for bfloat16 and the 8-bit floats; of these all but float8_e5m2 can only be read with
// [OpenAs]).
func Write(w io.Writer, t *tensor.Tensor) error {
	shape := make([]string, len(t.Shape()))
	for i, d := range t.Shape() {
		shape[i] = fmt.Sprint(d)
	}
	h := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s",
		descr(t.DType()), strings.Join(shape, ", "))
	if len(shape) == 1 {
		h += ","
	}
	h += "), }"
	if len(shape) > 0 {
		h += strings.Repeat(" ", 21-len(shape[0])) // numpy leaves room for the first axis to grow
	}
	h += strings.Repeat(" ", 64-(10+len(h)+1)%64) + "\n"
	b := binary.LittleEndian.AppendUint16([]byte(magic+"\x01\x00"), uint16(len(h)))
	if _, err := w.Write(append(b, h...)); err != nil {
		return fmt.Errorf("npy: write: %w", err)
	}
	if _, err := t.WriteTo(w); err != nil {
		return fmt.Errorf("npy: write: %w", err)
	}
	return nil
}

func descr(d tensor.DType) string {
	switch d {
	case tensor.Bool, tensor.I8, tensor.U8:
		return "|" + kindOf(d)
	case tensor.F8E4M3FN, tensor.F8E4M3FNUZ, tensor.F8E5M2FNUZ, tensor.F8E8M0FNU:
		return "<V1"
	}
	return "<" + kindOf(d)
}

func kindOf(d tensor.DType) string {
	for kind, k := range dtypes {
		if k == d && kind != "?" {
			return kind
		}
	}
	return ""
}
