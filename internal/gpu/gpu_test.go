package gpu_test

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/gpu"
	_ "github.com/goparity/goparity/internal/updateflag"
)

// tools returns a driver for a machine on which the programs in out are installed and print its
// values.
func tools(out map[string]string, fail error) gpu.Driver {
	return gpu.Tools(func(_ context.Context, name string, _ ...string) ([]byte, error) {
		text, ok := out[name]
		if !ok {
			return nil, &exec.Error{Name: name, Err: exec.ErrNotFound}
		}
		return []byte(text), fail
	})
}

func TestPick(t *testing.T) {
	const rocm = `{"card0": {"Card Series": "MI300X",
		"VRAM Total Memory (B)": "1073741824", "VRAM Total Used Memory (B)": "1048576"},
		"system": {"Driver version": "6.8"}}`
	for _, tt := range []struct {
		name, want string
		driver     gpu.Driver
		err        error
		text       string
		reason     string
	}{
		{"none", "", tools(nil, nil), gpu.ErrNoDriver, "-parity.run=cpu", "a machine without any driver"},
		{"one", "NVIDIA NVIDIA H200, driver 570.1, 143000 of 143771 MiB free",
			tools(map[string]string{"nvidia-smi": "NVIDIA H200, 570.1, 143771, 143000, 0, GPU-1\n"}, nil), nil, "",
			"one free GPU"},
		{"two", "NVIDIA B, driver 1, 90 of 100 MiB free",
			tools(map[string]string{"nvidia-smi": "A, 1, 100, 10, 0, GPU-1\nB, 1, 100, 90, 1, GPU-2\n"}, nil), nil, "",
			"the one with more free memory"},
		{"busy", "", tools(map[string]string{"nvidia-smi": "A, 1, 100, 10, 0, GPU-1\n"}, nil), gpu.ErrBusy,
			"10 of 100 MiB free", "another process holds it"},
		{"empty", "", tools(map[string]string{"nvidia-smi": "\n"}, nil), gpu.ErrNoDevice, "passed through",
			"a driver without a device"},
		{"broken", "", tools(map[string]string{"nvidia-smi": "x"}, errors.New("exit status 9: NVIDIA-SMI has failed")),
			gpu.ErrTool, "NVIDIA-SMI has failed", "the driver's own words"},
		{"words", "", tools(map[string]string{"nvidia-smi": "hello\n"}, nil), gpu.ErrTool, "hello",
			"unknown output is quoted"},
		{"memory is shared", "NVIDIA GB10, driver 580.1",
			tools(map[string]string{"nvidia-smi": "GB10, 580.1, [N/A], [N/A], 0, GPU-1\n"}, nil), nil, "",
			"a GPU without memory of its own is not busy"},
		{"odd memory", "", tools(map[string]string{"nvidia-smi": "A, 1, much, 10, 0, GPU-1\n"}, nil), gpu.ErrTool,
			"much", "a size must be a number"},
		{"amd busy", "", tools(map[string]string{"rocm-smi": strings.ReplaceAll(rocm, "\"1048576\"", "\"1063741824\"")},
			nil), gpu.ErrBusy, "9 of 1024 MiB free", "another process holds it"},
		{"amd without cards", "", tools(map[string]string{"rocm-smi": `{"system": {"Driver version": "6.8"}}`}, nil),
			gpu.ErrNoDevice, "passed through", "a driver without a device"},
		{"amd broken", "", tools(map[string]string{"rocm-smi": ""}, errors.New("exit status 2: no amdgpu")),
			gpu.ErrTool, "no amdgpu", "the tool's own words"},
		{"amd", "AMD MI300X, driver 6.8, 1023 of 1024 MiB free", tools(map[string]string{"rocm-smi": rocm}, nil), nil,
			"", "AMD without NVIDIA"},
		{"amd words", "", tools(map[string]string{"rocm-smi": "nonsense"}, nil), gpu.ErrTool, "nonsense",
			"unknown output is quoted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := gpu.Pick(context.Background(), tt.driver)
			if tt.text != "" {
				require.ErrorContains(t, err, tt.text, tt.reason)
				assert.ErrorIs(t, err, tt.err, tt.reason)
				assert.True(t, gpu.IsInfra(err), "it is not the model's fault")
				return
			}
			require.NoError(t, err, tt.reason)
			assert.Equal(t, tt.want, fmt.Sprint(d), tt.reason)
		})
	}
}

func TestSupports(t *testing.T) {
	assert.NoError(t, gpu.Supports("cpu", ""))
	assert.NoError(t, gpu.Supports("cpu", "float32"))
	assert.NoError(t, gpu.Supports("gpu", "bfloat16"))
	assert.ErrorContains(t, gpu.Supports("cpu", "bfloat16"), "float32, q4_k")
	assert.ErrorContains(t, gpu.Supports("gpu", "q4_k"), "bfloat16")
}

func TestEnviron(t *testing.T) {
	nvidia, amd := gpu.Device{Vendor: "NVIDIA", Index: 1, UUID: "GPU-2"}, gpu.Device{Vendor: "AMD", Index: 1}
	for _, tt := range []struct {
		device    gpu.Device
		env, want []string
		reason    string
	}{
		{nvidia, []string{"A=1"}, []string{"A=1", "CUDA_VISIBLE_DEVICES=GPU-2"},
			"the engine's first device is the one that was chosen"},
		{nvidia, []string{"CUDA_VISIBLE_DEVICES=0"}, []string{"CUDA_VISIBLE_DEVICES=0"}, "the user has chosen"},
		{amd, nil, []string{"ROCR_VISIBLE_DEVICES=1"}, "ROCm counts"},
		{amd, []string{"HIP_VISIBLE_DEVICES=0"}, []string{"HIP_VISIBLE_DEVICES=0"}, "two variables would choose twice"},
	} {
		assert.Equal(t, tt.want, tt.device.Environ(tt.env), tt.reason)
	}
}
