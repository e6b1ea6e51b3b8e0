package tensor_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
)

var allDTypes = []tensor.DType{tensor.Bool, tensor.I8, tensor.U8, tensor.I16, tensor.U16, tensor.I32, tensor.U32,
	tensor.I64, tensor.U64,
	tensor.F8E4M3FN, tensor.F8E4M3FNUZ, tensor.F8E5M2, tensor.F8E5M2FNUZ, tensor.F8E8M0FNU, tensor.F16, tensor.BF16,
	tensor.F32, tensor.F64}

// torchTables is testdata/dtypes.json, which generate.py there writes.
type torchTables struct {
	Values map[tensor.DType]string
	SHA256 map[tensor.DType]string
	Finfo  map[tensor.DType]struct{ Roundoff float64 }
}

func tables(t *testing.T) torchTables {
	t.Helper()
	data, err := os.ReadFile("testdata/dtypes.json")
	require.NoError(t, err)
	var all torchTables
	require.NoError(t, json.Unmarshal(data, &all))
	require.Len(t, all.Values, 5)
	require.Len(t, all.SHA256, 2)
	return all
}

// codes decodes all bit patterns of a small type to float64. NaN has one form.
func codes(t *testing.T, d tensor.DType) []byte {
	t.Helper()
	n := 1 << (8 * d.Size())
	var data []byte
	for i := range n {
		data = binary.LittleEndian.AppendUint16(data, uint16(i))
		data = data[:(i+1)*d.Size()]
	}
	x, err := tensor.New(d, []int{n}, data)
	require.NoError(t, err)
	values := make([]float64, n)
	require.Equal(t, n, x.Float64s(values, 0))
	var out []byte
	for _, v := range values {
		bits := math.Float64bits(v)
		if math.IsNaN(v) {
			bits = 0x7ff8000000000000
		}
		out = binary.LittleEndian.AppendUint64(out, bits)
	}
	return out
}

func TestSmallFloatsAreTorchs(t *testing.T) {
	all := tables(t)
	for d, want := range all.Values {
		require.Equal(t, want, hex.EncodeToString(codes(t, d)), "%s: eight bytes of each code", d)
	}
	for d, want := range all.SHA256 {
		sum := sha256.Sum256(codes(t, d))
		require.Equal(t, want, hex.EncodeToString(sum[:]), d)
	}
}

func TestEpsilonIsHalfOfTorchs(t *testing.T) {
	all := tables(t)
	for _, d := range allDTypes {
		if d.IsFloat() {
			assert.Equal(t, all.Finfo[d].Roundoff, d.Epsilon(), d)
		} else {
			assert.Zero(t, d.Epsilon(), d)
		}
	}
	assert.Zero(t, tensor.Invalid.Epsilon())
}

// The name of a type has its size.
func TestSizesAreThoseOfTheNames(t *testing.T) {
	for d := tensor.I8; d <= tensor.F64; d++ {
		bits := regexp.MustCompile(`\d+`).FindString(d.String())
		assert.Equal(t, bits, strconv.Itoa(8*d.Size()), d)
		assert.Equal(t, !strings.Contains(d.String(), "int"), d.IsFloat(), d)
		assert.Equal(t, !strings.HasPrefix(d.String(), "uint") && d != tensor.F8E8M0FNU, d.Signed(), d)
	}
	assert.Equal(t, 1, tensor.Bool.Size())
}

// The names of each type, and its JSON, are read again; what its elements are the tests of their values tell.
func TestNamesAreRead(t *testing.T) {
	for _, d := range allDTypes {
		for _, name := range []string{d.String(), d.Short(), "torch." + d.String()} {
			got, err := tensor.ParseDType(name)
			require.NoError(t, err)
			assert.Equal(t, d, got, name)
		}
		text, err := json.Marshal(d)
		require.NoError(t, err)
		var back tensor.DType
		require.NoError(t, json.Unmarshal(text, &back))
		assert.Equal(t, d, back)
	}
	assert.False(t, tensor.Invalid.IsFloat())
	assert.Equal(t, "invalid", tensor.DType(200).String(), "a number beyond the table")
	assert.Zero(t, tensor.DType(200).Size())
}

func TestParseDType(t *testing.T) {
	rows := []struct {
		name   string
		want   tensor.DType
		says   string
		reason string
	}{
		{"half", tensor.F16, "", "torch's alias"},
		{"FLOAT", tensor.F32, "", "case does not matter"},
		{" long ", tensor.I64, "", "spaces neither"},
		{"si32", tensor.I32, "", "MAX's logs"},
		{"f8_e4m3fn", tensor.F8E4M3FN, "", "both short forms are in use"},
		{"F8_E8M0", tensor.F8E8M0FNU, "", "safetensors"},
		{"complex64", 0, "view_as_real", "the way out"},
		{"c128", 0, "complex", ""},
		{"invalid", 0, "unknown dtype", "the zero value is not a type"},
		{"", 0, "unknown dtype", ""},
		{"f31", 0, "f32", "the error lists what is known"},
	}
	for _, r := range rows {
		d, err := tensor.ParseDType(r.name)
		assert.Equal(t, r.want, d, r.name)
		if r.says == "" {
			require.NoError(t, err, r.reason)
		} else {
			require.ErrorContains(t, err, r.says, r.reason)
		}
	}
	var d tensor.DType
	require.Error(t, d.UnmarshalText([]byte("float31")))
}
