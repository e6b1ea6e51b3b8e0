package program_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/program"
	"github.com/goparity/goparity/tensor"
	"github.com/goparity/goparity/tensor/safetensors"
)

// small is a whole program: y = w · x, then two labels of one value, and what a call was given.
const small = `{"schema":1,"engine":"torch 2.15.0","case":"short",
"frames":[["modeling_x.py",312,8,34,"w * x"]],"stacks":[[0]],
"modules":{"model":["Model","modeling_x.py",300]},"aliases":{"b":"w"},
"values":[
{"id":0,"shape":[2],"dtype":"float32","from":{"weight":"w"}},
{"id":1,"shape":[2],"dtype":"float32","from":{"input":"x","step":"0"}},
{"id":2,"shape":[2],"dtype":"float32","from":{"op":0}},
{"id":3,"shape":[2],"dtype":"complex64","from":{"constant":"sha256:1"}},
{"id":4,"shape":[],"dtype":"int64","from":{"data":"AQAAAAAAAAA="}},
{"id":5,"shape":[2],"dtype":"float32","from":{"op":1}}],
"ops":[
{"op":"aten.mul.Tensor","args":{"self":"%0","other":"%1"},"out":["%2"],"layer":"model.a","call":1,"stack":0},
{"op":"aten.thing.default","args":{"zed":"%2","list":["%0",null],"n":12,"f":0.5,"one":{"float":"1.0"},"inf":{"float":"-inf"},"dims":[0,-1],"fs":[0.5,1],"bs":[true],"is":false,"none":null,"dtype":"float32","none_of":[]},"out":["%5",null],"layer":"model","call":2}],
"passes":[{"step":"0","ops":[0,2],"ports":{"model.b-input_0":["%2",1,2],"model.a-output":["%2",1,1],"model.a-tap":["%2",1,1],"model-output.0":["%5",2,2]}}],
"guards":[{"value":"%2","equal":[3,{"float":"4.0"}],"ops":[1,2]}]}`

func parse(text string) (*program.Program, error) {
	return program.Parse("program.json", []byte(text), nil)
}

func TestParse(t *testing.T) {
	p, err := parse(small)
	require.NoError(t, err)
	assert.Equal(t, "torch 2.15.0", p.Engine)
	assert.Equal(t, program.Frame{File: "modeling_x.py", Line: 312, Text: "w * x"}, p.Frames[0])
	assert.Equal(t, program.Module{Class: "Model", File: "modeling_x.py", Line: 300}, p.Modules["model"])
	assert.Equal(t, "w", p.Aliases["b"])
	assert.Equal(t, "0:x", p.Values[1].Input)
	assert.Equal(t, tensor.Invalid, p.Values[3].DType, "no arithmetic of complex numbers")
	assert.Equal(t, "complex64", p.Values[3].Type)
	assert.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0}, p.Values[4].Data)
	assert.Equal(t, []program.Guard{{Value: 2, Equal: []float64{3, 4}, First: 1, End: 2}}, p.Guards)
	o := p.Ops[1]
	assert.Equal(t, "thing", o.Name)
	assert.Equal(t, -1, o.Stack)
	assert.Equal(t, []program.ID{5, program.None}, o.Out)
	assert.Equal(t, program.Args{{"zed", program.ID(2)}, {"list", []program.ID{0, program.None}}, {"n", 12}, {"f", 0.5}, {"one", 1.0},
		{"inf", o.Args.Get("inf")}, {"dims", []int{0, -1}}, {"fs", []float64{0.5, 1}}, {"bs", []bool{true}}, {"is", false}, {"none", nil},
		{"dtype", "float32"}, {"none_of", []int{}}}, o.Args, "in the order of the file, with their types")
	var labels []string
	for _, q := range p.Ports {
		labels = append(labels, q.Layer+" "+q.Name)
	}
	assert.Equal(t, []string{"model.a output", "model.a tap", "model.b input_0", "model output.0"}, labels,
		"by time, outputs first, then in the order of the file")
	assert.Equal(t, 0, p.Maker(2))
	assert.Equal(t, []int{0, 1, 2}, p.Records(2))
}

func TestRefused(t *testing.T) {
	for _, r := range []struct{ old, new, want, reason string }{
		{small, `{"schema":2}`, "schema 2", "a later schema"},
		{small, `{}`, "schema 0", "another file"},
		{small, small[:len(small)/2], "program.json: not JSON at byte", "a cut file"},
		{small, `[1]`, "cannot unmarshal array", "a foreign file"},
		{`"id":1`, `"id":7`, "values[1].id: 7, want 1", "ids that jump"},
		{`"shape":[2],"dtype":"float32","from":{"weight"`, `"shape":[-2],"dtype":"float32","from":{"weight"`, "values[0]: shape [-2] has a negative size", "a negative size"},
		{`"shape":[2],"dtype":"float32","from":{"weight"`, `"shape":[4294967296,4294967296],"dtype":"float32","from":{"weight"`, "values[0]: shape", "a number of elements that overflows"},
		{`"shape":[2],"dtype":"float32","from":{"weight"`, `"shape":[1000000000000],"dtype":"float32","from":{"weight"`, "more than 68719476736 elements", "a huge weight"},
		{`"AQAAAAAAAAA="`, `"AQAA"`, "values[4]: from.data has 3 bytes, want 8 of int64[]", "a constant of another size"},
		{`"AQAAAAAAAAA="`, `"?"`, "illegal base64", "a constant that is no base64"},
		{`"weight":"w"`, `"weight":"w","constant":"c"`, "values[0]: from has 2 sources", "two sources"},
		{`{"weight":"w"}`, `{}`, "takes %0, which is not made before", "a value from nowhere"},
		{`{"self":"%0","other":"%1"}`, `{"self":"%5","other":"%1"}`, "ops[0] (aten.mul.Tensor): takes %5, which is not made before", "a cycle"},
		{`{"self":"%0","other":"%1"}`, `{"self":"%6","other":"%1"}`, "takes %6 of 6 values", "an unknown value"},
		{`{"self":"%0","other":"%1"}`, `{"self":"%-1","other":"%1"}`, `"%-1" is no value`, "a negative value"},
		{`"out":["%5",null]`, `"out":["%2"]`, "ops[1] (aten.thing.default): makes %2, which is made before", "two makers"},
		{`"out":["%5",null]`, `"out":["%0"]`, "makes %0, which is made before", "a weight that is made"},
		{`"out":["%5",null]`, `"out":["%6"]`, "makes %6 of 6 values", "an unknown result"},
		{`"out":["%5",null]`, `"out":[5]`, "is no value", "a result that is a number"},
		{`"out":["%5",null]`, `"out":[null]`, "values[5] is made by no operator", "a value without a maker"},
		{`"from":{"op":1}`, `"from":{"op":0}`, "values[5].from: operator 0 does not make it", "another maker than said"},
		{`"stack":0}`, `"stack":1}`, "stack 1 of 1", "an unknown stack"},
		{`"stacks":[[0]]`, `"stacks":[[1]]`, "stacks[0]: frame 1 of 1", "an unknown frame"},
		{`312,8,34,`, `312,8,`, "frames: 4 elements, want 5", "a frame that is cut"},
		{`["%2",1,2]`, `["%2",1]`, `passes.ports: "model.b-input_0": 2 elements, want 3`, "a port that is cut"},
		{`["%2",1,2]`, `["%6",1,2]`, "port model.b-input_0 of step 0: %6 of 6 values", "a port of an unknown value"},
		{`["%2",1,2]`, `["%2",1,9]`, "operators [1, 9] of 2", "a port after the end"},
		{`["%2",1,2]`, `["%2",0,2]`, "before operator 0 makes %2", "a port before its value"},
		{`["%2",1,2]`, `["%2",2,1]`, "operators [2, 1] of 2", "a call that ends before it begins"},
		{`"model.a-tap"`, `"model.a-output"`, `passes[0].ports: "model.a-output" twice`, "one label twice"},
		{`"ops":[0,2],"ports"`, `"ops":[0,3],"ports"`, "passes[0]: operators [0, 3] of 2", "a pass after the end"},
		{`"value":"%2","equal"`, `"value":"%6","equal"`, "guards[0]: %6 of 6 values", "a guard of an unknown value"},
		{`"ops":[1,2]}]`, `"ops":[0,2]}]`, "guards[0]: at operator 0, before operator 0 makes %2", "a guard before its value"},
		{`"ops":[1,2]}]`, `"ops":[1,3]}]`, "guards[0]: operators [1, 3] of 2", "a guard after the end"},
		{`"equal":[3,`, `"equal":["a",`, "guards[0].equal: ", "a guard of no numbers"},
		{`{"float":"-inf"}`, `{"float":"x"}`, `ops.args: "inf"`, "a float that is none"},
	} {
		text := strings.Replace(small, r.old, r.new, 1)
		require.NotEqual(t, small, text, r.reason)
		_, err := parse(text)
		assert.ErrorContains(t, err, r.want, r.reason)
		assert.ErrorContains(t, err, "program.json", r.reason)
	}
}

func TestConstant(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "short.json"), []byte(small), 0o600))
	p, err := program.Read(filepath.Join(folder, "short.json"))
	require.NoError(t, err)
	_, err = p.Constant("c")
	require.ErrorContains(t, err, "short.json", "the file beside it is not there")

	x, err := tensor.Of([]float32{1, 2}, 2)
	require.NoError(t, err)
	f, err := os.Create(filepath.Join(folder, "short.safetensors"))
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(f, []tensor.Named{{Name: "input:0:x", Tensor: x}}, nil))
	require.NoError(t, f.Close())
	p, err = program.Read(filepath.Join(folder, "short.json"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, p.Close()) }()
	got, err := p.Constant("input:0:x")
	require.NoError(t, err)
	assert.Equal(t, 2.0, got.At(1))
	_, err = p.Constant("other")
	assert.ErrorContains(t, err, `constant "other"`)

	p, err = program.Parse("short.json", []byte(small), func() (*tensor.File, error) { return nil, errors.New("gone") })
	require.NoError(t, err)
	_, err = p.Constant("c")
	assert.ErrorContains(t, err, "gone")
}

// FuzzRead reads any bytes: an error, or a program of which every port's piece can be cut.
func FuzzRead(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(`{"schema":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := program.Parse("program.json", data, nil)
		if err != nil {
			return
		}
		for i := range p.Ports {
			piece := p.Piece(i, func(port int) bool { return port%2 == 0 })
			require.Less(t, int(piece.Out), len(piece.Values))
			require.NoError(t, piece.Check())
		}
	})
}

func TestPortsOfModules(t *testing.T) {
	for _, tt := range []struct{ label, layer, port, reason string }{
		{"model-key_cache", "model", "key_cache", "of a module, though no hook calls a port so"},
		{"model(2)-key_cache", "model(2)", "key_cache", "of its second call"},
		{"a-key_cache", "a-key_cache", "tap", "a tap: there is no module of that name"},
		{"model-tap", "model", "tap", "a tap with the name of a module"},
	} {
		p, err := parse(strings.Replace(small, "model.a-tap", tt.label, 1))
		require.NoError(t, err, tt.reason)
		found := false
		for _, q := range p.Ports {
			found = found || q.Layer == tt.layer && q.Name == tt.port
		}
		assert.True(t, found, tt.reason)
	}
}
