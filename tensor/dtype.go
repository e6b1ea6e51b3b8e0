package tensor

import (
	"fmt"
	"strings"
)

// DType is the element type of a tensor.
type DType uint8

// The element types that can be read and compared. Complex types are refused by name.
const (
	Invalid    DType = iota
	Bool             // one byte, zero is false
	I8               // two's complement
	U8               //
	I16              //
	U16              //
	I32              //
	U32              //
	I64              //
	U64              //
	F8E4M3FN         // 1-4-3, bias 7, no infinity, 0x7f and 0xff are NaN
	F8E4M3FNUZ       // 1-4-3, bias 8, no infinity, no −0, 0x80 is NaN
	F8E5M2           // 1-5-2, bias 15, IEEE infinities and NaN
	F8E5M2FNUZ       // 1-5-2, bias 16, no infinity, no −0, 0x80 is NaN
	F8E8M0FNU        // 2^(x−127), no sign, no zero, 0xff is NaN
	F16              // IEEE binary16
	BF16             // upper half of binary32
	F32              // IEEE binary32
	F64              // IEEE binary64
	numDTypes
)

// Kind says how elements of a type are compared.
type Kind uint8

// The kinds of element types.
const (
	KindBool Kind = iota
	KindInt
	KindFloat
)

type dtypeInfo struct {
	name, short string
	size        int
	kind        Kind
	signed      bool
	digits      int // significant bits of a float, the implicit one included
}

// The long names are torch's; the short ones are those of safetensors, in lower case.
var dtypes = [numDTypes]dtypeInfo{
	Invalid:    {name: "invalid", short: "invalid"},
	Bool:       {"bool", "bool", 1, KindBool, false, 0},
	I8:         {"int8", "i8", 1, KindInt, true, 0},
	U8:         {"uint8", "u8", 1, KindInt, false, 0},
	I16:        {"int16", "i16", 2, KindInt, true, 0},
	U16:        {"uint16", "u16", 2, KindInt, false, 0},
	I32:        {"int32", "i32", 4, KindInt, true, 0},
	U32:        {"uint32", "u32", 4, KindInt, false, 0},
	I64:        {"int64", "i64", 8, KindInt, true, 0},
	U64:        {"uint64", "u64", 8, KindInt, false, 0},
	F8E4M3FN:   {"float8_e4m3fn", "f8_e4m3", 1, KindFloat, true, 4},
	F8E4M3FNUZ: {"float8_e4m3fnuz", "f8_e4m3fnuz", 1, KindFloat, true, 4},
	F8E5M2:     {"float8_e5m2", "f8_e5m2", 1, KindFloat, true, 3},
	F8E5M2FNUZ: {"float8_e5m2fnuz", "f8_e5m2fnuz", 1, KindFloat, true, 3},
	F8E8M0FNU:  {"float8_e8m0fnu", "f8_e8m0", 1, KindFloat, false, 1},
	F16:        {"float16", "f16", 2, KindFloat, true, 11},
	BF16:       {"bfloat16", "bf16", 2, KindFloat, true, 8},
	F32:        {"float32", "f32", 4, KindFloat, true, 24},
	F64:        {"float64", "f64", 8, KindFloat, true, 53},
}

func (d DType) info() *dtypeInfo {
	if d >= numDTypes {
		d = Invalid
	}
	return &dtypes[d]
}

// String returns torch's name of the type: "float32", "bfloat16", "int64".
func (d DType) String() string { return d.info().name }

// Short returns the name of the type in --raw and in tables: "f32", "bf16", "i64".
func (d DType) Short() string { return d.info().short }

// Size returns the size of an element in bytes.
func (d DType) Size() int { return d.info().size }

// Kind returns whether elements are floats, integers or bools.
func (d DType) Kind() Kind { return d.info().kind }

// IsFloat reports whether elements are floating point numbers.
func (d DType) IsFloat() bool { return d != Invalid && d.info().kind == KindFloat }

// Signed reports whether the type has negative values.
func (d DType) Signed() bool { return d.info().signed }

// Epsilon returns the unit roundoff 2^−p of a float with p significant bits: the largest relative
// error of rounding a number to it, subnormals aside (float32 5.96e-8, bfloat16 3.9e-3). It is 0
// for integers and bools.
func (d DType) Epsilon() float64 {
	e := 1.0
	for range d.info().digits {
		e /= 2
	}
	if e == 1 {
		return 0
	}
	return e
}

// ParseDType returns the type with a long or short name, ignoring case. It also knows torch's
// "half", "float", "double", "int", "long" and the like. The error lists the known names.
func ParseDType(s string) (DType, error) {
	name := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "torch.")
	if d, ok := dtypeAlias[name]; ok {
		return d, nil
	}
	for d := Bool; d < numDTypes; d++ {
		if name == dtypes[d].name || name == dtypes[d].short {
			return d, nil
		}
	}
	if strings.HasPrefix(name, "complex") || name == "c64" || name == "c128" {
		return Invalid, fmt.Errorf("tensor: dtype %q is complex: save real and imaginary parts (torch.view_as_real)", s)
	}
	known := make([]string, 0, numDTypes)
	for d := Bool; d < numDTypes; d++ {
		known = append(known, dtypes[d].short)
	}
	return Invalid, fmt.Errorf("tensor: unknown dtype %q, want one of %s", s, strings.Join(known, " "))
}

var dtypeAlias = map[string]DType{
	"half": F16, "float": F32, "double": F64, "short": I16, "int": I32, "long": I64, "byte": U8, "char": I8,
	"fp16": F16, "fp32": F32, "fp64": F64, "f8_e4m3fn": F8E4M3FN, "f8_e8m0fnu": F8E8M0FNU,
	"si8": I8, "si16": I16, "si32": I32, "si64": I64, "ui8": U8, "ui16": U16, "ui32": U32, "ui64": U64, // MAX's logs
}

// MarshalText returns the long name.
func (d DType) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads any name that ParseDType knows.
func (d *DType) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDType(string(b))
	return err
}
