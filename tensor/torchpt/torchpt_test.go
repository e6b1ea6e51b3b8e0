package torchpt_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/internal/tensortest"
	"github.com/goparity/goparity/tensor/torchpt"
)

func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

func TestFilesOfTorch(t *testing.T) {
	for name, want := range tensortest.Load(t, "testdata/want.json") {
		t.Run(name, func(t *testing.T) {
			f, err := torchpt.Open(filepath.Join("testdata", name))
			require.NoError(t, err)
			tensortest.Equal(t, want, f)
			require.NoError(t, f.Close())
		})
	}
}

func TestViewsShareTheFile(t *testing.T) {
	data := readTestdata(t, "views.pt")
	f, err := torchpt.Decode("views.pt", data)
	require.NoError(t, err)
	places := map[string]int64{}
	for _, v := range f.Tensors {
		places[v.Name] = v.Place().Offset
	}
	for _, name := range []string{"transposed", "sliced", "offset", "expanded", "scalar", "diagonal", "windows"} {
		assert.Equal(t, places["base"], places[name], name)
	}
	assert.NotEqual(t, places["base"], places["permuted"])

	base, ok := f.Lookup("base")
	require.True(t, ok)
	raw, ok := base.Bytes()
	require.True(t, ok)
	assert.Same(t, &data[places["base"]], &raw[0], "the tensor is a view, not a copy")

	deflated, err := torchpt.Open("testdata/deflated.pt")
	require.NoError(t, err)
	defer deflated.Close()
	assert.EqualValues(t, -1, deflated.Tensors[0].Place().Offset, "inflated bytes are nowhere in the file")
}

func TestRefusedFiles(t *testing.T) {
	rows := []struct {
		file   string
		member string
		class  error
		says   []string
		reason string
	}{
		{"complex", "", tensor.ErrUnsupported, []string{"ComplexFloatStorage", "view_as_real"}, "the error names the type and the way out"},
		{"flat_complex", "", tensor.ErrUnsupported, []string{"ComplexFloatStorage", "view_as_real"},
			"the flat layout also names types in its pickle"},
		{"complex32", "", tensor.ErrUnsupported, []string{"complex32", "view_as_real"},
			"no storage class: the v3 form"},
		{"float4", "", tensor.ErrUnsupported, []string{"float4_e2m1fn_x2"}, "two elements a byte"},
		{"negated", "", tensor.ErrUnsupported, []string{"negated", "resolve_neg()"}, "the bytes have the other sign"},
		{"sparse", "", tensor.ErrUnsupported, []string{"_rebuild_sparse_tensor", "to_dense()"}, "not strided"},
		{"sparse_csr", "", tensor.ErrUnsupported, []string{"_rebuild_sparse", "to_dense()"}, "not strided"},
		{"quantised", "", tensor.ErrUnsupported, []string{"_rebuild_qtensor", "dequantize()"}, "bytes need a scale"},
		{"nested", "", tensor.ErrUnsupported, []string{"_rebuild_nested_tensor", "unbind()"}, "ragged"},
		{"meta", "", tensor.ErrUnsupported, []string{"meta"}, "no values"},
		{"module", "", tensor.ErrUnsupported, []string{"torch.nn.modules.linear.Linear", "state_dict()"},
			"a class would need code"},
		{"return_type", "", tensor.ErrUnsupported, []string{"torch.return_types.max", "tuple(x)"},
			"a named tuple is a class"},
		{"numpy", "", tensor.ErrUnsupported, []string{"numpy", "torch.from_numpy"}, "not a tensor of torch"},
		{"storage", "", tensor.ErrUnsupported, []string{"storage", "save the tensor"}, "it has no dtype and no shape"},
		{"no_tensor", "", tensor.ErrUnsupported, []string{"no tensor", "a dict"},
			"nothing to compare must not look like success"},
		{"set", "s.0", tensor.ErrUnsupported, []string{"set"}, "a set has no order, so no names"},
		{"key", "a tuple of 2", tensor.ErrUnsupported, []string{"key"}, "a tuple is not a name"},
		{"same_name", "a.b", tensor.ErrCorrupt, []string{"two tensors"}, "one would hide the other"},
		{"loop", "", tensor.ErrUnsupported, []string{"contains itself"}, "a walk would not end"},
		{"tuple_loop", "", tensor.ErrUnsupported, []string{"contains itself"},
			"a tuple in its own list: POP and memo"},
		{"script", "refused_script/constants.pkl",
			tensor.ErrUnsupported, []string{"TorchScript", "state_dict()"}, "code"},
	}
	var tested []string
	all := ""
	for _, r := range rows {
		path := "testdata/refused_" + r.file + ".pt"
		tested = append(tested, path)
		f, err := torchpt.Open(path)
		require.Nil(t, f, r.reason)
		var fe *tensor.FormatError
		require.ErrorAs(t, err, &fe)
		assert.ErrorIs(t, err, r.class, r.reason)
		assert.Equal(t, path, fe.File)
		if r.member != "" {
			assert.Equal(t, r.member, fe.Member, r.reason)
		}
		for _, s := range r.says {
			assert.Contains(t, err.Error(), s, r.reason)
		}
		all += err.Error() + "\n"
	}
	tensortest.Said(t, all)
	files, err := filepath.Glob("testdata/refused_*.pt")
	require.NoError(t, err)
	assert.ElementsMatch(t, files, tested, "each refused file has a row")
}

// allFiles returns the names of the .pt files in testdata.
func allFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.pt")
	require.NoError(t, err)
	require.Greater(t, len(files), 30)
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return files
}

func TestDamage(t *testing.T) {
	for _, name := range []string{"views.pt", "deflated.pt", "flat.pt", "flat_protocol4.pt"} {
		tensortest.Truncated(t, torchpt.Decode, readTestdata(t, name))
	}
	for name, cut := range map[string]int{"views.pt": 2000, "flat.pt": 3000} {
		_, err := torchpt.Decode(name, readTestdata(t, name)[:cut])
		require.ErrorIs(t, err, tensor.ErrTruncated, "the plain case is a truncated file")
	}
	for _, name := range []string{"refused_tuple_loop.pt", "deflated.pt", "flat_views.pt"} {
		data := readTestdata(t, name)
		tensortest.Flipped(t, torchpt.Decode, data, 0, len(data))
	}
}
