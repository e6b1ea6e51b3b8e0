package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/engine"
)

// tools returns a driver for a machine on which the programs in out are installed and print its
// values.
func tools(out map[string]string, fail error) engine.Tools {
	return func(_ context.Context, name string, _ ...string) ([]byte, error) {
		text, ok := out[name]
		if !ok {
			return nil, &exec.Error{Name: name, Err: exec.ErrNotFound}
		}
		return []byte(text), fail
	}
}

func TestPick(t *testing.T) {
	const rocm = `{"card0": {"Card Series": "MI300X",
		"VRAM Total Memory (B)": "1073741824", "VRAM Total Used Memory (B)": "1048576"},
		"system": {"Driver version": "6.8"}}`
	for _, tt := range []struct {
		name, want string
		driver     engine.Tools
		text       string
		reason     string
	}{
		{"none", "", tools(nil, nil), "-parity.run=cpu", "a machine without any driver"},
		{"one", "NVIDIA NVIDIA H200, driver 570.1, 143000 of 143771 MiB free",
			tools(map[string]string{"nvidia-smi": "NVIDIA H200, 570.1, 143771, 143000, 0, GPU-1\n"}, nil), "",
			"one free GPU"},
		{"two", "NVIDIA B, driver 1, 90 of 100 MiB free",
			tools(map[string]string{"nvidia-smi": "A, 1, 100, 10, 0, GPU-1\nB, 1, 100, 90, 1, GPU-2\n"}, nil), "",
			"the one with more free memory"},
		{"busy", "", tools(map[string]string{"nvidia-smi": "A, 1, 100, 10, 0, GPU-1\n"}, nil), "10 of 100 MiB free", "another process holds it"},
		{"empty", "", tools(map[string]string{"nvidia-smi": "\n"}, nil), "passed through", "a driver without a device"},
		{"broken", "", tools(map[string]string{"nvidia-smi": "x"}, errors.New("exit status 9: NVIDIA-SMI has failed")),
			"NVIDIA-SMI has failed", "the driver's own words"},
		{"words", "", tools(map[string]string{"nvidia-smi": "hello\n"}, nil), "hello", "unknown output is quoted"},
		{"memory is shared", "NVIDIA GB10, driver 580.1",
			tools(map[string]string{"nvidia-smi": "GB10, 580.1, [N/A], [N/A], 0, GPU-1\n"}, nil), "",
			"a GPU without memory of its own is not busy"},
		{"odd index", "", tools(map[string]string{"nvidia-smi": "A, 1, 100, 90, first, GPU-1\n"}, nil), "first", "an index, too"},
		{"odd memory", "", tools(map[string]string{"nvidia-smi": "A, 1, much, 10, 0, GPU-1\n"}, nil), "much", "a size must be a number"},
		{"amd busy", "", tools(map[string]string{"rocm-smi": strings.ReplaceAll(rocm, "\"1048576\"", "\"1063741824\"")},
			nil), "9 of 1024 MiB free", "another process holds it"},
		{"amd odd memory", "", tools(map[string]string{"rocm-smi": strings.ReplaceAll(rocm, "\"1048576\"", "\"much\"")}, nil),
			"card0: used memory", "a size must be a number"},
		{"amd without cards", "", tools(map[string]string{"rocm-smi": `{"system": {"Driver version": "6.8"}}`}, nil),
			"passed through", "a driver without a device"},
		{"amd broken", "", tools(map[string]string{"rocm-smi": ""}, errors.New("exit status 2: no amdgpu")),
			"no amdgpu", "the tool's own words"},
		{"amd", "AMD MI300X, driver 6.8, 1023 of 1024 MiB free", tools(map[string]string{"rocm-smi": rocm}, nil),
			"", "AMD without NVIDIA"},
		{"amd words", "", tools(map[string]string{"rocm-smi": "nonsense"}, nil), "nonsense",
			"unknown output is quoted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := engine.PickOf(context.Background(), tt.driver, nil)
			if tt.text != "" {
				require.ErrorContains(t, err, tt.text, tt.reason)
				return
			}
			require.NoError(t, err, tt.reason)
			assert.Equal(t, "["+tt.want+"]", fmt.Sprint(d), tt.reason)
		})
	}
}

func TestSupports(t *testing.T) {
	assert.NoError(t, engine.Supports("cpu", ""))
	assert.NoError(t, engine.Supports("cpu", "float32"))
	assert.NoError(t, engine.Supports("gpu", "bfloat16"))
	assert.ErrorContains(t, engine.Supports("cpu", "bfloat16"), "float32, q4_k")
	assert.ErrorContains(t, engine.Supports("gpu", "q4_k"), "bfloat16")
}

// What is picked, and so locked, is what a process sees of the variables that are set for it.
func TestPickIsWhatTheEngineSees(t *testing.T) {
	nvidia := tools(map[string]string{"nvidia-smi": "A, 1, 100, 95, 0, GPU-aa\nB, 1, 100, 90, 1, GPU-ab\nC, 1, 100, 10, 2, GPU-b\n"}, nil)
	const card = `"card%d": {"Card Series": "MI", "VRAM Total Memory (B)": "1048576", "VRAM Total Used Memory (B)": "%d", "Unique ID": "%s"}`
	amd := tools(map[string]string{"rocm-smi": "{" + fmt.Sprintf(card, 10, 0, "0x10") + "," + fmt.Sprintf(card, 2, 0, "0x2") + "," +
		fmt.Sprintf(card, 3, 0, "N/A") + "}"}, nil)
	for _, tt := range []struct {
		env    []string
		driver engine.Tools
		want   string // the engine's environment
		err    string
		reason string
	}{
		{[]string{"A=1"}, nvidia, "A=1 CUDA_VISIBLE_DEVICES=GPU-aa", "", "the freest, which is then the engine's first"},
		{[]string{"CUDA_VISIBLE_DEVICES=1"}, nvidia, "CUDA_VISIBLE_DEVICES=GPU-ab", "", "the user's choice, not the freest"},
		{[]string{"CUDA_VISIBLE_DEVICES=1, 0"}, nvidia, "CUDA_VISIBLE_DEVICES=GPU-ab,GPU-aa", "", "an engine may use all that it sees"},
		{[]string{"CUDA_VISIBLE_DEVICES=0", "B=", "CUDA_VISIBLE_DEVICES=1"}, nvidia, "B= CUDA_VISIBLE_DEVICES=GPU-ab", "", "the last one counts"},
		{[]string{"CUDA_VISIBLE_DEVICES=GPU-ab"}, nvidia, "CUDA_VISIBLE_DEVICES=GPU-ab", "", "by UUID"},
		{[]string{"CUDA_VISIBLE_DEVICES=1,GPU-ab"}, nvidia, "CUDA_VISIBLE_DEVICES=GPU-ab", "", "one device twice"},
		{[]string{"CUDA_VISIBLE_DEVICES=MIG-7"}, nvidia, "CUDA_VISIBLE_DEVICES=MIG-7", "", "an instance is not in the driver's table"},
		{[]string{"HIP_VISIBLE_DEVICES=2"}, nvidia, "HIP_VISIBLE_DEVICES=2 CUDA_VISIBLE_DEVICES=GPU-aa", "", "of another vendor"},
		{[]string{"CUDA_VISIBLE_DEVICES=2"}, nvidia, "", "the GPU is busy: NVIDIA C", "the chosen one is"},
		{[]string{"CUDA_VISIBLE_DEVICES=0,2"}, nvidia, "", "the GPU is busy: NVIDIA C", "one of those chosen is"},
		{[]string{"CUDA_VISIBLE_DEVICES=3"}, nvidia, "", `no GPU: CUDA_VISIBLE_DEVICES is "3": "3" is none of the 3 devices`, "there is none"},
		{[]string{"CUDA_VISIBLE_DEVICES=-1"}, nvidia, "", `"-1" is none`, "CUDA's word for none"},
		{[]string{"CUDA_VISIBLE_DEVICES="}, nvidia, "", `"" is none`, "all are hidden"},
		{[]string{"CUDA_VISIBLE_DEVICES=GPU-a"}, nvidia, "", `"GPU-a" is none`, "two begin so"},
		{nil, amd, "ROCR_VISIBLE_DEVICES=GPU-2", "", "the first of equals, in the order of numbers"},
		{[]string{"ROCR_VISIBLE_DEVICES=1,2", "HIP_VISIBLE_DEVICES=1"}, amd, "ROCR_VISIBLE_DEVICES=GPU-10", "", "HIP counts what ROCm left"},
		{[]string{"ROCR_VISIBLE_DEVICES=1"}, amd, "ROCR_VISIBLE_DEVICES=3", "", "a card without an id goes by its number"},
		{[]string{"CUDA_VISIBLE_DEVICES=2"}, amd, "ROCR_VISIBLE_DEVICES=GPU-10", "", "HIP reads CUDA's variable, too"},
		{[]string{"CUDA_VISIBLE_DEVICES=2", "HIP_VISIBLE_DEVICES=0"}, amd, "ROCR_VISIBLE_DEVICES=GPU-2", "", "and its own first"},
	} {
		t.Run(strings.Join(tt.env, " "), func(t *testing.T) {
			devices, err := engine.PickOf(t.Context(), tt.driver, tt.env)
			if tt.err != "" {
				require.ErrorContains(t, err, tt.err, tt.reason)
				return
			}
			require.NoError(t, err, tt.reason)
			assert.Equal(t, tt.want, strings.Join(engine.EnvironOf(devices, tt.env), " "), tt.reason)
		})
	}
}
