package checkpoint_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/checkpoint"
	"github.com/goparity/goparity/internal/toy"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// load opens the checkpoint of a folder of testdata.
func load(t *testing.T, folder string) ([]tensor.Named, *checkpoint.Quantisation) {
	t.Helper()
	config, err := checkpoint.ReadQuantisation(filepath.Join("testdata", "quantised", folder))
	require.NoError(t, err)
	return open(t, folder, "model"), config
}

func open(t *testing.T, folder, file string) []tensor.Named {
	t.Helper()
	f, err := safetensors.Open(filepath.Join("testdata", "quantised", folder, file+".safetensors"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f.Tensors
}

var folders = []string{"awq", "awq_gemv", "fp4", "fp8_block", "gptoss", "gptq", "gptq_config", "gptq_v2", "mlx", "mlx_float", "packed",
	"packed_zero", "scaled"}

// TestJoin dequantises each format as its own program does, bit for bit.
func TestJoin(t *testing.T) {
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			parts, config := load(t, folder)
			got, notes, err := checkpoint.Join(parts, config, nil)
			require.NoError(t, err)
			assert.Empty(t, notes)
			want := open(t, folder, "want")
			require.Len(t, got, len(want))
			byName := map[string]*tensor.Tensor{}
			for _, x := range got {
				byName[x.Name] = x.Tensor
			}
			for _, w := range want {
				require.Contains(t, byName, w.Name)
				sameBits(t, w, byName[w.Name])
			}
		})
	}
}

// Experts in one tensor are those of each by itself.
func TestExperts(t *testing.T) {
	parts, config := load(t, "packed")
	byName := map[string]*tensor.Tensor{}
	for _, p := range parts {
		byName[p.Name] = p.Tensor
	}
	one, _, err := checkpoint.Join(parts, config, nil)
	require.NoError(t, err)
	stacked := func(part string) tensor.Named {
		x, err := byName["sym4."+part].Reshape(append([]int{1}, byName["sym4."+part].Shape()...)...)
		require.NoError(t, err)
		x, err = tensor.Concat(0, x, x)
		require.NoError(t, err)
		return tensor.Named{Name: "experts." + part, Tensor: x}
	}
	shape, err := tensor.Of([]int64{2, 20, 192}, 3)
	require.NoError(t, err)
	got, _, err := checkpoint.Join([]tensor.Named{stacked("weight_packed"), stacked("weight_scale"), {Name: "experts.weight_shape", Tensor: shape}}, config, nil)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, []int{2, 20, 192}, got[0].Shape())
	w := one[slices.IndexFunc(one, func(n tensor.Named) bool { return n.Name == "sym4.weight" })]
	for i := range got[0].Len() {
		require.Equal(t, w.At(i%w.Len()), got[0].At(i))
	}
	wrong, err := tensor.Of([]int64{2, 21, 192}, 3)
	require.NoError(t, err)
	_, _, err = checkpoint.Join([]tensor.Named{stacked("weight_packed"), stacked("weight_scale"), {Name: "experts.weight_shape", Tensor: wrong}}, config, nil)
	assert.ErrorContains(t, err, "it says [2 21 192]")
}

func sameBits(t *testing.T, want tensor.Named, got *tensor.Tensor) {
	t.Helper()
	require.Equal(t, want.String(), got.String(), want.Name)
	w, g := make([]float64, want.Len()), make([]float64, got.Len())
	want.Float64s(w, 0)
	got.Float64s(g, 0)
	for i := range w {
		if math.Float64bits(w[i]) != math.Float64bits(g[i]) {
			require.Failf(t, want.Name, "element %d is %v, want %v", i, g[i], w[i])
		}
	}
	from := min(37, len(g))
	part := make([]float64, len(g)-from)
	got.Float64s(part, from)
	for i, v := range part {
		if math.Float64bits(v) != math.Float64bits(g[from+i]) {
			require.Failf(t, want.Name, "element %d is %v when it is read from %d on", from+i, v, from)
		}
	}
}

// TestMissing leaves out each part of each weight: it is named, or the rest is no quantised weight. One that is in another
// file is no fault, and what is here stays as it is.
func TestMissing(t *testing.T) {
	// What is left without them is read another way, or says nothing of them.
	optional := []string{".bias", ".input_scale", "_global_scale", "model.norm.weight", "_bias", "ordered.weight_g_idx",
		"int8.weight_zero_point"}
	all := ""
	for _, folder := range folders {
		parts, config := load(t, folder)
		for i, gone := range parts {
			rest := append(append([]tensor.Named{}, parts[:i]...), parts[i+1:]...)
			_, _, err := checkpoint.Join(rest, config, nil)
			if err == nil {
				known := false
				for _, end := range optional {
					known = known || strings.HasSuffix(gone.Name, end)
				}
				assert.True(t, known, "%s without %s", folder, gone.Name)
				continue
			}
			var fe *tensor.FormatError
			require.ErrorAs(t, err, &fe)
			base := gone.Name[:max(strings.LastIndex(gone.Name, "."), 0)]
			assert.Contains(t, fe.Error(), base, "%s without %s", folder, gone.Name)
			all += fmt.Sprintf("%s without %s: %v\n", folder, gone.Name, err)
			got, notes, err := checkpoint.Join(rest, config, func(name string) bool { return name == gone.Name })
			all += fmt.Sprintf("  in another file: %d of %d, %q, %v\n", len(got), len(rest), notes, err)
		}
	}
	said(t, all)
}

// said compares all that a test says with testdata/TEST.want.
func said(t *testing.T, text string) {
	t.Helper()
	toy.Kept(t, t.Name()+".want", strings.ReplaceAll(text, "testdata"+string(filepath.Separator), "testdata/"))
}

// TestErrors changes parts and config.
func TestErrors(t *testing.T) {
	all, dir := "", t.TempDir()
	for _, r := range []struct {
		folder, config string // config "": that of the folder
		part           string // that is made a tensor of ones, "" for none
		dtype          tensor.DType
		shape          []int
		reason         string
	}{
		{"awq", `{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64}}`, "", 0, nil, "another group size"},
		{"awq", `{"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "exllama"}}`, "", 0, nil,
			"another layout"},
		{"awq", `{"quantization_config": {"quant_method": "aqlm"}}`, "", 0, nil, "another method"},
		{"gptq_config", `{"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 32}}`, "", 0, nil,
			"another group size"},
		{"gptq_config", `{"quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": 64}}`, "", 0, nil,
			"another number of bits"},
		{"gptq_config", "", "l.g_idx", tensor.I32, []int{64}, "too short"},
		{"gptq_config", "", "l.qzeros", tensor.F32, []int{2, 4}, "an odd type"},
		{"gptq_config", "", "l.scales", tensor.I32, []int{2, 32}, "an odd type"},
		{"mlx", `{"quantization": {"group_size": 32, "bits": 4}}`, "", 0, nil, "nothing is said of the modules"},
		{"mlx", `{"quantization": {"bits": 4}}`, "", 0, nil, "nor of the groups"},
		{"mlx", "{}", "", 0, nil, "several fit"},
		{"mlx", "", "model.b4g64bfloat16.scales", tensor.I32, []int{2, 2}, "an odd type"},
		{"mlx", "", "model.b4g64bfloat16.biases", tensor.F32, []int{2, 2}, "another type"},
		{"mlx", "", "model.b4g64bfloat16.weight", tensor.F32, []int{2, 16}, "not quantised"},
		{"fp8_block", `{"quantization_config": {"quant_method": "fp8", "weight_block_size": [64, 64]}}`, "", 0, nil, "another block size"},
		{"fp8_block", "", "l.weight_scale_inv", tensor.F32, []int{1, 1}, "lost blocks"},
		{"fp8_block", "", "l.weight_scale_inv", tensor.F32, []int{3, 2}, "too many"},
		{"scaled", "", "row.weight_scale", tensor.F32, []int{17}, "one too many"},
		{"fp4", "", "ct.weight_scale", tensor.F8E4M3FN, []int{6, 3}, "too few"},
		{"fp4", "", "ct.weight_global_scale", tensor.F32, []int{2}, "two"},
		{"packed", "", "sym4.weight_shape", tensor.I64, []int{3}, "an axis more"},
		{"packed", "", "sym4.weight_shape", tensor.F32, []int{2}, "of floats"},
		{"packed", "", "sym4.weight_shape", tensor.I64, []int{2}, "of another weight"},
		{"packed", "", "sym4.weight_scale", tensor.BF16, []int{20, 5}, "no group size"},
		{"packed", `{"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": ` +
			`{"num_bits": 4, "group_size": 128, "strategy": "group"}}}}}`, "", 0, nil,
			"another group size"},
		{"gptoss", "", "experts.gate_up_proj_scales", tensor.U8, []int{2, 6, 2}, "too few"},
		{"gptoss", "", "experts.gate_up_proj_blocks", tensor.U8, []int{2, 6, 3, 8}, "too narrow"},
	} {
		name := r.folder + ", " + r.reason
		say := func(err error) {
			all += name + ": " + strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "") + "\n"
		}
		parts, config := load(t, r.folder)
		if r.config != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(r.config), 0o600))
			var err error
			if config, err = checkpoint.ReadQuantisation(dir); err != nil {
				say(err)
				continue
			}
		}
		changed := append([]tensor.Named{}, parts...)
		for i := range changed {
			if changed[i].Name == r.part {
				changed[i].Tensor = ones(t, r.dtype, r.shape)
			}
		}
		_, _, err := checkpoint.Join(changed, config, nil)
		var fe *tensor.FormatError
		require.ErrorAs(t, err, &fe, name)
		say(err)
	}
	said(t, all)
}

func ones(t *testing.T, d tensor.DType, shape []int) *tensor.Tensor {
	t.Helper()
	n, err := tensor.NumBytes(d, shape)
	require.NoError(t, err)
	data := make([]byte, n)
	for i := 0; i < n; i += d.Size() {
		data[i] = 1
	}
	x, err := tensor.New(d, shape, data)
	require.NoError(t, err)
	return x
}

// TestPlain leaves checkpoints alone that are not quantised.
func TestPlain(t *testing.T) {
	for _, r := range []struct {
		name   string
		dtype  tensor.DType
		reason string
	}{
		{"a.weight", tensor.F32, "a weight"},
		{"a.weight", tensor.F8E4M3FN, "8-bit floats without scales"},
		{"a.weight", tensor.U32, "whole numbers"},
		{"scales", tensor.F32, "a parameter of that name"},
		{"x_scales", tensor.F32, "a parameter of that name"},
		{"a.b-output.0", tensor.F32, "a recorded tensor"},
	} {
		x := []tensor.Named{{Name: r.name, Tensor: ones(t, r.dtype, []int{2, 4})}}
		got, notes, err := checkpoint.Join(x, nil, nil)
		require.NoError(t, err, r.reason)
		assert.Equal(t, x, got, r.reason)
		assert.Empty(t, notes)
	}
}

// BenchmarkAffine dequantises MLX's codes, 2^16 of them.
func BenchmarkAffine(b *testing.B) {
	const rows, columns, group = 16, 4096, 64
	for _, bits := range []int{2, 3, 4, 8} {
		for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16} {
			b.Run(fmt.Sprint(bits, "bits-", d.Short()), func(b *testing.B) {
				part := func(name string, d tensor.DType, columns int) tensor.Named {
					data := make([]byte, rows*columns*d.Size())
					for i := range data {
						data[i] = byte(i * 7 & 0x3b) // no NaN
					}
					x, err := tensor.New(d, []int{rows, columns}, data)
					require.NoError(b, err)
					return tensor.Named{Name: name, Tensor: x}
				}
				dir := b.TempDir()
				config := fmt.Sprintf(`{"quantization": {"bits": %d, "group_size": %d}}`, bits, group)
				require.NoError(b, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600))
				w, _, err := checkpoint.Dequantise(dir, "", []tensor.Named{part("weight", tensor.U32, columns*bits/32),
					part("scales", d, columns/group), part("biases", d, columns/group)})
				require.NoError(b, err)
				dst := make([]float32, rows*columns)
				b.SetBytes(4 * rows * columns)
				for b.Loop() {
					w[0].Float32s(dst, 0)
				}
			})
		}
	}
}

// What a config exempts is what its writers exempt: everything else has to have its scales.
func TestIgnoring(t *testing.T) {
	for _, tt := range []struct {
		entry, module string
		want          bool
		reason        string
	}{
		{`re:.*mlp.gate$`, "model.layers.0.mlp.gate", true, "a router"},
		{`re:.*mlp.gate$`, "model.layers.0.mlp.gate_proj", false, "no matrix whose name begins so"},
		{`re:.*\.layers\.\d+\.self_attn.*`, "model.layers.11.self_attn.q_proj", true, "a class of characters"},
		{`re:.*\.layers\.\d+\.self_attn.*`, "model.layers.11.mlp.up_proj", false, "another module"},
		{`re:visual`, "visual.blocks.0.attn", true, "from the beginning"},
		{`re:visual`, "model.visual.blocks.0.attn", false, "and from there only"},
		{`re:(?!model).*`, "model.layers.0", true, "what Go cannot read asks nothing"},
		{"lm_head", "lm_head", true, "a name"},
		{"lm_head", "model.lm_head", true, "with another prefix"},
		{"model.layers.1", "model.layers.1.mlp.up_proj", true, "what is inside"},
		{"model.layers.1", "model.layers.10.mlp.up_proj", false, "a longer number"},
		{"gate", "model.layers.0.mlp.gate_proj", false, "a part of a segment"},
		{"gate", "model.layers.0.mlp.gate", true, "a segment"},
		{"*lm_head*", "model.lm_head", true, "a pattern of ModelOpt"},
		{"model.layers.0*", "model.layers.0.mlp.up_proj", true, "a pattern with a beginning"},
		{"*router*", "model.layers.0.mlp.up_proj", false, "another one"},
		{"", "lm_head", false, "nothing"},
	} {
		assert.Equal(t, tt.want, checkpoint.Ignoring(tt.entry)(tt.module), "%s: %s beside %s", tt.reason, tt.entry, tt.module)
	}
}

// Whatever the header and config.json say, there is an error that names the tensor, or all elements
// can be read.
func FuzzJoin(f *testing.F) {
	for _, folder := range folders {
		data, err := os.ReadFile(filepath.Join("testdata", "quantised", folder, "model.safetensors"))
		require.NoError(f, err)
		config, err := os.ReadFile(filepath.Join("testdata", "quantised", folder, "config.json"))
		if err != nil {
			config = []byte("{}")
		}
		f.Add(data, config)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data, text []byte) {
		file, err := safetensors.Decode("x.safetensors", data)
		if err != nil {
			return
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600))
		config, err := checkpoint.ReadQuantisation(dir)
		if err != nil {
			config = nil
		}
		got, _, err := checkpoint.Join(file.Tensors, config, nil)
		if err != nil {
			var fe *tensor.FormatError
			require.ErrorAs(t, err, &fe)
			return
		}
		for _, x := range got {
			buf := make([]float64, min(x.Len(), 1<<16))
			require.Equal(t, len(buf), x.Float64s(buf, 0))
		}
	})
}
